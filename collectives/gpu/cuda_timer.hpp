// SPDX-License-Identifier: Apache-2.0
// Pairs of timed events, and the anchors that tie the GPU's clock to the host's.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/gpu/driver.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx::gpu {

class CudaEvent {
 public:
  static Result<CudaEvent> create();
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&&) = delete;
  cudaEvent_t get() const noexcept { return event_; }

 private:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  cudaEvent_t event_;
};

/// A moment that both clocks saw: the event was reached between two looks at the host's clock, and
/// is taken for their middle.
struct Anchor {
  CudaEvent event;
  Instant at;
  Duration precision;  // half of what lies between the two looks
};

class CudaTimer final : public Timer {
 public:
  /// Puts a stream behind the launch before.
  using Follow = std::function<Result<void>(cudaStream_t)>;
  /// On the current device. `own`: a stream of it for anchors, on which nothing waits.
  static Result<std::unique_ptr<Timer>> create(std::uint32_t slots, cudaStream_t own,
                                               Follow follow);
  ~CudaTimer() override;

  bool begin(std::uint32_t slot, void* stream) noexcept override;
  bool end(std::uint32_t slot, void* stream) noexcept override;
  Times read(std::uint32_t slot) noexcept override;
  Duration precision() const noexcept override { return precision_; }

 private:
  struct Slot {
    CudaEvent begin, end;
    std::shared_ptr<const Anchor> anchor;  // older than begin
  };
  CudaTimer(const DriverApi& driver, CUcontext context, cudaStream_t own, Follow follow)
      : driver_(driver), context_(context), own_(own), follow_(std::move(follow)) {}
  std::shared_ptr<const Anchor> anchored(Duration limit) const;
  void renew_anchor();

  const DriverApi& driver_;
  CUcontext context_;
  cudaStream_t own_;
  Follow follow_;
  std::vector<Slot> slots_;
  std::shared_ptr<const Anchor> anchor_;
  Instant tried_{};  // to renew it
  Duration precision_{};
};

}  // namespace gdrx::gpu
