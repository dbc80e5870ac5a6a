// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_called.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <thread>

#include "collectives/gpu/choose.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {
namespace {

// A kernel that waits tells about every millisecond. One that shares its GPU with other processes
// may have to wait for its turn.
constexpr std::chrono::milliseconds kTellsWithin{20};
constexpr std::chrono::milliseconds kTurn{1};

}  // namespace

std::string text_of(const gpu::Called& called, int ranks) {
  if (called.message) return "messages";
  if (called.moves) {
    const plan::CollectiveTraits& moved = plan::traits_of(called.collective);
    std::string text =
        fmt::format("{} of {}", to_string(called.collective), to_string(called.type));
    if (moved.reduces) text += fmt::format(", {}", to_string(called.op));
    if (moved.rooted) text += fmt::format(", root {}", called.root);
    return text;
  }
  if (called.collective == Collective::barrier) return std::string(to_string(called.collective));
  const plan::CollectiveTraits& traits = plan::traits_of(called.collective);
  std::uint64_t bytes = called.bytes;
  if (traits.has_blocks()) bytes /= static_cast<std::uint64_t>(ranks);
  std::string text = fmt::format("{} of {} {}", to_string(called.collective),
                                 bytes / size_of(called.type), to_string(called.type));
  if (called.collective != Collective::all_gather)
    text += fmt::format(", {}", to_string(called.op));
  if (traits.rooted) text += fmt::format(", root {}", called.root);
  const bool named = called.kernel <= static_cast<std::uint64_t>(gpu::Kernel::tree);
  return text + ", " +
         std::string(named ? gpu::to_string(static_cast<gpu::Kernel>(called.kernel)) : "relay");
}

void GpuWaits::look(const gpu::Path& path, int ranks, const std::function<Rank(Rank)>& rank_of,
                    Waiting& all) {
  const std::lock_guard lock(mutex_);
  const gpu::KernelWaits first = path.kernel_waits();
  gpu::KernelWaits now = first;
  const Deadline end = Deadline::after(steady_clock(), kTellsWithin);
  const auto unsure = [&](std::size_t peer) {
    return first.of[peer].told != told_[peer] && now.of[peer].told == first.of[peer].told;
  };
  const auto peers = std::views::iota(std::size_t{0}, told_.size());
  while (std::ranges::any_of(peers, unsure) && !end.passed(steady_clock().now())) {
    std::this_thread::sleep_for(kTurn);
    now = path.kernel_waits();
  }
  std::string late;
  std::chrono::milliseconds longest{};
  for (std::size_t peer = 0; peer < told_.size(); ++peer) {
    const gpu::KernelWaits::One& wait = now.of[peer];
    const bool waits = wait.told != first.of[peer].told;
    told_[peer] = first.of[peer].told;
    if (!waits) continue;
    const Rank rank = rank_of(Rank{static_cast<std::int32_t>(peer)});
    all.ranks.push_back(rank);
    longest = std::max(longest, wait.waited);
    late += fmt::format("{} rank {} ({})", late.empty() ? "" : ",", index(rank), wait.stage);
  }
  if (late.empty()) return;
  all.calls.push_back(
      {fmt::format("{}: a kernel on the GPU waits for{}", text_of(now.doing, ranks), late),
       longest});
}

}  // namespace gdrx
