// SPDX-License-Identifier: Apache-2.0
#include "tests/emulated/grid.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/emulated/cuda/enqueue.hpp"
#include "tests/emulated/fibers.hpp"

namespace gdrx::emulated {
namespace {

int blocks_with_room() {
  const char* text = std::getenv("GDRX_TEST_EMULATED_ROOM");
  return text != nullptr ? std::atoi(text) : 0;
}
int room_of_gpus = blocks_with_room();

/// A GPU's multiprocessors: who came first is served first, and nobody overtakes.
class Room {
 public:
  /// For so many blocks; the first one's number in the queue.
  std::uint64_t queue(int blocks) {
    const std::lock_guard lock(mutex_);
    return std::exchange(last_, last_ + static_cast<std::uint64_t>(blocks));
  }
  void take(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ == number && taken_ < room_of_gpus; });
    ++next_;
    ++taken_;
    changed_.notify_all();
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --taken_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t last_ = 0, next_ = 0;
  int taken_ = 0;
};

Room& room_of(int device) {
  static std::array<Room, 64>& all = *new std::array<Room, 64>;  // streams outlive main()
  return all[static_cast<std::size_t>(device) % all.size()];
}

/// What a thread of the GPU finds when it goes on: others had the CPU's thread meanwhile.
struct Self {
  Place thread = threadIdx, block = blockIdx, grid = gridDim;
  void restore() const {
    threadIdx = thread;
    blockIdx = block;
    gridDim = grid;
  }
};

void run_block(int index, int blocks, int threads, const std::function<void()>& kernel) {
  Block mine(threads);
  block = &mine;
  blockDim.x = static_cast<std::uint32_t>(threads);
  run_fibers(threads, [&](int thread) {
    threadIdx.x = static_cast<std::uint32_t>(thread);
    blockIdx.x = static_cast<std::uint32_t>(index);
    gridDim.x = static_cast<std::uint32_t>(blocks);
    try {
      kernel();
    } catch (const Ended&) {  // early
    }
    mine.leave();
  });
}

}  // namespace

void yield() {
  const Self self;
  switch_fiber();
  self.restore();
}

void Meeting::pass() {
  arrived_ = 0;
  ++passed_;
  moved_on();
}

void Meeting::meet() {
  const std::uint64_t before = passed_;
  if (++arrived_ == members_) return pass();
  const Self self;
  wait_while(passed_, before);
  self.restore();
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

void set_room(int blocks) { room_of_gpus = blocks; }

cudaError_t launch(cudaStream_t stream, int blocks, int threads, std::function<void()> kernel) {
  int device = 0;
  cudaGetDevice(&device);
  return enqueue(stream, [=, kernel = std::move(kernel)] {
    Room& room = room_of(device);
    const std::uint64_t first = room_of_gpus > 0 ? room.queue(blocks) : 0;
    const auto run = [&](int b) {
      if (room_of_gpus > 0) room.take(first + static_cast<std::uint64_t>(b));
      run_block(b, blocks, threads, kernel);
      if (room_of_gpus > 0) room.leave();
    };
    std::vector<std::thread> others;
    for (int b = 1; b < blocks; ++b) others.emplace_back(run, b);
    run(0);
    for (std::thread& other : others) other.join();
  });
}

}  // namespace gdrx::emulated
