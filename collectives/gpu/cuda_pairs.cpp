// SPDX-License-Identifier: Apache-2.0
// From a rank's messages to a kernel that sends and receives them.
#include <algorithm>

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/gpu/signature.hpp"
#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {
namespace {

std::uint8_t* bytes_at(const void* memory) {
  return static_cast<std::uint8_t*>(const_cast<void*>(memory));
}

/// What goes into one launch.
struct PairLaunch {
  PairCall call;
  std::vector<Message> messages;
  std::uint64_t copied = 0;
};

/// Those to, or from, each peer, one behind the other, in the order of their calls.
void add_lines(PairLaunch& launch, const std::vector<Messages::One>& all, bool sends) {
  PairCall& call = launch.call;
  for (int step = 1; step < call.ranks; ++step) {
    const int peer = (call.rank + (sends ? step : call.ranks - step)) % call.ranks;
    PairLine line;
    line.peer = static_cast<std::uint32_t>(peer);
    line.sends = sends ? 1 : 0;
    line.first = static_cast<std::uint32_t>(launch.messages.size());
    std::uint32_t channels = 0;
    for (const Messages::One& one : all) {
      if (index(one.peer) != peer) continue;
      const Message message{bytes_at(one.at), one.bytes, signature_of_message(one.type),
                            width_of_message(one.bytes, call.channels)};
      channels = std::max(channels, channels_of_message(message));
      launch.messages.push_back(message);
    }
    line.end = static_cast<std::uint32_t>(launch.messages.size());
    if (line.end == line.first) continue;
    line.end_task = call.tasks += channels;
    call.lines[call.lines_used++] = line;
  }
}

void add_copies(PairLaunch& launch, const std::vector<Messages::Copy>& all) {
  launch.call.first_copy = static_cast<std::uint32_t>(launch.messages.size());
  for (const Messages::Copy& copy : all) {
    launch.messages.push_back(
        {bytes_at(copy.from), copy.bytes, reinterpret_cast<std::uintptr_t>(copy.to), 0});
    launch.copied += copy.bytes;
  }
  launch.call.end_copy = static_cast<std::uint32_t>(launch.messages.size());
}

/// Where a group has more messages than the arena has room for: the `part`-th so many of each pair
/// of ranks, so that what goes together on one rank does on its peers.
Messages part_of(const Messages& all, std::size_t part) {
  constexpr std::size_t kOfAPair = kMessages / (2 * kMaxRanks);
  Messages some;
  const auto take = [&](const std::vector<Messages::One>& from, std::vector<Messages::One>& to) {
    std::size_t seen[kMaxRanks] = {};
    for (const Messages::One& one : from) {
      if (seen[index(one.peer)]++ / kOfAPair == part) to.push_back(one);
    }
  };
  take(all.sends, some.sends);
  take(all.receives, some.receives);
  const auto at = [&](std::size_t of) { return std::min(all.copies.size(), of * kOfAPair); };
  some.copies.assign(all.copies.begin() + static_cast<std::ptrdiff_t>(at(part)),
                     all.copies.begin() + static_cast<std::ptrdiff_t>(at(part + 1)));
  some.timeout = all.timeout;
  return some;
}

std::size_t count_of(const Messages& all) {
  return all.sends.size() + all.receives.size() + all.copies.size();
}

Result<void> place(const std::vector<Message>& messages, const Call& call, cudaStream_t stream) {
  for (std::size_t first = 0; first < messages.size(); first += kMessagesAtOnce) {
    MessageBatch batch;
    batch.first = static_cast<std::uint32_t>(first);
    batch.count = std::min(kMessagesAtOnce, static_cast<std::uint32_t>(messages.size() - first));
    std::copy_n(messages.begin() + static_cast<std::ptrdiff_t>(first), batch.count, batch.messages);
    GDRX_TRY(check(launch_messages(batch, call, stream), "kernel launch"));
  }
  return {};
}

}  // namespace

