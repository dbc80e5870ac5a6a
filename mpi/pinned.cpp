// SPDX-License-Identifier: Apache-2.0
#include "mpi/pinned.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <mutex>

namespace gdrx::mpi {
namespace {

struct Pool {
  std::mutex mutex;
  std::multimap<std::size_t, Pinned> kept;  // by their room
  std::size_t held = 0;                     // bytes that are pinned, in use and kept
  std::size_t refused = ~std::size_t{0};    // so much, and more, CUDA did not pin
  bool ended = false;
};
Pool& pool() noexcept {
  static auto& ours = *new Pool;  // copies may end while the program does
  return ours;
}

// Four sizes to each power of two: at most a quarter of it is nobody's.
std::size_t room_for(std::size_t bytes) noexcept {
  constexpr std::size_t kLeast = std::size_t{64} << 10;
  const std::size_t step = std::max(kLeast, std::bit_floor(bytes) / 4);
  return (bytes + step - 1) / step * step;
}

// Nothing is given back to CUDA on the way: it would wait for all that the GPU does, and that may
// wait for this call. Where CUDA gives none, it is not asked for so much again.
Pinned take(std::size_t& room, const void* gpu) {
  Pool& ours = pool();
  const std::lock_guard lock(ours.mutex);
  if (ours.ended) return {};
  const bool may_pin =
      room < ours.refused && room <= kMostPinned && ours.held <= kMostPinned - room;
  const auto found = ours.kept.lower_bound(room);
  if (found != ours.kept.end() && found->first / 4 <= room) {
    room = found->first;
    const Pinned memory = found->second;
    ours.kept.erase(found);
    return memory;
  }
  if (!may_pin) return {};
  const Pinned memory = pin(room, gpu);
  if (memory.at == nullptr) {
    ours.refused = room;
  } else {
    ours.held += room;
  }
  return memory;
}

void give_back(const Pinned& memory, std::size_t room) noexcept {
  Pool& ours = pool();
  const std::lock_guard lock(ours.mutex);
  if (!ours.ended) {
    try {
      ours.kept.emplace(room, memory);
      return;
    } catch (const std::exception&) {  // no memory for the list: it is not kept
    }
  }
  ours.held -= room;
  unpin(memory);
}

}  // namespace

// CUDA copies little as fast from anywhere, and many small messages would have the pool.
HostMemory::HostMemory(std::size_t bytes, const void* gpu) : room_(room_for(bytes)) {
  constexpr std::size_t kLittle = std::size_t{16} << 10;
  if (bytes > kLittle) pinned_ = take(room_, gpu);
  at_ = pinned_.at != nullptr ? pinned_.at : new std::byte[bytes];
}

HostMemory::~HostMemory() {
  if (pinned_.at != nullptr) {
    give_back(pinned_, room_);
  } else {
    delete[] at_;
  }
}

void end_pinned() noexcept {
  Pool& ours = pool();
  const std::lock_guard lock(ours.mutex);
  ours.ended = true;
  for (const auto& [room, memory] : ours.kept) {
    ours.held -= room;
    unpin(memory);
  }
  ours.kept.clear();
}

}  // namespace gdrx::mpi
