// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_moves.hpp"

#include <algorithm>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {
namespace {

using gpu::Moves;
using gpu::Run;

std::size_t at(Rank rank) { return static_cast<std::size_t>(index(rank)); }

Moves begin(const Call& call) {
  Moves what;
  what.collective = call.collective;
  what.type = call.type;
  what.root = call.root;
  what.input = call.input;
  what.output = call.output;
  return what;
}

void leave_out_what_is_empty(Moves& what) {
  const auto empty = [](const Run& run) { return run.bytes == 0; };
  if (std::all_of(what.sends.begin(), what.sends.end(), empty)) what.input = nullptr;
  if (std::all_of(what.receives.begin(), what.receives.end(), empty)) what.output = nullptr;
}

Run bytes_of(const exec::Range& range, std::size_t element) {
  return {range.begin * element, range.count * element};
}

void broadcast(Moves& what, Bytes bytes, Rank self, int ranks) {
  what.receives[at(what.root)] = {0, bytes};
  if (self != what.root) return;
  for (int rank = 0; rank < ranks; ++rank) what.sends[static_cast<std::size_t>(rank)] = {0, bytes};
}

bool is_scan(Collective collective) noexcept {
  return collective == Collective::scan || collective == Collective::exscan;
}

// From all below to all above, as the one-shot plans do. The first rank of an exscan gets nothing,
// and its output stays as it is.
void scan(Moves& what, const Call& call, Bytes bytes, Rank self, int ranks) {
  const Run all{0, bytes};
  what.adds = call.op;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank < index(self)) what.receives[static_cast<std::size_t>(rank)] = all;
    if (rank > index(self)) what.sends[static_cast<std::size_t>(rank)] = all;
  }
  if (call.collective == Collective::scan) what.sends[at(self)] = what.receives[at(self)] = all;
}

// All of all ranks at the root, which adds it up.
void reduce_to_root(Moves& what, const Call& call, Bytes bytes, Rank self, int ranks) {
  const Run all{0, bytes};
  what.adds = call.op;
  if (self != call.root) {
    what.sends[at(call.root)] = all;
    return;
  }
  for (int rank = 0; rank < ranks; ++rank) what.receives[static_cast<std::size_t>(rank)] = all;
  what.sends[at(self)] = all;
}

}  // namespace

bool by_moves(Collective collective) noexcept {
  const plan::CollectiveTraits& traits = plan::traits_of(collective);
  if (collective == Collective::send_recv) return false;
  return traits.by_messages() || collective == Collective::broadcast ||
         collective == Collective::all_gather_v || is_scan(collective);
}

// The kernels of allReduce send as much to every rank as to the root. From that size on the link
// that a move leaves free is worth more than what a small kernel saves; of more ranks the root's
// link carries more than theirs.
bool goes_by_moves(const Call& call, bool fixed, int ranks) noexcept {
  constexpr Bytes kLeast = 1 << 20;
  if (by_moves(call.collective)) return true;
  return !fixed && call.collective == Collective::reduce && ranks == 2 &&
         call.count * size_of(call.type) >= kLeast;
}

Moves moves_of(const Call& call, Rank self, int ranks) {
  Moves what = begin(call);
  const std::size_t element = size_of(call.type);
  if (call.collective == Collective::broadcast) {
    broadcast(what, call.count * element, self, ranks);
  } else if (call.collective == Collective::reduce) {
    reduce_to_root(what, call, call.count * element, self, ranks);
  } else if (is_scan(call.collective)) {
    scan(what, call, call.count * element, self, ranks);
  } else {
    for (const exec::Part& part : call.parts->receives) {
      what.receives[at(part.peer)] = bytes_of(part.range, element);
    }
    for (const exec::Part& part : call.parts->sends) {
      what.sends[at(part.peer)] = bytes_of(part.range, element);
    }
  }
  if (call.collective == Collective::all_gather_v) {
    const Bytes own = what.receives[at(self)].bytes;
    for (int rank = 0; rank < ranks; ++rank) what.sends[static_cast<std::size_t>(rank)] = {0, own};
  }
  leave_out_what_is_empty(what);
  return what;
}

