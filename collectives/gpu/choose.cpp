// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/choose.hpp"

#include <algorithm>
#include <iterator>

namespace gdrx::gpu {
namespace {

constexpr Kernel kKernels[] = {Kernel::one_shot, Kernel::two_shot, Kernel::ring, Kernel::direct,
                               Kernel::tree};
static_assert(std::size(kKernels) == kAllReduceKernels);

int round_up(std::uint64_t value, int unit) {
  return static_cast<int>((value + static_cast<std::uint64_t>(unit) - 1) /
                          static_cast<std::uint64_t>(unit)) *
         unit;
}

// Of one-shot in tiles: so many, of a pack a thread, keep the link between two H200 busy.
constexpr int kBusyBlocks = 82;
constexpr std::uint64_t kMostPacksAThread = 8;

// Enough threads for `work` packs of one each, within the budget. Blocks before threads: each
// multiprocessor has its own way out of the GPU.
void spread(Shape& shape, std::uint64_t work, const Host& host) {
  const int widest = widest_block(shape, host.ranks);
  const int blocks = host.blocks * (kThreads / widest);
  const std::uint64_t most =
      static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(widest);
  const std::uint64_t wanted = std::clamp<std::uint64_t>(work, 1, most);
  const std::uint64_t wide = wanted <= 16384 ? 64 : 128;
  shape.threads = std::clamp(round_up((wanted + wide - 1) / wide, 32), 64, widest);
  shape.blocks = static_cast<int>((wanted + static_cast<std::uint64_t>(shape.threads) - 1) /
                                  static_cast<std::uint64_t>(shape.threads));
  if (shape.blocks > blocks) {
    shape.blocks = blocks;
    shape.threads = round_up(
        (wanted + static_cast<std::uint64_t>(blocks) - 1) / static_cast<std::uint64_t>(blocks), 32);
  }
}

// Fitted to graph replay on 2 and 4 H200 (NVLink 4 between all pairs); us = start + bytes out of a
// GPU / rate. They rank kernels; a figure in a report is never one of these.
struct Cost {
  double base;      // us, of no rank
  double per_rank;  // us
  double rate;      // bytes a us, out of each GPU
};
constexpr Cost kOneShot{2.2, 0.3, 320e3};
constexpr Cost kOneShotTiled{4.0, 0.5, 352e3};
constexpr Cost kTwoShot{1.7, 0.8, 325e3};
constexpr Cost kTwoShotTiled{11.0, 1.0, 330e3};
constexpr Cost kRing{6.0, 2.0, 352e3};
constexpr Cost kTree{12.0, 1.0, 330e3};  // a guess, never compared: see predictions()
constexpr Cost kMove{2.2, 0.3, 310e3};
// Loads from several peers at once are slower than from one.
constexpr Cost kDirectOfTwo{5.5, 1.6, 340e3};
constexpr Cost kDirect{5.5, 1.6, 310e3};

double time_of(const Cost& cost, int ranks, double out) {
  return cost.base + cost.per_rank * ranks + out / cost.rate;
}

double predict(const Shape& shape, int ranks, std::uint64_t bytes) {
  const double n = ranks;
  const auto size = static_cast<double>(bytes);
  const auto time = [&](const Cost& cost, double out) { return time_of(cost, ranks, out); };
  switch (shape.kernel) {
    case Kernel::one_shot:
      return time(shape.tiled ? kOneShotTiled : kOneShot, (n - 1) * size);
    case Kernel::two_shot:
      return time(shape.whole ? kTwoShotTiled : kTwoShot, 2 * (n - 1) / n * size);
    case Kernel::ring:
      return time(kRing, 2 * (n - 1) / n * size);
    case Kernel::direct:
      return time(ranks == 2 ? kDirectOfTwo : kDirect, 2 * (n - 1) / n * size);
    case Kernel::tree:
      return time(kTree, 2 * size);
    case Kernel::reduce_scatter:
    case Kernel::all_gather:
      break;  // nothing to choose from
  }
  return 0;
}

}  // namespace

std::size_t place_of(Kernel kernel) noexcept {
  const auto* found = std::find(std::begin(kKernels), std::end(kKernels), kernel);
  return static_cast<std::size_t>(found - std::begin(kKernels));
}

int co_resident_blocks(std::span<const Ticket> tickets, int budget) noexcept {
  int least = budget;
  for (const Ticket& ticket : tickets) {
    const auto sharing = std::count_if(tickets.begin(), tickets.end(), [&](const Ticket& other) {
      return other.device == ticket.device;
    });
    const int room = ticket.processors - 1;
    least = std::min(least, room / static_cast<int>(sharing));
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
    spread(shape, packs, host);
    // Beyond some packs a thread tiles are faster: what comes is emptied while the rest is sent.
    const auto threads = static_cast<std::uint64_t>(shape.blocks * shape.threads);
    const bool many = host.ranks == 2 && packs > kMostPacksAThread * threads;
    if (!many && fits(shape, host.ranks, packs)) return shape;
    if (host.ranks != 2) return std::nullopt;
    shape.tiled = true;
    // Two a multiprocessor where there are few. Of a large vector fewer packs under way keep the
    // link as busy.
    const bool large = bytes >= (32 << 20);
    const int busy = std::min(2 * host.blocks, kBusyBlocks);
    shape.threads = widest_block(shape, host.ranks);
    shape.blocks = large ? busy : std::clamp(host.blocks, busy, kRoomBlocks);
    shape.unroll = large && busy == kBusyBlocks ? 1 : 2;
    return fits(shape, host.ranks, packs) ? std::optional(shape) : std::nullopt;
  }
  if (kernel == Kernel::direct) {
    shape.whole = true;
    shape.unroll = unroll_of_blocks(host.ranks);
    const auto unroll = static_cast<std::uint64_t>(shape.unroll);
    Host half = host;  // as fast as the whole GPU: loads of peers' memory are what bounds it
    half.blocks = std::max(1, host.blocks / 2);
    spread(shape, (part + unroll - 1) / unroll, half);
    return fits(shape, host.ranks, packs) ? std::optional(shape) : std::nullopt;
  }
  // One tile if it can be: no barrier at entry.
  if (kernel == Kernel::two_shot) {
    for (shape.unroll = 1; shape.unroll <= 4; shape.unroll *= 2) {
      const auto unroll = static_cast<std::uint64_t>(shape.unroll);
      spread(shape, (part + unroll - 1) / unroll, host);
      if (fits(shape, host.ranks, packs)) return shape;
    }
  }
  shape.whole = true;
  shape.threads = widest_block(shape, host.ranks);
  const int most = host.blocks * (kThreads / shape.threads);
  // Blocks before packs in flight a thread.
  for (const int least : {most, most * 2 / 3, most / 2, most / 4, 1}) {
    for (shape.unroll = 4; shape.unroll >= 1; shape.unroll /= 2) {
      for (shape.blocks = most; shape.blocks >= std::max(1, least); --shape.blocks) {
        if (fits(shape, host.ranks, packs)) return shape;
      }
    }
  }
  return std::nullopt;
}

namespace {

// A kernel of blocks that uses the whole arena begins with the first slot and has four sets of
// them; any other begins with the first of either half and has one.
bool fits_beside_rail(const Shape& shape, const Host& host, std::uint64_t packs) {
  if (!fits(shape, host.ranks, packs)) return false;
  const std::uint64_t set = static_cast<std::uint64_t>(host.ranks - 1) *
                            static_cast<std::uint64_t>(shape.unroll * shape.threads) *
                            static_cast<std::uint64_t>(shape.blocks);
  const std::uint64_t end = shape.whole ? 4 * set : kSlots / 2 + set;
  return !host.rail || end <= kSlots - kRailBytes / sizeof(Pack);
}

}  // namespace

Shape shape_of_blocks(Kernel kernel, const Host& host, std::uint64_t block) {
  const std::uint64_t packs = packs_of(block);
  const auto unroll = static_cast<std::uint64_t>(unroll_of_blocks(host.ranks));
  Shape shape;
  shape.kernel = kernel;
  shape.unroll = static_cast<int>(unroll);
  spread(shape, (packs + unroll - 1) / unroll, host);
  if (fits_beside_rail(shape, host, packs)) return shape;  // one tile, no barrier at entry
  shape.whole = true;
  shape.threads = widest_block(shape, host.ranks);
  shape.blocks = host.blocks * (kThreads / shape.threads);
  while (shape.blocks > 1 && !fits_beside_rail(shape, host, packs)) --shape.blocks;
  return shape;
}

namespace {

bool in_rank_order(Kernel kernel) { return kernel != Kernel::ring && kernel != Kernel::tree; }

}  // namespace

std::optional<Prediction> prediction_of(Kernel kernel, const Host& host, std::uint64_t bytes) {
  if (!in_rank_order(kernel) && host.reproducible) return std::nullopt;
  const auto shape = shape_of(kernel, host, bytes);
  if (!shape) return std::nullopt;
  return Prediction{*shape, predict(*shape, host.ranks, bytes)};
}

double move_us(const Host& host, std::uint64_t bytes) noexcept {
  return time_of(kMove, host.ranks, static_cast<double>(bytes));
}

std::optional<Kernel> kernel_of(plan::Algorithm algorithm) noexcept {
  if (algorithm == plan::Algorithm::one_shot) return Kernel::one_shot;
  if (algorithm == plan::Algorithm::two_shot) return Kernel::two_shot;
  if (algorithm == plan::Algorithm::ring) return Kernel::ring;
  if (algorithm == plan::Algorithm::tree) return Kernel::tree;
  return std::nullopt;
}

std::optional<Prediction> asked_for(std::optional<plan::Algorithm> algorithm, const Host& host,
                                    std::uint64_t bytes) {
  const auto kernel = algorithm ? kernel_of(*algorithm) : std::nullopt;
  return kernel ? prediction_of(*kernel, host, bytes) : std::nullopt;
}

namespace {

// By place_of(). Measured times are compared with measured ones, the model's with the model's.
std::array<std::optional<Prediction>, kAllReduceKernels> predictions(const Host& host,
                                                                     std::uint64_t bytes,
                                                                     bool direct) {
  std::array<std::optional<Prediction>, kAllReduceKernels> all;
  bool measured = true;
  for (std::size_t i = 0; i < kAllReduceKernels; ++i) {
    if (kKernels[i] == Kernel::direct && !direct) continue;
    if (!in_rank_order(kKernels[i]) && host.ranks > 2 && bytes <= kSameBitsBytes) continue;
    const bool has_time = tune::time_of(host.measured[i], bytes).has_value();
    // By the model it has no place: more latencies than one-shot, more bytes than two-shot.
    if (kKernels[i] == Kernel::tree && !has_time) continue;
    all[i] = prediction_of(kKernels[i], host, bytes);
    measured = measured && (!all[i] || has_time);
  }
  if (!measured) {
    all[place_of(Kernel::tree)].reset();
    return all;
  }
  for (std::size_t i = 0; i < kAllReduceKernels; ++i) {
    if (!all[i]) continue;
    all[i]->us = *tune::time_of(host.measured[i], bytes);
    all[i]->measured = true;
  }
  return all;
}

}  // namespace

std::vector<Prediction> candidates(const Host& host, std::uint64_t bytes, bool direct) {
  std::vector<Prediction> all;
  for (const auto& made : predictions(host, bytes, direct)) {
    if (made) all.push_back(*made);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Prediction& a, const Prediction& b) { return a.us < b.us; });
  return all;
}

// On the way of every call: no list, no heap.
Prediction best(const Host& host, std::uint64_t bytes, bool direct) {
  std::optional<Prediction> found;
  for (const auto& made : predictions(host, bytes, direct)) {
    if (made && (!found || made->us < found->us)) found = made;
  }
  return *found;  // two-shot in tiles carries any size
}

std::string_view to_string(Kernel kernel) noexcept {
  switch (kernel) {
    case Kernel::one_shot:
      return "one-shot";
    case Kernel::two_shot:
      return "two-shot";
    case Kernel::ring:
      return "ring";
    case Kernel::reduce_scatter:
      return "reduce-scatter";
    case Kernel::all_gather:
      return "all-gather";
    case Kernel::direct:
      return "direct";
    case Kernel::tree:
      return "tree";
  }
  return "?";
}

}  // namespace gdrx::gpu
