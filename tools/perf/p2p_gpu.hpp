// SPDX-License-Identifier: Apache-2.0
// One GPU of a peer-to-peer measurement, and work of several GPUs that runs at once and is timed.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tools/perf/cuda_device.hpp"

namespace gdrx::perf {

/// What a GPU has for the measurement.
class PeerGpu {
 public:
  static Result<std::unique_ptr<PeerGpu>> create(std::shared_ptr<cuda::Device> device,
                                                 std::size_t bytes);
  ~PeerGpu();
  PeerGpu(const PeerGpu&) = delete;
  PeerGpu& operator=(const PeerGpu&) = delete;

  const cuda::Device& device() const noexcept { return *device_; }
  cuda::Address source() const noexcept { return source_->address(); }
  cuda::Address target() const noexcept { return target_->address(); }
  static constexpr std::size_t kVerdictAt =
      2048;  // of the flags, where the rounds that held are told
  cuda::Address flags() const noexcept { return flags_->address(); }  // 4 KiB
  const cuda::Memory& target_memory() const noexcept { return *target_; }
  const cuda::Memory& flag_memory() const noexcept { return *flags_; }
  Result<void> fill_source(unsigned value) const;
  Result<void> clear_target() const;
  /// The target's ends and middle hold nothing but `value`.
  Result<bool> target_holds(unsigned value, std::size_t bytes) const;
  /// 0 or a CUDA error. Context is made current.
  int store(cuda::Address to, std::size_t bytes, unsigned value, int blocks, void* stream) const;
  int load(cuda::Address from, std::size_t bytes, int blocks, void* stream) const;
  int ping(cuda::Address theirs, unsigned rounds, bool first, void* stream) const;

 private:
  explicit PeerGpu(std::shared_ptr<cuda::Device> device) : device_(std::move(device)) {}
  int launch(void* function, int blocks, int threads, void* stream, void** arguments) const;
  std::shared_ptr<cuda::Device> device_;
  std::unique_ptr<cuda::Memory> source_;
  std::unique_ptr<cuda::Memory> target_;
  std::unique_ptr<cuda::Memory> flags_;
  void* module_ = nullptr;
  void* store_ = nullptr;
  void* load_ = nullptr;
  void* ping_ = nullptr;
};

/// Work of a GPU on a stream: 0 or a CUDA error.
struct Job {
  const PeerGpu* gpu;
  std::function<int(void* stream)> start;
};
/// Runs every job `iterations` times on a stream of its own, all at once, and gives the slowest
/// one's seconds. `warm_up`: once before. Errc::timeout after 30 s.
Result<double> run_jobs(std::span<const Job> jobs, int iterations, bool warm_up);

}  // namespace gdrx::perf