// From the root leave n - 1 times the bytes, or all of them once and a hop more.
bool passes_on(Bytes bytes, int ranks) noexcept { return ranks > 2 && bytes >= 4 << 20; }

// Or 2 (n - 1) / n times; the second kernel costs as much as 2 MiB on a link of 360 GB/s.
bool scatters_first(Bytes bytes, int ranks) noexcept {
  if (ranks < 3 || passes_on(bytes, ranks)) return false;
  const auto n = static_cast<Bytes>(ranks);
  return (n - 1) * (n - 2) * (bytes / n) >= 2 << 20;
}

std::vector<Moves> broadcast_in_pieces(const Call& call, Rank self, int ranks) {
  const Bytes bytes = call.count * size_of(call.type);
  const auto n = static_cast<std::size_t>(ranks);
  constexpr Bytes kUnit = 128;  // pieces begin where packs and lines of memory do
  const Bytes length = ((bytes + n - 2) / (n - 1) + kUnit - 1) / kUnit * kUnit;
  const auto piece = [&](std::size_t rank) {
    const Bytes first = std::min(bytes, ((rank + n - at(call.root)) % n - 1) * length);
    return Run{first, std::min(bytes - first, length)};
  };
  const bool is_root = self == call.root;
  std::vector<Moves> steps(passes_on(bytes, ranks) ? 1 : 2, begin(call));
  Moves& scatter = steps.front();
  Moves& share = steps.back();
  scatter.passes_on = steps.size() == 1;
  if (is_root) scatter.sends[at(self)] = scatter.receives[at(self)] = {0, bytes};
  if (!is_root) scatter.receives[at(call.root)] = piece(at(self));
  if (!is_root) share.input = call.output;
  for (std::size_t rank = 0; rank < n; ++rank) {
    if (rank == at(self) || rank == at(call.root)) continue;
    if (is_root) scatter.sends[rank] = piece(rank);
    if (!is_root) share.sends[rank] = piece(at(self));
    if (!is_root) share.receives[rank] = piece(rank);
  }
  for (Moves& step : steps) leave_out_what_is_empty(step);
  return steps;
}

bool moves_on_gpu(const Call& call, Rank self, int ranks, bool last_was_gpu,
                  const Buffers& buffers) {
  if (call.count == 0 && !plan::traits_of(call.collective).has_parts()) return true;
  const Moves what = moves_of(call, self, ranks);
  if (what.input != nullptr || what.output != nullptr) {
    return (what.input == nullptr || buffers.is_gpu(what.input)) &&
           (what.output == nullptr || buffers.is_gpu(what.output));
  }
  if (call.input != nullptr) return buffers.is_gpu(call.input);
  if (call.output != nullptr) return buffers.is_gpu(call.output);
  return call.stream != nullptr || last_was_gpu;
}

Result<void> Communicator::launch_moves(const Call& call, void* stream) {
  const bool has_parts = plan::traits_of(call.collective).has_parts();
  if (call.count == 0 && !has_parts) return {};
  const Bytes bytes = call.count * size_of(call.type);
  const bool in_pieces = call.collective == Collective::broadcast &&
                         (passes_on(bytes, size()) || scatters_first(bytes, size()));
  std::vector<Moves> steps;
  if (in_pieces) {
    steps = broadcast_in_pieces(call, rank_, size());
  } else {
    steps.push_back(moves_of(call, rank_, size()));
  }
  for (Moves& step : steps) step.timeout = settings_.timeout_of(call);
  GDRX_TRY(reach(steps[0].input, steps[0].output));
  GpuLaunch launch{steps[0].adds ? "add" : "move", bytes};
  launch.moves = steps;
  return enqueue_launch(launch, stream);
}

}  // namespace gdrx
