// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/ucx/device.hpp"

namespace gdrx::ucx {

class UcxEndpoint final : public Endpoint {
 public:
  static Result<std::unique_ptr<UcxEndpoint>> create(std::shared_ptr<UcxDevice> device, Rank peer,
                                                     std::span<const std::byte> address);
  ~UcxEndpoint() override;
  Rank peer() const noexcept override { return peer_; }
  Result<RemoteRegionId> import_region(std::span<const std::byte> key) override;
  Result<Progress> post(const WriteOp& op) override;
  std::span<std::byte> mapped(RemoteRegionId region) const noexcept override;
  std::string describe() const override { return lanes_; }
  void release_region(RemoteRegionId region) noexcept override;
  const Error* error() const noexcept override { return error_ ? &*error_ : nullptr; }
  /// Does a deferred write's next step.
  void go_on(Pending* pending);

 private:
  struct Remote {
    KeyHead key;
    ucp_rkey_h rkey = nullptr;
    std::byte* here = nullptr;  // where it is mapped in this process, if it is
  };
  UcxEndpoint(std::shared_ptr<UcxDevice> device, Rank peer)
      : device_(std::move(device)), peer_(peer) {}
  Result<Progress> put(Pending* pending, const Remote& remote, const WriteOp& op);
  Result<Progress> message(Pending* pending);
  static void on_put(void* request, ucs_status_t status, void* pending);
  static void on_flush(void* request, ucs_status_t status, void* pending);
  static void on_sent(void* request, ucs_status_t status, void* pending);
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);
  void flush_then_message(Pending* pending);
  void report(const char* what, ucs_status_t status);

  std::shared_ptr<UcxDevice> device_;
  Rank peer_;
  ucp_ep_h endpoint_ = nullptr;
  std::vector<Remote> remotes_;
  std::vector<std::size_t> free_;  // of remotes_
  std::optional<Error> error_;     // of an isolated peer
  std::string lanes_;
  bool shares_memory_ = false;  // with the peer's process
  bool ordered_ = false;        // a put that returned is in place before a later message is handled
};

}  // namespace gdrx::ucx
