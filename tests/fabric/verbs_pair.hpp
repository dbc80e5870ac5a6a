// SPDX-License-Identifier: Apache-2.0
// Two QPs of one NIC that know each other, with a kilobyte of memory each: what the conformance
// suite asks its questions with. On the simulated HCA, or on a real NIC by name.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/fabric/network.hpp"
#include "transport/verbs/queue_pair.hpp"

namespace gdrx::conformance {

/// The NIC under test. `simulated` tests that a device need not fulfil are skipped on others.
struct Subject {
  std::string device;  // empty: simulated
  std::shared_ptr<sim::Network> network;
  std::shared_ptr<const verbs::VerbsTable> verbs;
  std::shared_ptr<verbs::Context> context;
  std::uint8_t port = 1;
  ibv_ah_attr loopback{};
  ibv_mtu mtu = IBV_MTU_1024;
};
Subject& subject();
/// Opens what subject().device names.
Result<void> open_subject();

/// A failure by its name in the specification. A real NIC may use another of its names: soft-RoCE
/// says IBV_WC_LOC_QP_OP_ERR and IBV_WC_REM_OP_ERR for what has names of its own (10.10.3).
inline bool failed_as(const ibv_wc& done, ibv_wc_status name) {
  return subject().device.empty() ? done.status == name : done.status != IBV_WC_SUCCESS;
}

constexpr std::size_t kMemory = 64 * 1024;
constexpr int kEverything =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

struct Side {
  std::shared_ptr<verbs::CompletionQueue> queue;
  std::unique_ptr<verbs::QueuePair> qp;
  std::vector<std::byte> memory = std::vector<std::byte>(kMemory);
  std::unique_ptr<verbs::Registration> registration;
  ibv_sge piece(std::size_t offset, std::size_t bytes) {
    return {reinterpret_cast<std::uintptr_t>(memory.data()) + offset,
            static_cast<std::uint32_t>(bytes), registration->lkey()};
  }
};

class VerbsPair : public ::testing::Test {
 protected:
  static constexpr verbs::QpLimits kLimits{16, 16, 64};
  void SetUp() override;
  void make(Side& side, ibv_qp_type type, int access = kEverything);
  verbs::QpRoute route(const Side& to) const;
  void connect();
  /// The next completion, or a failure of the test after `limit`.
  ibv_wc wait(Side& side, std::chrono::milliseconds limit = std::chrono::seconds(5));
  bool quiet(Side& side, std::chrono::milliseconds time = std::chrono::milliseconds(50));
  void receive(Side& side, std::uint64_t id, std::size_t offset = 0, std::size_t bytes = 1024);
  struct Write {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t bytes = 0;
    std::uint64_t id = 1;
    int flags = IBV_SEND_SIGNALED;
    ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
    std::uint32_t immediate = 0;
    std::uint32_t rkey_change = 0;
  };
  int post(const Write& write);
  static void fill(Side& side, unsigned seed);

  std::shared_ptr<verbs::ProtectionDomain> domain_;
  Side a_;
  Side b_;
  std::uint8_t retries_ = 2;
  std::uint8_t rnr_retries_ = 7;
};

}  // namespace gdrx::conformance
