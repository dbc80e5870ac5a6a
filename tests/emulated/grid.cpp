// SPDX-License-Identifier: Apache-2.0
#include "tests/emulated/grid.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/emulated/cuda/enqueue.hpp"
#include "tests/emulated/fibers.hpp"

namespace gdrx::emulated {
namespace {

void run_block(int index, int blocks, int threads, const std::function<void()>& kernel) {
  Block mine(threads);
  block = &mine;
  blockIdx.x = static_cast<std::uint32_t>(index);
  blockDim.x = static_cast<std::uint32_t>(threads);
  gridDim.x = static_cast<std::uint32_t>(blocks);
  run_fibers(threads, [&](int thread) {
    threadIdx.x = static_cast<std::uint32_t>(thread);
    try {
      kernel();
    } catch (const Ended&) {  // early
    }
    mine.leave();
  });
}

}  // namespace

void yield() {
  const Place self = threadIdx;
  switch_fiber();
  threadIdx = self;
}

void Meeting::pass() {
  arrived_ = 0;
  ++passed_;
  moved_on();
}

void Meeting::meet() {
  const std::uint64_t before = passed_;
  if (++arrived_ == members_) return pass();
  const Place self = threadIdx;
  wait_while(passed_, before);
  threadIdx = self;
}

void Meeting::leave() {
  if (--members_ > 0 && arrived_ == members_) pass();
}

void Warp::leave() {
  values_[threadIdx.x % 32] = ~0U;
  meeting_.leave();
}

std::uint32_t Warp::least(std::uint32_t mine) {
  values_[threadIdx.x % 32] = mine;
  meet();
  const std::uint32_t found = *std::min_element(values_.begin(), values_.end());
  meet();
  return found;
}

Block::Block(int threads)
    : meeting_(threads),
      said_(static_cast<std::size_t>(threads), 0),
      copies_(static_cast<std::size_t>(threads)) {
  std::memset(memory, 0xa5, sizeof memory);  // as a GPU: what was there before
  for (int first = 0; first < threads; first += 32) {
    warps_.emplace_back(std::min(32, threads - first));
  }
}

std::uint8_t* Block::staged() {
  if (staged_.empty()) staged_.resize(kStaged, 0xa5);
  return staged_.data();
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
  meeting_.leave();
}

cudaError_t launch(cudaStream_t stream, int blocks, int threads, std::function<void()> kernel) {
  return enqueue(stream, [=, kernel = std::move(kernel)] {
    std::vector<std::thread> others;
    for (int b = 1; b < blocks; ++b) {
      others.emplace_back(run_block, b, blocks, threads, std::cref(kernel));
    }
    run_block(0, blocks, threads, kernel);
    for (std::thread& other : others) other.join();
  });
}

}  // namespace gdrx::emulated
