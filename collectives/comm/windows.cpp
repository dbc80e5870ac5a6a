// SPDX-License-Identifier: Apache-2.0
// Registered GPU memory: every rank maps everybody's, or nobody does.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/comm/communicator.hpp"

namespace gdrx {

bool Communicator::shares(const void* memory) const {
  return gpu_ && !hierarchy_ && cuda::kind_of(memory) == MemoryKind::cuda;
}

const Communicator::Window* Communicator::window_of(const void* handle) const noexcept {
  const auto found = std::find_if(windows_.begin(), windows_.end(),
                                  [&](const Window& window) { return &window == handle; });
  return found == windows_.end() ? nullptr : &*found;
}

// Two rounds: what each rank offers, and whether each could map all of it. Between ranks that do
// not agree nothing stays open, and the communicator goes on as before.
Result<const Communicator::Window*> Communicator::open_window(std::span<std::byte> memory) {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  std::unique_ptr<gpu::Offer> offer;  // until everybody has mapped it
  const auto offered = [&]() -> Result<Blob> {
    const std::lock_guard lock(gpu_mutex_);
    offer = GDRX_TRY(gpu_->offer(memory.data(), memory.size()));
    return offer->ticket();
  }();
  const std::vector<Blob> tickets = GDRX_TRY(agree(offered));
  const auto opened = [&] {
    const std::lock_guard lock(gpu_mutex_);
    return gpu_->open_window(tickets, Deadline::after(steady_clock(), config_.init_timeout));
  }();
  const auto agreed = agree(opened ? Result<Blob>(Blob()) : tl::unexpected(opened.error()));
  if (!agreed) {
    const std::lock_guard lock(gpu_mutex_);
    if (opened) gpu_->close_window(*opened);
    return tl::unexpected(agreed.error());
  }
  return &windows_.emplace_back(Window{*opened});
}

// A rank unmaps when its own kernels have ended and all mean the same window. Nobody returns, to
// free his memory, before all have unmapped. Of a failed communicator every rank does it alone.
Result<void> Communicator::close_window(const Window* window) {
  const auto ended = [&]() -> Result<Blob> {
    GDRX_TRY(gpu_->finish());
    const auto bytes = std::as_bytes(std::span(&window->id, 1));
    return Blob(bytes.begin(), bytes.end());
  }();
  const auto agreed = agree(ended);
  if (!agreed && !failure_.happened()) return tl::unexpected(agreed.error());
  if (agreed) {
    const auto other = std::find_if(agreed->begin(), agreed->end(),
                                    [&](const Blob& id) { return id != agreed->front(); });
    if (other != agreed->end()) {
      return fail(Errc::mismatch, fmt::format("ranks 0 and {} deregister different memory: "
                                              "deregister in the same order on every rank",
                                              other - agreed->begin()));
    }
  }
  {
    const std::lock_guard lock(gpu_mutex_);
    gpu_->close_window(window->id);
  }
  windows_.remove_if([&](const Window& other) { return &other == window; });
  if (!agreed) return tl::unexpected(agreed.error());
  GDRX_TRY(agree(Blob()));
  return {};
}

// At the end, when this rank's kernels have ended. The barrier is leave()'s.
void Communicator::close_windows() noexcept {
  const std::lock_guard lock(gpu_mutex_);
  for (const Window& window : windows_) gpu_->close_window(window.id);
  windows_.clear();
}

}  // namespace gdrx
