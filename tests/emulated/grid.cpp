// SPDX-License-Identifier: Apache-2.0
#include "tests/emulated/grid.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace gdrx::emulated {

std::uint32_t Warp::least(std::uint32_t mine) {
  values_[threadIdx.x % 32] = mine;
  meet();
  const std::uint32_t found = *std::min_element(values_.begin(), values_.end());
  meet();
  return found;
}

Block::Block(int threads) : meeting_(threads), said_(static_cast<std::size_t>(threads), 0) {
  std::memset(memory, 0xa5, sizeof memory);  // as a GPU: what was there before
  for (int first = 0; first < threads; first += 32) {
    warps_.emplace_back(std::min(32, threads - first));
  }
}

bool Block::any(bool mine) {
  said_[threadIdx.x] = mine ? 1 : 0;
  meet();
  const bool found =
      std::any_of(said_.begin(), said_.end(), [](std::uint8_t one) { return one != 0; });
  meet();
  return found;
}

void Block::leave() {
  said_[threadIdx.x] = 0;
  warp().leave();
  meeting_.arrive_and_drop();
}

void Stream::add(int blocks, int threads, std::function<void()> kernel) {
  kernels_.push_back({blocks, threads, std::move(kernel)});
}

void Stream::run() {
  for (; !kernels_.empty(); kernels_.pop_front()) {
    const Kernel& kernel = kernels_.front();
    std::deque<Block> blocks;
    for (int i = 0; i < kernel.blocks; ++i) blocks.emplace_back(kernel.threads);
    std::vector<std::thread> threads;
    for (int b = 0; b < kernel.blocks; ++b) {
      for (int t = 0; t < kernel.threads; ++t) {
        threads.emplace_back([&, b, t] {
          threadIdx.x = static_cast<std::uint32_t>(t);
          blockIdx.x = static_cast<std::uint32_t>(b);
          blockDim.x = static_cast<std::uint32_t>(kernel.threads);
          gridDim.x = static_cast<std::uint32_t>(kernel.blocks);
          block = &blocks[static_cast<std::size_t>(b)];
          kernel.body();
          block->leave();
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
  }
}

void run(std::vector<Stream>& streams) {
  std::vector<std::thread> threads;
  for (Stream& stream : streams) threads.emplace_back([&stream] { stream.run(); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace gdrx::emulated
