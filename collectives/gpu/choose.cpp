// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/choose.hpp"

#include <algorithm>

namespace gdrx::gpu {
namespace {

constexpr int kKernelCount = 3;

int round_up(std::uint64_t value, int unit) {
  return static_cast<int>((value + static_cast<std::uint64_t>(unit) - 1) /
                          static_cast<std::uint64_t>(unit)) *
         unit;
}

// Enough threads for `work` packs of one each, within the budget.
void spread(Shape& shape, std::uint64_t work, int blocks) {
  const std::uint64_t most = static_cast<std::uint64_t>(blocks) * kThreads;
  const std::uint64_t wanted = std::clamp<std::uint64_t>(work, 1, most);
  // Few packs go over several blocks: each SM has its own way out of the GPU.
  shape.threads = wanted < 4096 ? std::min(kThreads, round_up((wanted + 3) / 4, 32)) : kThreads;
  shape.blocks = static_cast<int>((wanted + static_cast<std::uint64_t>(shape.threads) - 1) /
                                  static_cast<std::uint64_t>(shape.threads));
  shape.blocks = std::min(shape.blocks, blocks);
}

// Measured on 2, 4 and 8 H200 (NVLink 4, all pairs): a hop, and bytes a microsecond each way.
constexpr double kCallUs = 1.4;
constexpr double kHopUs = 1.1;
constexpr double kAllToAll = 330e3;
constexpr double kOneNeighbour = 365e3;
constexpr double kWholeUs = 2.5;  // the barrier at entry

double predict(const Shape& shape, int ranks, std::uint64_t bytes) {
  const double n = ranks;
  const auto size = static_cast<double>(bytes);
  switch (shape.kernel) {
    case Kernel::one_shot:
      return kCallUs + kHopUs + (n - 1) * size / kAllToAll;
    case Kernel::two_shot:
      return kCallUs + 2 * kHopUs + (shape.whole ? kWholeUs : 0) +
             2 * (n - 1) / n * size / kAllToAll;
    case Kernel::ring:
      return kCallUs + kWholeUs + 2 * (n - 1) * kHopUs + 2 * (n - 1) / n * size / kOneNeighbour;
  }
  return 0;
}

}  // namespace

int co_resident_blocks(std::span<const Ticket> tickets, int budget) noexcept {
  int least = budget;
  for (const Ticket& ticket : tickets) {
    const auto sharing = std::count_if(tickets.begin(), tickets.end(), [&](const Ticket& other) {
      return other.device == ticket.device;
    });
    least = std::min(least, ticket.processors / static_cast<int>(sharing));
  }
  return std::max(1, least);
}

std::optional<Shape> shape_of(Kernel kernel, const Host& host, std::uint64_t bytes) {
  const std::uint64_t packs = packs_of(bytes);
  const auto n = static_cast<std::uint64_t>(host.ranks);
  const std::uint64_t part = (packs + n - 1) / n;
  Shape shape;
  shape.kernel = kernel;
  if (kernel == Kernel::one_shot) {
    spread(shape, packs, host.blocks);
    return fits(shape, host.ranks, packs) ? std::optional(shape) : std::nullopt;
  }
  // One tile if it can be: no barrier at entry.
  if (kernel == Kernel::two_shot) {
    for (shape.unroll = 1; shape.unroll <= 4; shape.unroll *= 2) {
      const auto unroll = static_cast<std::uint64_t>(shape.unroll);
      spread(shape, (part + unroll - 1) / unroll, host.blocks);
      if (fits(shape, host.ranks, packs)) return shape;
    }
  }
  shape.whole = true;
  shape.threads = kThreads;
  // Blocks before packs in flight a thread.
  for (const int least : {host.blocks, host.blocks * 3 / 4, 1}) {
    for (shape.unroll = 4; shape.unroll >= 1; shape.unroll /= 2) {
      for (shape.blocks = host.blocks; shape.blocks >= std::max(1, least); --shape.blocks) {
        if (fits(shape, host.ranks, packs)) return shape;
      }
    }
  }
  return std::nullopt;
}

std::vector<Prediction> candidates(const Host& host, std::uint64_t bytes) {
  std::vector<Prediction> all;
  for (int i = 0; i < kKernelCount; ++i) {
    const auto kernel = static_cast<Kernel>(i);
    if (kernel == Kernel::ring && host.reproducible) continue;
    const auto shape = shape_of(kernel, host, bytes);
    if (shape) all.push_back({*shape, predict(*shape, host.ranks, bytes)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Prediction& a, const Prediction& b) { return a.us < b.us; });
  return all;
}

Shape choose(const Host& host, std::uint64_t bytes) {
  return candidates(host, bytes).front().shape;
}

std::string_view to_string(Kernel kernel) noexcept {
  switch (kernel) {
    case Kernel::one_shot:
      return "one-shot";
    case Kernel::two_shot:
      return "two-shot";
    case Kernel::ring:
      return "ring";
  }
  return "?";
}

}  // namespace gdrx::gpu
