// SPDX-License-Identifier: Apache-2.0
// Blocks of threads, and streams of kernels, on the CPU.
#pragma once

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace gdrx::emulated {

struct Place {
  std::uint32_t x = 0;
};
inline thread_local Place threadIdx, blockIdx, blockDim, gridDim;

/// Up to 32 threads of a block that meet by themselves.
class Warp {
 public:
  explicit Warp(int threads) : meeting_(threads), values_(static_cast<std::size_t>(threads), ~0U) {}
  void meet() { meeting_.arrive_and_wait(); }
  void leave() {
    values_[threadIdx.x % 32] = ~0U;
    meeting_.arrive_and_drop();
  }
  std::uint32_t least(std::uint32_t mine);

 private:
  std::barrier<> meeting_;
  std::vector<std::uint32_t> values_;
};

class Block {
 public:
  explicit Block(int threads);
  void meet() { meeting_.arrive_and_wait(); }
  bool any(bool mine);
  Warp& warp() { return warps_[threadIdx.x / 32]; }
  /// A thread has ended: nobody waits for it any more.
  void leave();

  alignas(16) std::byte memory[1024];

 private:
  std::barrier<> meeting_;
  std::vector<std::uint8_t> said_;
  std::deque<Warp> warps_;
};
inline thread_local Block* block = nullptr;

/// Kernels of one rank, one after the other.
class Stream {
 public:
  void add(int blocks, int threads, std::function<void()> kernel);
  /// Runs what was added, each thread of each block by a thread of the CPU. Returns when all ended.
  void run();

 private:
  struct Kernel {
    int blocks;
    int threads;
    std::function<void()> body;
  };
  std::deque<Kernel> kernels_;
};

/// All at once, as GPUs run them.
void run(std::vector<Stream>& streams);

}  // namespace gdrx::emulated
