// SPDX-License-Identifier: Apache-2.0
// Blocks of threads on the CPU: a thread of the CPU for each block, a fiber for each thread of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gdrx::emulated {

struct Place {
  std::uint32_t x = 0;
};
inline thread_local Place threadIdx, blockIdx, blockDim, gridDim;

/// Runs the block's other threads for a while. Whoever polls calls it: nobody takes its turn away.
void yield();

/// Where threads of a block meet. Those that have ended are not waited for.
class Meeting {
 public:
  explicit Meeting(int members) : members_(members) {}
  void meet();
  void leave();

 private:
  void pass();
  int members_, arrived_ = 0;
  std::uint64_t passed_ = 0;
};

/// Up to 32 threads of a block that meet by themselves.
class Warp {
 public:
  explicit Warp(int threads) : meeting_(threads), values_(static_cast<std::size_t>(threads), ~0U) {}
  void meet() { meeting_.meet(); }
  void leave();
  std::uint32_t least(std::uint32_t mine);

 private:
  Meeting meeting_;
  std::vector<std::uint32_t> values_;
};

/// Thrown through a kernel: its thread ends.
struct Ended {};

/// That a GPU makes by itself, asked for by a thread.
struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  std::vector<std::uint8_t> read_bytes;

  void read() {
    if (!read_bytes.empty()) return;
    const auto* const first = static_cast<const std::uint8_t*>(from);
    read_bytes.assign(first, first + bytes);
  }
};
struct Copies {
  std::vector<Copy> in, out;
};

class Block {
 public:
  explicit Block(int threads);
  void meet() { meeting_.meet(); }
  bool any(bool mine);
  Warp& warp() { return warps_[threadIdx.x / 32]; }
  /// A thread has ended: nobody waits for it any more.
  void leave();

  alignas(16) std::byte memory[1024];
  /// More of it, of a kernel that was given some.
  static constexpr int kStaged = 227 << 10;
  std::uint8_t* staged();
  /// The thread's own, which have not been made.
  Copies& copies() { return copies_[threadIdx.x]; }

 private:
  Meeting meeting_;
  std::vector<std::uint8_t> said_;
  std::vector<Warp> warps_;
  std::vector<std::uint8_t> staged_;
  std::vector<Copies> copies_;
};
inline thread_local Block* block = nullptr;

/// Blocks that each GPU has room for, 0: any number, as at first unless GDRX_TEST_EMULATED_ROOM
/// says another. Blocks get it in the order in which their kernels' turns came, and a kernel's in
/// that of their numbers. Before the first kernel.
void set_room(int blocks);

/// Enqueues a kernel; when its turn comes, all of its blocks that have room run at once.
cudaError_t launch(cudaStream_t stream, int blocks, int threads, std::function<void()> kernel);

}  // namespace gdrx::emulated
