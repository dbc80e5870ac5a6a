// SPDX-License-Identifier: Apache-2.0
// One class a verbs object; children share ownership of their parents, so that a NIC outlives what
// was made on it. Closing never fails; a refusal would be a defect of ours and is ignored.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gdrx/types.hpp"
#include "transport/verbs/gid.hpp"
#include "transport/verbs/verbs_table.hpp"

namespace gdrx::verbs {

/// A port of a NIC, which is told of what the NIC says of itself.
class EventSink {
 public:
  virtual void on_event(const ibv_async_event& event) = 0;

 protected:
  ~EventSink() = default;
};

/// An opened NIC.
class Context {
 public:
  static Result<std::shared_ptr<Context>> open(std::shared_ptr<const VerbsTable> table,
                                               ibv_device* device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const VerbsTable& verbs() const noexcept { return *table_; }
  ibv_context* raw() const noexcept { return context_; }
  const std::string& name() const noexcept { return name_; }
  std::string pci_folder() const { return table_->pci_folder(context_->device); }
  const ibv_device_attr& attributes() const noexcept { return attributes_; }
  Result<ibv_port_attr> query_port(std::uint8_t port) const;
  /// Entries that cannot be read (containers hide some) are left out.
  std::vector<Gid> gids(std::uint8_t port, int table_length) const;
  /// The next asynchronous event, already acknowledged. Never blocks.
  std::optional<ibv_async_event> next_event() const;
  /// Ports of one NIC share its events: whoever reads them gives them to all.
  void listen(EventSink& sink) { sinks_.push_back(&sink); }
  void forget(EventSink& sink) noexcept { std::erase(sinks_, &sink); }
  void pump_events() const;

 private:
  Context(std::shared_ptr<const VerbsTable> table, ibv_context* context, std::string name)
      : table_(std::move(table)), context_(context), name_(std::move(name)) {}
  std::shared_ptr<const VerbsTable> table_;
  ibv_context* context_;
  std::string name_;
  ibv_device_attr attributes_{};
  std::vector<EventSink*> sinks_;
};

/// Memory that the NIC may reach.
class Registration;
class AddressHandle;

class ProtectionDomain : public std::enable_shared_from_this<ProtectionDomain> {
 public:
  static Result<std::shared_ptr<ProtectionDomain>> create(std::shared_ptr<Context> context);
  ~ProtectionDomain();
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;
  const std::shared_ptr<Context>& context() const noexcept { return context_; }
  ibv_pd* raw() const noexcept { return pd_; }
  Result<std::unique_ptr<Registration>> register_memory(std::span<std::byte> bytes, int access);
  /// GPU memory that was exported as `fd`, from `offset` on; the NIC knows it by its address. The
  /// descriptor may be closed afterwards.
  Result<std::unique_ptr<Registration>> register_dma_buf(int fd, Bytes offset,
                                                         std::span<std::byte> bytes, int access);
  Result<std::unique_ptr<AddressHandle>> make_address(ibv_ah_attr attributes);

 private:
  ProtectionDomain(std::shared_ptr<Context> context, ibv_pd* pd)
      : context_(std::move(context)), pd_(pd) {}
  std::shared_ptr<Context> context_;
  ibv_pd* pd_;
};

class Registration {
 public:
  Registration(std::shared_ptr<ProtectionDomain> domain, ibv_mr* mr)
      : domain_(std::move(domain)), mr_(mr) {}
  ~Registration() { domain_->context()->verbs().dereg_mr(mr_); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  std::uint32_t lkey() const noexcept { return mr_->lkey; }
  std::uint32_t rkey() const noexcept { return mr_->rkey; }

 private:
  std::shared_ptr<ProtectionDomain> domain_;
  ibv_mr* mr_;
};

/// Where a datagram goes.
class AddressHandle {
 public:
  AddressHandle(std::shared_ptr<ProtectionDomain> domain, ibv_ah* ah)
      : domain_(std::move(domain)), ah_(ah) {}
  ~AddressHandle() { domain_->context()->verbs().destroy_ah(ah_); }
  AddressHandle(const AddressHandle&) = delete;
  AddressHandle& operator=(const AddressHandle&) = delete;
  ibv_ah* raw() const noexcept { return ah_; }

 private:
  std::shared_ptr<ProtectionDomain> domain_;
  ibv_ah* ah_;
};

/// One thread polls it.
class CompletionQueue {
 public:
  static Result<std::shared_ptr<CompletionQueue>> create(std::shared_ptr<Context> context,
                                                         int entries);
  ~CompletionQueue() { context_->verbs().destroy_cq(cq_); }
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ibv_cq* raw() const noexcept { return cq_; }
  int entries() const noexcept { return entries_; }
  /// How many were filled; negative: the queue is broken (it was overrun, or the NIC is gone).
  int poll(std::span<ibv_wc> into) noexcept {
    return ibv_poll_cq(cq_, static_cast<int>(into.size()), into.data());
  }

 private:
  CompletionQueue(std::shared_ptr<Context> context, ibv_cq* cq, int entries)
      : context_(std::move(context)), cq_(cq), entries_(entries) {}
  std::shared_ptr<Context> context_;
  ibv_cq* cq_;
  int entries_;
};

}  // namespace gdrx::verbs
