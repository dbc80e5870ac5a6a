// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/moved.hpp"

#include <algorithm>

#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {

namespace {

const Run& run_of(const Moves& what, std::size_t peer, bool sends) {
  return (sends ? what.sends : what.receives)[peer];
}

const std::uint8_t* place_of(const Moves& what, std::size_t peer, bool sends) {
  const void* const buffer = sends ? what.input : what.output;
  return static_cast<const std::uint8_t*>(buffer) + run_of(what, peer, sends).at;
}

Message message_of(const Moves& what, std::size_t peer, bool sends, int ranks,
                   const PairChannels& channels) {
  const Run& run = run_of(what, peer, sends);
  return {const_cast<std::uint8_t*>(place_of(what, peer, sends)), run.bytes, 0,
          width_in_bulk(run.bytes, channels_of_moved(ranks, channels))};
}

/// Lines of one direction: those of peers that give and get at the same place, or the others'.
class Lines {
 public:
  Lines(const Moves& what, MovedMessages& call, std::uint64_t least)
      : what_(what), call_(call), least_(least) {}

  void add(bool sends, bool paired) {
    // Who passes on what it gets sends no other way.
    if (sends && what_.passes_on && call_.rank != index(what_.root)) return;
    for (int step = 1; step < call_.ranks; ++step) {
      const bool up = sends || paired;  // in the same order both ways
      const auto peer =
          static_cast<std::size_t>((call_.rank + (up ? step : call_.ranks - step)) % call_.ranks);
      if (!goes_as_message(what_, run_of(what_, peer, sends), least_) || is_paired(peer) != paired)
        continue;
      add(peer, sends);
    }
  }

 private:
  bool is_paired(std::size_t peer) const {
    return goes_as_message(what_, what_.sends[peer], least_) &&
           what_.sends[peer].bytes == what_.receives[peer].bytes &&
           place_of(what_, peer, true) == place_of(what_, peer, false);
  }
  void add(std::size_t peer, bool sends) {
    Message& message = call_.messages[used_];
    message = message_of(what_, peer, sends, call_.ranks, call_.channels);
    if (what_.passes_on && !sends && peer == static_cast<std::size_t>(index(what_.root))) {
      call_.relay_from = static_cast<std::uint32_t>(peer);
      call_.relayed = message;
      call_.relays = channels_of_message(message);
      return;
    }
    PairLine& line = call_.lines[call_.lines_used++];
    line.peer = static_cast<std::uint32_t>(peer);
    line.sends = sends ? 1 : 0;
    line.first = used_;
    line.end = ++used_;
    line.end_task = call_.tasks += channels_of_message(message);
  }

  const Moves& what_;
  MovedMessages& call_;
  std::uint64_t least_;
  std::uint32_t used_ = 0;
};

void add_own(const Moves& what, MovedMessages& call) {
  const auto self = static_cast<std::size_t>(call.rank);
  call.first_copy = call.end_copy = call.lines_used;
  if (what.sends[self].bytes == 0) return;
  call.messages[call.end_copy++] = {
      const_cast<std::uint8_t*>(place_of(what, self, true)), what.sends[self].bytes,
      reinterpret_cast<std::uintptr_t>(place_of(what, self, false)), 0};
}

}  // namespace

std::uint64_t least_in_bulk(const Moves& what, int ranks, int self, int blocks) noexcept {
  const std::uint64_t least = least_in_bulk(ranks, blocks);
  if (ranks != 2) return least;
  const auto peer = static_cast<std::size_t>(1 - self);
  const std::uint64_t longest = std::max(what.sends[peer].bytes, what.receives[peer].bytes);
  return longest >= least ? kLeastInBulk : least;
}

bool goes_as_message(const Moves& what, const Run& run, std::uint64_t least) noexcept {
  if (what.adds || run.bytes == 0) return false;
  return what.passes_on || run.bytes >= least;
}

bool has_messages(const Moves& what, int ranks, int self, std::uint64_t least) noexcept {
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const bool goes = goes_as_message(what, what.sends[at], least) ||
                      goes_as_message(what, what.receives[at], least);
    if (rank != self && goes) return true;
  }
  return false;
}

MovedMessages messages_of_move(const Moves& what, const Call& entered, std::uint64_t least,
                               int blocks) {
  MovedMessages call;
  static_cast<Call&>(call) = entered;
  call.channels = channels_of_pair(call.ranks, blocks);
  Lines lines(what, call, least);
  lines.add(true, true);
  call.paired = call.tasks;
  lines.add(false, true);
  lines.add(true, false);
  lines.add(false, false);
  add_own(what, call);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(call.ranks); ++rank) {
    call.gives[rank] = what.sends[rank].bytes;
    call.gets[rank] = what.receives[rank].bytes;
  }
  return call;
}

PairGrid grid_of_moved(const MovedMessages& call, int blocks) noexcept {
  const std::uint64_t copied =
      call.end_copy == call.first_copy ? 0 : call.messages[call.first_copy].bytes;
  return grid_of_moved(call.tasks, call.relays, copied, blocks);
}

// A warp relays one channel at most.
int least_blocks_of_moved(const MovedMessages& call) noexcept {
  return least_blocks_of_relays(call.relays);
}

cudaError_t enqueue_moved(MovedMessages& call, bool alone, const PairGrid& grid,
                          cudaStream_t stream) {
  call.tiles_at_once = grid.tiles_at_once(call.channels);
  call.enters = alone ? 1 : 0;
  if (grid.blocks < least_blocks_of_pairs(call.tasks + call.relays)) {
    return launch_moved_in_turns(call, grid.blocks, stream);
  }
  return launch_moved(call, grid, stream);
}

}  // namespace gdrx::gpu
