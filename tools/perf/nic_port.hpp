// SPDX-License-Identifier: Apache-2.0
// A NIC port that is used by itself, without a communicator: opened, with its address, and queue
// pairs from it to itself or to another port of this host. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/verbs/queue_pair.hpp"

namespace gdrx::perf {

struct PortChoice {
  std::string device;     // empty: the first with a port that is up
  std::uint8_t port = 0;  // 0: the first that is up
  std::optional<std::uint32_t> gid_index;
  int mtu = 0;  // bytes; 0: the port's
};

class NicPort {
 public:
  /// Errors: no such device, the port is not up, no usable GID, an MTU that the port has not.
  static Result<std::shared_ptr<NicPort>> open(std::shared_ptr<const verbs::VerbsTable> table,
                                               const PortChoice& choice);
  const std::shared_ptr<verbs::ProtectionDomain>& domain() const noexcept { return domain_; }
  const verbs::Context& context() const noexcept { return *domain_->context(); }
  const std::string& name() const noexcept { return context().name(); }
  std::uint8_t port() const noexcept { return port_; }
  /// How others reach it.
  const ibv_ah_attr& address() const noexcept { return address_; }
  ibv_mtu mtu() const noexcept { return mtu_; }
  bool ethernet() const noexcept { return address_.is_global != 0; }
  const std::string& gid() const noexcept { return gid_; }  // for people; empty on InfiniBand

 private:
  NicPort() = default;
  Result<void> find_address(const ibv_port_attr& attributes, const PortChoice& choice);
  std::shared_ptr<verbs::ProtectionDomain> domain_;
  std::uint8_t port_ = 1;
  ibv_ah_attr address_{};
  ibv_mtu mtu_ = IBV_MTU_1024;
  std::string gid_;
};

/// Every port of every device that is up.
std::vector<PortChoice> ports_up(const std::shared_ptr<const verbs::VerbsTable>& table);

struct PairOptions {
  std::uint32_t depth = 128;
  std::uint32_t inline_bytes = 0;
  std::uint8_t timeout = 16;  // 4.096 us * 2^timeout
  std::uint8_t retries = 7;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
};

/// A queue pair that is not connected yet, with a completion queue of its own.
struct QpEnd {
  static Result<QpEnd> open(const NicPort& port, const PairOptions& options);
  std::shared_ptr<verbs::CompletionQueue> queue;
  std::unique_ptr<verbs::QueuePair> qp;
};

/// Two of them, connected.
struct QpPair {
  static Result<std::unique_ptr<QpPair>> connect(const NicPort& here, const NicPort& there,
                                                 const PairOptions& options);
  QpEnd here;
  QpEnd there;
};

/// "status 12 (transport retry counter exceeded)" for a person, with what it usually means.
std::string completion_problem(const ibv_wc& completion);

}  // namespace gdrx::perf
