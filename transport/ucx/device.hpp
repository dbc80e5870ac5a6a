// SPDX-License-Identifier: Apache-2.0
// One UCP context and worker. docs/concepts/fabrics.md: how a write becomes a put and an active
// message.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gdrx/transport.hpp"
#include "transport/ucx/wire.hpp"

namespace gdrx::ucx {

tl::unexpected<Error> failed(const char* call, ucs_status_t status);

class UcxDevice;
class UcxEndpoint;

/// A write under way: what UCX reads until it has completed. From the device's pool.
struct Pending {
  enum class Next : std::uint8_t { flush, message };
  Next next{};  // what is to be done with it outside UCX's callbacks
  UcxDevice* device = nullptr;
  UcxEndpoint* endpoint = nullptr;
  MessageHead head;
  std::array<std::byte, kMaxWriteHeader> header;
  std::array<ucp_dt_iov_t, 2> parts;
  std::size_t part_count = 0;
  std::uint64_t cookie = 0;
};

class UcxRegion final : public MemoryRegion {
 public:
  UcxRegion(std::shared_ptr<UcxDevice> device, std::uint32_t id)
      : device_(std::move(device)), id_(id) {}
  ~UcxRegion() override;
  std::span<std::byte> bytes() const noexcept override;
  Blob export_key() const override;

 private:
  std::shared_ptr<UcxDevice> device_;
  std::uint32_t id_;
};

class UcxDevice final : public Device, public std::enable_shared_from_this<UcxDevice> {
 public:
  static Result<std::shared_ptr<UcxDevice>> create(Rank self, const Config& config);
  ~UcxDevice() override;
  UcxDevice(const UcxDevice&) = delete;
  UcxDevice& operator=(const UcxDevice&) = delete;

  Blob address() const override { return address_; }
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory,
                                                        MemoryKind kind) override;
  Result<std::unique_ptr<MemoryRegion>> allocate_memory(std::size_t bytes) override;
  Result<std::unique_ptr<Endpoint>> connect(Rank peer, std::span<const std::byte> address) override;
  Result<std::size_t> poll(std::span<Completion> completions) override;
  bool busy() const noexcept override { return pool_.size() != free_.size(); }
  void isolate_peers() noexcept override { isolating_ = true; }
  void report_to(Hearing& hearing) noexcept override { hearing_ = &hearing; }
  std::string describe() const override { return "ucx: CUDA memory is staged"; }

  // For endpoints and UCX's callbacks, on the polling thread.
  Rank self() const noexcept { return self_; }
  ucp_worker_h worker() const noexcept { return worker_; }
  Pending* take() noexcept;
  void finish(Pending* pending);  // its write is done
  void give_back(Pending* pending) noexcept { free_.push_back(pending); }
  /// From UCX's callbacks, in which an endpoint may be in no state to take more: UCX 1.16 ends the
  /// process over a flush while it replays what waited for the connection.
  void defer(Pending* pending, Pending::Next next) noexcept {
    pending->next = next;
    deferred_.push_back(pending);
  }
  void fail_with(Error error);
  /// Runs a callback of UCX's, which no exception may pass.
  template <class Body>
  void contain(Body&& body) noexcept {
    try {
      body();
    } catch (...) {
      fail_with(no_memory());
    }
  }
  bool isolating() const noexcept { return isolating_; }
  /// The endpoint ends: callbacks of its writes that still come find nobody.
  void forget(const UcxEndpoint* endpoint) noexcept;
  void flush(ucp_ep_h endpoint) noexcept;  // bounded
  void close(ucp_ep_h endpoint) noexcept;  // bounded

 private:
  friend class UcxRegion;
  struct Region {
    std::span<std::byte> bytes;
    ucp_mem_h handle = nullptr;  // null: free
    std::uint64_t nonce = 0;
    std::int32_t segment = -1;  // of shared memory
  };
  explicit UcxDevice(Rank self) : self_(self) {}
  Result<void> open(const Config& config);
  Result<std::unique_ptr<MemoryRegion>> map(const ucp_mem_map_params_t& params);
  static ucs_status_t on_message(void* self, const void* header, std::size_t header_length,
                                 void* data, std::size_t length, const ucp_am_recv_param_t* param);
  bool run_deferred();
  Result<void> land(const void* header, std::size_t header_length, const void* data,
                    std::size_t length);

  Rank self_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  Blob address_;
  std::vector<Region> regions_;
  std::deque<Pending> pool_;
  std::vector<Pending*> free_;
  std::vector<Pending*> deferred_;
  std::vector<Pending*> running_;  // deferred_, while it is run
  std::vector<Completion> ready_;  // ring: [first_, ready_.size())
  std::size_t first_ = 0;
  std::optional<Error> error_;
  Hearing* hearing_ = nullptr;  // or nobody asks
  bool isolating_ = false;
};

}  // namespace gdrx::ucx
