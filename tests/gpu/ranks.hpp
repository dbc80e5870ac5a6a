// SPDX-License-Identifier: Apache-2.0
// Several ranks of one process, each with a path, a stream and buffers on a GPU of this host.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/load.hpp"
#include "tests/gpu/emulated.hpp"

namespace gdrx::gpu {

// Streams of one process share queues beyond this many, and a kernel that waits for one behind it
// in its queue waits for ever.
inline const int kQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);

inline void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::abort();
}

template <class T>
T must(Result<T> result) {
  if (result) {
    if constexpr (std::is_void_v<T>) {
      return;
    } else {
      return std::move(*result);
    }
  }
  std::fprintf(stderr, "%s\n", describe(result.error()).c_str());
  std::abort();
}

/// GPU memory of the current device, zeroed.
template <class T>
T* allocate(std::uint64_t count) {
  void* memory = nullptr;
  must(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
  must(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
  must(cudaDeviceSynchronize(), "cudaMemset");
  return static_cast<T*>(memory);
}

inline int gpu_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// One to eight, on however many GPUs, so that every kernel of a host of eight runs, and two ranks
/// on every GPU of it. A GPU alone has no room for more than four ranks' kernels at once.
inline std::vector<int> rank_counts() {
  if (kEmulated) return {1, 2, 3, 5};
  if (gpu_count() < 2) return {1, 2, 3, 4};
  return {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
}

class Ranks {
 public:
  /// Rank r on GPU r modulo their number, with two buffers of `bytes`.
  Ranks(int ranks, std::uint64_t bytes, double timeout_s = 20) {
    const int gpus = gpu_count();
    Config config;
    config.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1000));
    std::vector<Ticket> tickets;
    for (int r = 0; r < ranks; ++r) {
      Rank_ rank;
      rank.device = r % gpus;
      must(cudaSetDevice(rank.device), "cudaSetDevice");
      must(cudaFree(nullptr), "context");
      must(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), "stream");
      rank.in = allocate<std::byte>(bytes + kPad);
      rank.out = allocate<std::byte>(bytes + kPad);
      rank.path = must(open_path(config));
      tickets.push_back(rank.path->ticket());
      all_.push_back(std::move(rank));
    }
    for (int r = 0; r < ranks; ++r) {
      use(r);
      must(all_[static_cast<std::size_t>(r)].path->connect(tickets, Rank{r}));
    }
    host_.ranks = ranks;
    host_.blocks = co_resident_blocks(tickets, 1024);
  }
  ~Ranks() {
    synchronize();
    for (Rank_& rank : all_) {
      cudaSetDevice(rank.device);
      rank.path.reset();
      cudaFree(rank.in);
      cudaFree(rank.out);
      cudaStreamDestroy(rank.stream);
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int size() const { return static_cast<int>(all_.size()); }
  const Host& host() const { return host_; }
  void use(int r) const { must(cudaSetDevice(at(r).device), "cudaSetDevice"); }
  std::byte* in(int r) const { return at(r).in; }
  std::byte* out(int r) const { return at(r).out; }
  cudaStream_t stream(int r) const { return at(r).stream; }
  Path& path(int r) const { return *at(r).path; }

  void launch(int r, const Work& what, const Shape& shape) const {
    use(r);
    must(path(r).launch(what, shape, stream(r)));
  }
  void synchronize() const {
    for (int r = 0; r < size(); ++r) {
      use(r);
      must(cudaStreamSynchronize(stream(r)), "cudaStreamSynchronize");
    }
  }

 private:
  static constexpr std::uint64_t kPad = 256;  // for unaligned views, and guards
  struct Rank_ {
    int device = 0;
    cudaStream_t stream = nullptr;
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    std::unique_ptr<Path> path;
  };
  const Rank_& at(int r) const { return all_[static_cast<std::size_t>(r)]; }

  std::vector<Rank_> all_;
  Host host_;
};

}  // namespace gdrx::gpu
