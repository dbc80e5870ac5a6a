// SPDX-License-Identifier: Apache-2.0
// What goes in bulk: see bulk.hpp. A block works on its tasks in rounds, a chunk of each a round:
// first it sends, then it passes on, then it receives. So whoever is behind all others never waits:
// what it awaits was sent or passed on in a phase before its own, and what it writes was taken in a
// round before. That holds however tasks lie on blocks.
//
// Its warps never meet: each waits for words by itself and counts what it has done. The last warp
// tells the peers what all are done with, behind a fence that holds up nobody else. A sender stays
// until all it sent is taken: the next call begins with empty rings.
#pragma once

#include "collectives/kernels/bulk.hpp"
#include "collectives/kernels/move.cuh"

namespace gdrx::gpu {

/// A channel of a run.
struct BulkTask {
  const BulkRun& run;
  std::uint32_t channel;
  std::uint32_t chunks;
};

class BulkRest {
 public:
  __device__ __forceinline__ explicit BulkRest(const BulkCall& call) : call_(call) {
    each([&](const BulkTask& task) { rounds_ = task.chunks > rounds_ ? task.chunks : rounds_; });
  }

  __device__ __forceinline__ void move(const Entry& entry, const Emptied& done,
                                       Patience& patience) const {
    Seen room, come;
    for (std::uint32_t round = 0; round < rounds_; ++round) {
      each_of(Bulk::send, round, [&](const BulkTask& task) {
        if (!has_room(task, task.run.peer, entry, round, patience, room)) return;
        Pack packs[kBulkUnroll];
        load(user(call_.input, task.run), chunk_of(task, round), packs);
        fill(task, task.run.peer, round, packs);
      });
      if (gave_up(patience)) return;
      done.set(kPhases * round + 1);
      each_of(Bulk::pass_on, round,
              [&](const BulkTask& task) { take(task, entry, round, patience, true, come, room); });
      if (gave_up(patience)) return;
      done.set(kPhases * round + 2);
      each_of(Bulk::receive, round,
              [&](const BulkTask& task) { take(task, entry, round, patience, false, come, room); });
      if (gave_up(patience)) return;
      done.set(kPhases * round + 3);
      copy_own(round * gridDim.x + blockIdx.x);
    }
    for (std::uint32_t chunk = rounds_ * gridDim.x + blockIdx.x; copy_own(chunk);) {
      chunk += gridDim.x;
    }
  }

  /// By the last warp.
  __device__ __forceinline__ void attend(const Entry& entry, const Emptied& done,
                                         Patience& patience) const {
    const std::uint32_t all = kPhases * rounds_;
    for (std::uint32_t told = 0; told < all;) {
      const std::uint32_t now = done.least(all);
      if (now == told) {
        // Who is waited for, and how long, is for the warps that wait to say.
        patience.more_without_end(call_.rank);
        if (gave_up(patience)) return;
        continue;
      }
      __syncwarp();
      tell(entry, told, now);
      told = now;
    }
    patience.more_without_end(call_.rank);  // from here on it waits for others
    each_of_lane([&](const BulkTask& task) {
      if (task.run.what == Bulk::receive) return;
      each_receiver(task, [&](int peer) {
        Seen seen;
        await(word(kBulkTakenAt, call_.rank, peer, task.channel), entry, task.chunks, peer,
              Stage::sending, patience, seen);
      });
    });
  }

 private:
  static constexpr std::uint32_t kPhases = 3;

  struct Seen {
    const Room* word = nullptr;
    std::uint32_t chunks = 0;
  };
  struct Part {
    std::uint64_t first;  // of the thread's packs in the run; they are kMovers apart
    std::uint64_t end;    // of the chunk
  };

  /// Any of a warp: what one of its threads did not move the others must not call done.
  __device__ __forceinline__ static bool gave_up(const Patience& patience) {
    return __reduce_min_sync(~0U, patience.over() ? 0U : 1U) == 0;
  }