/// What `to` gets from now on is behind what `from` has.
Result<void> CudaPath::join(cudaStream_t from, cudaStream_t to) {
  GDRX_TRY(check(cudaEventRecord(held_->order, from), "cudaEventRecord"));
  return check(cudaStreamWaitEvent(to, held_->order, 0), "cudaStreamWaitEvent");
}

/// The capture that they are all in.
Result<unsigned long long> CudaPath::together(std::span<void* const> streams) {
  const auto capture = GDRX_TRY(capture_of(static_cast<cudaStream_t>(streams.front())));
  for (void* other : streams.subspan(1)) {
    if (GDRX_TRY(capture_of(static_cast<cudaStream_t>(other))) == capture) continue;
    return fail(Errc::unsupported,
                "the streams of a group's sends and receives are captured together, or none is");
  }
  return capture;
}

Result<std::uint64_t> CudaPath::capture_of_all(std::span<void* const> streams) const {
  const OnDevice here(device_);
  const unsigned long long capture = GDRX_TRY(together(streams));
  GDRX_TRY(ahead_of(static_cast<cudaStream_t>(streams.front()), capture));
  return capture;
}

/// The first of them, which is then behind all.
Result<CudaPath::Last*> CudaPath::join_all(std::span<void* const> streams,
                                           unsigned long long capture) {
  auto* const first = static_cast<cudaStream_t>(streams.front());
  Last* const last = GDRX_TRY(follow(first, capture));
  for (void* other : streams) {
    if (other != first) GDRX_TRY(join(static_cast<cudaStream_t>(other), first));
  }
  return last;
}

Result<void> CudaPath::leave_all(std::span<void* const> streams) {
  auto* const first = static_cast<cudaStream_t>(streams.front());
  for (void* other : streams) {
    if (other != first) GDRX_TRY(join(first, static_cast<cudaStream_t>(other)));
  }
  return {};
}

Result<void> CudaPath::exchange(const Messages& what, int blocks) {
  const OnDevice here(device_);
  Last* const last = GDRX_TRY(join_all(what.streams, GDRX_TRY(together(what.streams))));
  if (count_of(what) <= kMessages) {
    GDRX_TRY(launch_exchange(what, blocks, *last));
  } else {
    Messages some;
    for (std::size_t part = 0; count_of(some = part_of(what, part)) > 0; ++part) {
      GDRX_TRY(launch_exchange(some, blocks, *last));
    }
  }
  return leave_all(what.streams);
}

Result<void> CudaPath::launch_exchange(const Messages& what, int blocks, Last& last) {
  PairLaunch launch;
  PairCall& call = launch.call;
  static_cast<Call&>(call) = call_;
  call.signature =
      signature_of_message({});  // for who hears of its waits: peers see each message's
  call.timeout_ns = timeout_of(what.timeout);
  call.channels = channels_of_pair(call.ranks, blocks);
  add_lines(launch, what.sends, true);
  add_lines(launch, what.receives, false);
  add_copies(launch, what.copies);
  if (launch.messages.size() > kMessagesAtOnce) {
    call.in_arena = 1;
    GDRX_TRY(place(launch.messages, call, last.stream));
  } else {
    std::copy(launch.messages.begin(), launch.messages.end(), call.messages);
  }
  const bool in_bulk =
      std::any_of(launch.messages.begin(), launch.messages.begin() + call.first_copy,
                  [](const Message& message) { return message.goes_in_bulk(); });
  PairGrid grid = grid_of_pairs(call.tasks, launch.copied, blocks, in_bulk);
  const int taken = take_share(grid.blocks, 1, last).blocks;
  if (taken < grid.blocks) grid = grid_of_pairs(call.tasks, launch.copied, taken, in_bulk);
  call.tiles_at_once = grid.tiles_at_once(call.channels);
  if (taken < least_blocks_of_pairs(call.tasks)) {
    return check(launch_pairs_in_turns(call, taken, last.stream), "kernel launch");
  }
  return check(launch_pairs(call, grid, last.stream), "kernel launch");
}

}  // namespace gdrx::gpu
