// SPDX-License-Identifier: Apache-2.0
// GPU memory that peers or NICs reach, and pinned memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/gpu/error.hpp"

namespace gdrx::gpu {

/// Borrowed from a pool of the process, which never frees: to free what a peer still maps is
/// undefined in CUDA, and to free anything waits for all kernels of the GPU, of which some may be
/// waiting for whoever frees. Given back when the object goes.
class PooledMemory {
 public:
  /// Of the current device; what it holds is whatever its last owner left.
  static Result<PooledMemory> borrow(std::uint64_t bytes);
  /// Of the host, pinned for every GPU: pinned_size(bytes).
  static Result<PooledMemory> borrow_pinned(std::uint64_t bytes);
  PooledMemory() = default;
  PooledMemory(PooledMemory&& other) noexcept { swap(other); }
  PooledMemory& operator=(PooledMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PooledMemory();

  std::byte* data() const noexcept { return data_; }
  int device() const noexcept { return device_; }
  std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

 private:
  void swap(PooledMemory& other) noexcept;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  int device_ = 0;
  bool lent_ = false;  // the pool counts on it
};

/// Runs what `enqueue(stream)` enqueues on a stream that waits for no other, and waits for its end.
template <class Enqueue>
Result<void> run_aside(Enqueue enqueue, const char* what) {
  struct Stream {
    ~Stream() {
      if (it != nullptr) cudaStreamDestroy(it);
    }
    cudaStream_t it = nullptr;
  } stream;
  GDRX_TRY(check(cudaStreamCreateWithFlags(&stream.it, cudaStreamNonBlocking), "cudaStreamCreate"));
  GDRX_TRY(check(enqueue(stream.it), what));
  return check(cudaStreamSynchronize(stream.it), what);
}

}  // namespace gdrx::gpu