  template <class Visit>
  __device__ __forceinline__ void each(Visit visit) const {
    for (std::uint32_t i = 0; i < call_.runs_used; ++i) {
      const BulkRun& run = call_.runs[i];
      const std::uint32_t before = run.first_task % gridDim.x;
      std::uint32_t channel =
          blockIdx.x >= before ? blockIdx.x - before : blockIdx.x + gridDim.x - before;
      for (; channel < call_.bulk.count; channel += gridDim.x) {
        visit(BulkTask{run, channel, run.chunks(channel, call_.bulk.count)});
      }
    }
  }
  template <class Visit>
  __device__ __forceinline__ void each_of(Bulk what, std::uint32_t round, Visit visit) const {
    each([&](const BulkTask& task) {
      if (task.run.what == what && round < task.chunks) visit(task);
    });
  }
  /// By the last warp: each task by one of its threads.
  template <class Visit>
  __device__ __forceinline__ void each_of_lane(Visit visit) const {
    std::uint32_t count = 0;
    each([&](const BulkTask& task) {
      if (count++ % 32 == threadIdx.x % 32) visit(task);
    });
  }
  /// To whom the task's chunks go.
  template <class Visit>
  __device__ __forceinline__ void each_receiver(const BulkTask& task, Visit visit) const {
    if (task.run.what == Bulk::send) visit(task.run.peer);
    if (task.run.what != Bulk::pass_on) return;
    for (int step = 1; step < call_.ranks; ++step) {
      const int peer = rank_above(call_, step);
      if (peer != task.run.peer) visit(peer);
    }
  }

  /// In `owner`'s arena.
  __device__ __forceinline__ Room* word(std::uint64_t at, int owner, int peer,
                                        std::uint32_t channel) const {
    const std::uint64_t number = static_cast<std::uint32_t>(peer) * call_.bulk.count + channel;
    return reinterpret_cast<Room*>(call_.arena[owner] + at + number * kBulkWordBytes);
  }
  /// `seen`: what the thread last saw of it. A look takes as long as a chunk.
  __device__ __forceinline__ bool await(const Room* word, const Entry& entry, std::uint32_t chunks,
                                        int peer, Stage stage, Patience& patience,
                                        Seen& seen) const {
    if (seen.word == word && seen.chunks >= chunks) return !patience.over();
    seen.word = word;
    while ((seen.chunks = emptied_by_peer(word, entry.calls)) < chunks) {
      if (!patience.more(peer, stage, blockIdx.x)) return false;
    }
    patience.arrived();
    return !patience.over();
  }
  __device__ __forceinline__ bool has_room(const BulkTask& task, int to, const Entry& entry,
                                           std::uint32_t round, Patience& patience,
                                           Seen& seen) const {
    if (round < call_.bulk.chunks) return !patience.over();
    return await(word(kBulkTakenAt, call_.rank, to, task.channel), entry,
                 round - call_.bulk.chunks + 1, to, Stage::sending, patience, seen);
  }

