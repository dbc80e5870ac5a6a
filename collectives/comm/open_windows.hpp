// SPDX-License-Identifier: Apache-2.0
// GPU memory that every rank reaches, as its communicator knows it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "collectives/gpu/path.hpp"

namespace gdrx {

struct Window {
  gpu::WindowId id{};
  std::unique_ptr<gpu::Memory> memory;  // of allocate_gpu_memory(); null: the caller's
  std::uint64_t bytes = 0;              // that were asked for
};

class OpenWindows {
 public:
  /// Its address, a user's handle, stays.
  Window& add(gpu::WindowId id, std::uint64_t bytes) {
    return windows_.emplace_back(Window{id, nullptr, bytes});
  }
  bool empty() const noexcept { return windows_.empty(); }
  auto begin() const noexcept { return windows_.begin(); }
  auto end() const noexcept { return windows_.end(); }
  /// Null: the handle is none of them.
  const Window* of(const void* handle) const noexcept {
    return find([&](const Window& window) { return &window == handle; });
  }
  /// Null: it is no memory of ours.
  const Window* with(const void* memory) const noexcept {
    return find(
        [&](const Window& window) { return window.memory && window.memory->data() == memory; });
  }
  /// Whether another is of its memory, too.
  bool is_shared(const Window& window) const noexcept {
    return find([&](const Window& other) { return &other != &window && other.id == window.id; }) !=
           nullptr;
  }
  /// Ends memory of ours, or this rank's hold on it (gpu/exportable_memory.hpp).
  void remove(const Window& window) noexcept {
    windows_.remove_if([&](const Window& other) { return &other == &window; });
  }
  void close(gpu::DeviceMemory& memory) noexcept {
    for (const Window& window : windows_) memory.close_window(window.id);
    windows_.clear();
  }

 private:
  template <class Is>
  const Window* find(Is is) const noexcept {
    const auto found = std::find_if(windows_.begin(), windows_.end(), is);
    return found == windows_.end() ? nullptr : &*found;
  }

  std::list<Window> windows_;
};

}  // namespace gdrx
