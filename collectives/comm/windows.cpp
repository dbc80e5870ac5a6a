// SPDX-License-Identifier: Apache-2.0
// Registered GPU memory: every rank maps everybody's, or nobody does.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

/// All ranks, or nobody: they all see the same tickets.
Result<bool> somebody_offers(const std::vector<Blob>& tickets) {
  const auto empty = [](const Blob& ticket) { return ticket.empty(); };
  const auto none = std::find_if(tickets.begin(), tickets.end(), empty);
  const auto some = std::find_if_not(tickets.begin(), tickets.end(), empty);
  if (none == tickets.end() || some == tickets.end()) return some != tickets.end();
  return fail(Errc::mismatch,
              fmt::format("rank {} allocates 0 bytes of GPU memory, rank {} more: all ranks "
                          "allocate as many",
                          none - tickets.begin(), some - tickets.begin()));
}

}  // namespace

bool Communicator::shares(const void* memory) const {
  return gpu_.path && !gpu_.rails.hierarchy() && cuda::kind_of(memory) == MemoryKind::cuda;
}

Result<const Window*> Communicator::open_window(std::span<std::byte> memory) {
  return share(memory.size(), [&] { return gpu_.path->offer(memory.data(), memory.size()); });
}

// The same on every rank: nobody has to be told.
Result<void> Communicator::check_gpu_memory() const {
  if (gpu_.rails.hierarchy()) {
    return fail(Errc::unsupported,
                "between hosts GPU memory is not registered: use memory of cudaMalloc as it is");
  }
  if (gpu_.path) return {};
  return fail(Errc::unsupported,
              fmt::format("the ranks share no GPU memory: {}; gdrxMemAlloc gives host memory, and "
                          "cudaMalloc's is taken, too",
                          gpu_.why_not));
}

// What was allocated ends with its window, or here if there is none.
Result<std::byte*> Communicator::allocate_gpu_memory(std::size_t bytes) {
  GDRX_TRY(check_gpu_memory());
  std::unique_ptr<gpu::Memory> memory;
  Window* const window =
      GDRX_TRY(share(bytes, [&]() -> Result<std::unique_ptr<gpu::ExportedMemory>> {
        if (bytes == 0) return nullptr;
        memory = GDRX_TRY(gpu_.path->allocate(bytes));
        return gpu_.path->offer(memory->data(), bytes);
      }));
  if (window == nullptr) return nullptr;
  window->memory = std::move(memory);
  return window->memory->data();
}

// Two rounds: what each rank offers, and whether each could map all of it. Between ranks that do
// not agree nothing stays open, and the communicator goes on as before. Null: nobody offers any.
Result<Window*> Communicator::share(
    std::uint64_t bytes,
    const std::function<Result<std::unique_ptr<gpu::ExportedMemory>>()>& make_offer) {
  if (failure_.happened()) return tl::unexpected(failure_.error());
  std::unique_ptr<gpu::ExportedMemory> offer;  // until everybody has mapped it
  const auto offered = [&]() -> Result<Blob> {
    const std::lock_guard lock(gpu_.mutex);
    offer = GDRX_TRY(make_offer());
    return offer ? offer->ticket() : Blob();
  }();
  const std::vector<Blob> tickets = GDRX_TRY(agree(offered));
  if (!GDRX_TRY(somebody_offers(tickets))) return nullptr;
  const auto opened = [&] {
    const std::lock_guard lock(gpu_.mutex);
    return gpu_.path->open_window(tickets,
                                  Deadline::after(steady_clock(), settings_.config.init_timeout));
  }();
  const auto agreed = agree(opened ? Result<Blob>(Blob()) : tl::unexpected(opened.error()));
  if (!agreed) {
    const std::lock_guard lock(gpu_.mutex);
    if (opened) gpu_.path->close_window(*opened);
    return tl::unexpected(agreed.error());
  }
  return &gpu_.windows.add(*opened, bytes);
}

// Memory of ours does not end under a registration of the user's.
Result<void> Communicator::check_sole_use(const Window& window) const {
  if (!window.memory || !gpu_.windows.is_shared(window)) return {};
  return fail(Errc::invalid_argument,
              "this memory is registered (gdrxRegister), too: deregister it before it is freed");
}

// A rank unmaps when its own kernels have ended and all mean the same window. Nobody returns, to
// free his memory, before all have unmapped. Of a failed communicator every rank does it alone.
Result<void> Communicator::close_window(const Window* window) {
  const auto ended = [&]() -> Result<Blob> {
    GDRX_TRY(check_sole_use(*window));
    const Deadline deadline = waiters_deadline(settings_.timeout);
    auto finished = gpu_.path->finish(deadline);
    // Of a failure it has looked up. What kernels use is unmapped behind them all the same.
    if (!finished && failure_.happened()) finished = gpu_.path->finish(deadline);
    GDRX_TRY(std::move(finished));
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
    const std::lock_guard lock(gpu_.mutex);
    gpu_.path->close_window(window->id);
  }
  // Between the two agreements, where no rank launches anything that the end might wait for.
  gpu_.windows.remove(*window);
  if (!agreed) return tl::unexpected(agreed.error());
  GDRX_TRY(agree(Blob()));
  return {};
}

// At the end, when this rank's kernels have ended. The barrier is leave()'s. Memory of ours that a
// peer still maps lives until he has come as far.
void Communicator::close_windows() noexcept {
  const std::lock_guard lock(gpu_.mutex);
  if (gpu_.path) gpu_.windows.close(*gpu_.path);
}

}  // namespace gdrx