  __device__ __forceinline__ Pack* ring(int receiver, int sender, std::uint32_t channel,
                                        std::uint32_t round) const {
    const std::uint64_t lane = lane_of(receiver, sender) * call_.bulk.bytes;
    const std::uint64_t chunk = channel * call_.bulk.chunks + round % call_.bulk.chunks;
    return reinterpret_cast<Pack*>(call_.arena[receiver] + kBulkAt + lane) + chunk * kBulkChunk +
           threadIdx.x;
  }
  __device__ __forceinline__ static UserBuffer user(const void* buffer, const BulkRun& run) {
    return {static_cast<const std::uint8_t*>(buffer) + run.at, run.bytes};
  }
  __device__ __forceinline__ Part part_of(std::uint64_t chunk, std::uint64_t bytes) const {
    const std::uint64_t first = chunk * kBulkChunk, packs = packs_of(bytes);
    return {first + threadIdx.x, packs - first < kBulkChunk ? packs : first + kBulkChunk};
  }
  __device__ __forceinline__ Part chunk_of(const BulkTask& task, std::uint32_t round) const {
    return part_of(std::uint64_t{round} * call_.bulk.count + task.channel, task.run.bytes);
  }
  /// Whether a thread moves as many packs as it can, of 16 bytes at addresses of theirs: then
  /// nothing is asked pack by pack.
  __device__ __forceinline__ static bool is_whole(const UserBuffer& buffer, const Part& part) {
    const std::uint64_t last = part.first + (kBulkUnroll - 1) * kMovers;
    return last < part.end && buffer.is_plain(last);
  }
  __device__ __forceinline__ static void load(const UserBuffer& from, const Part& part,
                                              Pack (&packs)[kBulkUnroll]) {
    if (is_whole(from, part)) {
      const Pack* const at = from.place(part.first);
#pragma unroll
      for (int i = 0; i < kBulkUnroll; ++i) packs[i] = at[i * kMovers];
      return;
    }
#pragma unroll
    for (int i = 0; i < kBulkUnroll; ++i) {
      const std::uint64_t pack = part.first + static_cast<std::uint64_t>(i) * kMovers;
      packs[i] = pack < part.end ? from.load(pack) : Pack{0, 0};
    }
  }
  __device__ __forceinline__ static void store(const UserBuffer& to, const Part& part,
                                               const Pack (&packs)[kBulkUnroll]) {
    if (is_whole(to, part)) {
      Pack* const at = const_cast<Pack*>(to.place(part.first));
#pragma unroll
      for (int i = 0; i < kBulkUnroll; ++i) at[i * kMovers] = packs[i];
      return;
    }
#pragma unroll
    for (int i = 0; i < kBulkUnroll; ++i) {
      const std::uint64_t pack = part.first + static_cast<std::uint64_t>(i) * kMovers;
      if (pack < part.end) to.store(pack, packs[i]);
    }
  }
  /// Whole chunks, also of the last one: what lies behind its end is read by nobody.
  __device__ __forceinline__ void fill(const BulkTask& task, int to, std::uint32_t round,
                                       const Pack (&packs)[kBulkUnroll]) const {
    Pack* const at = ring(to, call_.rank, task.channel, round);
#pragma unroll
    for (int i = 0; i < kBulkUnroll; ++i) at[i * kMovers] = packs[i];
  }
  __device__ __forceinline__ void take(const BulkTask& task, const Entry& entry,
                                       std::uint32_t round, Patience& patience, bool passes_on,
                                       Seen& come, Seen& room) const {
    const int from = task.run.peer;
    if (!await(word(kBulkComeAt, call_.rank, from, task.channel), entry, round + 1, from,
               Stage::receiving, patience, come)) {
      return;
    }
    Pack packs[kBulkUnroll];
    const Pack* const at = ring(call_.rank, from, task.channel, round);
#pragma unroll
    for (int i = 0; i < kBulkUnroll; ++i) packs[i] = at[i * kMovers];
    store(user(call_.output, task.run), chunk_of(task, round), packs);
    if (!passes_on) return;
    each_receiver(task, [&](int to) {
      if (has_room(task, to, entry, round, patience, room)) fill(task, to, round, packs);
    });
  }

  /// False: there is no such chunk.
  __device__ __forceinline__ bool copy_own(std::uint64_t chunk) const {
    const Move& run = call_.sends[call_.rank];
    if (chunk * kBulkChunk >= packs_of(run.bytes)) return false;
    const UserBuffer from(static_cast<const std::uint8_t*>(call_.input) + run.at, run.bytes);
    const UserBuffer to(static_cast<std::uint8_t*>(call_.output) + call_.receives[call_.rank].at,
                        run.bytes);
    if (from.place(0) == to.place(0)) return false;
    Pack packs[kBulkUnroll];
    load(from, part_of(chunk, run.bytes), packs);
    store(to, part_of(chunk, run.bytes), packs);
    return true;
  }

  /// Rounds of a task that are done, of those phases.
  __device__ __forceinline__ static std::uint32_t rounds_of(const BulkTask& task,
                                                            std::uint32_t phases) {
    const auto mine = static_cast<std::uint32_t>(task.run.what) + 1;
    const std::uint32_t rounds = (phases + kPhases - mine) / kPhases;
    return rounds < task.chunks ? rounds : task.chunks;
  }
  __device__ __forceinline__ void tell(const Entry& entry, std::uint32_t before,
                                       std::uint32_t now) const {
    each_of_lane([&](const BulkTask& task) {
      const std::uint32_t rounds = rounds_of(task, now);
      if (rounds == rounds_of(task, before)) return;
      fence_system();
      const Room said = std::uint64_t{entry.calls} << 32 | rounds;
      if (task.run.what != Bulk::send) {
        const int from = task.run.peer;
        store_shared(word(kBulkTakenAt, from, call_.rank, task.channel), said);
      }
      each_receiver(task, [&](int to) {
        store_shared(word(kBulkComeAt, to, call_.rank, task.channel), said);
      });
    });
  }

  const BulkCall& call_;
  std::uint32_t rounds_ = 0;  // the most chunks of a task of this block's
};

template <int kUnroll, int kPeers>
__global__ void __launch_bounds__(kMovers + 32, 2)
    bulk_runs(const __grid_constant__ BulkCall call) {
  run_moves<kUnroll, kPeers>(call, AsItComes<kUnroll, kPeers>{call}, BulkRest(call));
}

}  // namespace gdrx::gpu
