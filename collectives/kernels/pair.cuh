// SPDX-License-Identifier: Apache-2.0
// Sends and receives of a rank as one kernel: each warp carries a channel of one direction of one
// pair of ranks, or some by turns, and none waits for one alone. So a call ends in whatever order
// its peers come, and send what in whatever order.
//
// Data is its own flag, as everywhere: a slot is full when it holds no sentinel. A sender writes a
// slot again when its receiver has told that it is empty. Both count what went through a channel in
// memory of their own, from call to call: so a graph may repeat its arguments, and a message may be
// sent in full before anybody receives it, as far as there is room. A large one: see pair_bulk.cuh.
#pragma once

#include "collectives/kernels/pair_bulk.cuh"
#include "collectives/kernels/pair_messages.cuh"

namespace gdrx::gpu {

inline constexpr std::uint64_t kAllPacks = ~std::uint64_t{0};

/// A channel's part in the messages of a direction, as far as it has got. `kInSlots`: else all go
/// in bulk, without a header.
template <InBulk kBulk, bool kInSlots = true>
class Channel {
 public:
  using Memory = typename BulkSide<kBulk>::Memory;

  __device__ __forceinline__ void begin(const PairCall& call, std::uint32_t task) {
    std::uint32_t at = 0;
    while (call.lines[at].end_task <= task) ++at;
    const PairLine& line = call.lines[at];
    peer_ = static_cast<int>(line.peer);
    sends_ = line.sends != 0;
    channel_ = task - (at > 0 ? call.lines[at - 1].end_task : 0);
    message_ = line.first;
    end_ = line.end;
    if constexpr (kInSlots) {
      const PairWords words = *words_of(call);
      position_ = sends_ ? words.sent : words.taken;
      known_ = sends_ ? words.emptied : words.told;
    }
    bulk_.begin(call, peer_, sends_, channel_);
    find(call);
  }

  __device__ __forceinline__ bool done() const {
    return message_ == end_ && (!sends_ || bulk_.is_empty());
  }
  __device__ __forceinline__ int peer() const { return peer_; }
  __device__ __forceinline__ Stage stage() const {
    return sends_ ? Stage::sending : Stage::receiving;
  }
  __device__ __forceinline__ std::uint32_t number() const { return channel_; }

  /// The next tile, unless that has to wait: then false. `most`: packs of its only message that it
  /// may take in bulk by now.
  __device__ __forceinline__ bool step(const PairCall& call, Memory& memory, WaitGuard& guard,
                                       std::uint64_t most = kAllPacks) {
    if constexpr (kBulk != InBulk::none) {
      if (message_ != end_ && (!kInSlots || goes_in_bulk(call))) {
        return move_in_bulk(call, memory, most);
      }
      bulk_.tell_of_put(call);
      if (message_ == end_) return bulk_.is_empty(call);
    }
    if constexpr (kInSlots) return sends_ ? send_tile(call) : receive_tile(call, guard);
    return false;
  }

  /// By a sender of one message: packs that have been read.
  __device__ __forceinline__ std::uint64_t given() const {
    return message_ == end_ ? kAllPacks : done_;
  }

  /// By the warp, when it is done: for the next call. A sender asks for room here, and not when it
  /// needs it: what it sends is on its way.
  __device__ __forceinline__ void keep(const PairCall& call) {
    if (lane() != 0) return;
    bulk_.keep(call);
    if constexpr (!kInSlots) return;
    if (sends_ && position_ - known_ > call.channels.ring / 4) ask(call);
    PairWords* const words = words_of(call);
    (sends_ ? words->sent : words->taken) = position_;
    (sends_ ? words->emptied : words->told) = known_;
  }

 private:
  static __device__ __forceinline__ std::uint32_t lane() { return threadIdx.x % 32; }
  /// Of a tile, this thread's i-th pack.
  static __device__ __forceinline__ std::uint32_t at(int i) {
    return static_cast<std::uint32_t>(i) * 32 + lane();
  }

  /// Of a pair, among those of an arena's owner.
  __device__ __forceinline__ std::uint32_t index(const PairCall& call, int owner, int peer) const {
    return lane_of(owner, peer) * call.channels.count + channel_;
  }
  __device__ __forceinline__ PairWords* words_of(const PairCall& call) const {
    return reinterpret_cast<PairWords*>(call.arena[call.rank] + kPairWordsAt) +
           index(call, call.rank, peer_);
  }
  __device__ __forceinline__ Room* told(const PairCall& call, int sender, int receiver) const {
    return reinterpret_cast<Room*>(call.arena[sender] + kEmptiedAt) + index(call, sender, receiver);
  }

  /// From message_ on, the first of which this channel has a part.
  __device__ __forceinline__ void find(const PairCall& call) {
    begun_ = false;
    for (done_ = 0; message_ != end_; ++message_) {
      const Message& next = message_of(call, message_);
      first_ = channel_ * next.width;
      const std::uint64_t all = packs_of(next.bytes);
      packs_ = first_ < all ? all - first_ : 0;
      if (packs_ > next.width) packs_ = next.width;
      if (channel_ == 0 || packs_ > 0) return;
    }
  }

  /// Of the next tile: its packs, and where they are.
  struct Tile {
    std::uint32_t packs;
    std::uint32_t header;  // slots in front of them
    std::uint64_t first;   // of the message
    __device__ __forceinline__ std::uint32_t slots() const {
      return header + (packs + kLineSlots - 1) / kLineSlots * kLineSlots;
    }
  };
  __device__ __forceinline__ Tile tile(const PairCall& call) const {
    const bool bulk = kBulk != InBulk::none && message_of(call, message_).goes_in_bulk();
    const std::uint64_t rest = bulk ? 0 : packs_ - done_;
    return {rest < kPairTile ? static_cast<std::uint32_t>(rest) : kPairTile,
            begun_ ? 0 : kLineSlots, first_ + done_};
  }
  /// `behind` the next slot of the ring that an owner has for what comes from `from`.
  __device__ __forceinline__ std::uint32_t slot(const PairCall& call, int owner, int from,
                                                std::uint32_t behind) const {
    const std::uint32_t ring = call.channels.ring;
    return kSlots + index(call, owner, from) * ring + ((position_ + behind) & (ring - 1));
  }

  __device__ __forceinline__ void go_on(const PairCall& call, const Tile& tile) {
    position_ += tile.slots();
    begun_ = true;
    go_on(call, tile.packs);
  }
  __device__ __forceinline__ void go_on(const PairCall& call, std::uint32_t packs) {
    done_ += packs;
    if (done_ < packs_) return;
    ++message_;
    find(call);
  }

  /// visit(i) for every pack of this thread.
  template <class Visit>
  static __device__ __forceinline__ void each(const Tile& tile, Visit visit) {
#pragma unroll
    for (int i = 0; i < kPairUnroll; ++i) {
      if (at(i) < tile.packs) visit(i);
    }
  }
  // What is rare is asked of all packs at once: a call between two of them has them wait for each
  // other, and a way to memory and back is as long for all.
  static __device__ __forceinline__ bool any_rare(const Tile& tile, const Pack* packs) {
    bool rare = false;
    each(tile, [&](int i) { rare |= packs[i].low == kSentinelLow; });
    return rare;
  }
  static __device__ __forceinline__ bool all_plain(const UserBuffer& buffer, const Tile& tile) {
    return tile.packs == 0 || buffer.is_plain(tile.first + tile.packs - 1);
  }
  /// A message of one to three words at addresses of theirs.
  static __device__ __forceinline__ bool is_words(const Message& what) {
    return what.bytes < sizeof(Pack) && go_in_words(what.at, 0, what.bytes);
  }
  static __device__ __forceinline__ void load(const Message& what, const Tile& tile, Pack* packs) {
    const UserBuffer from(what.at, what.bytes);
    if (all_plain(from, tile)) {
      each(tile, [&](int i) { packs[i] = *from.place(tile.first + at(i)); });
    } else if (is_words(what)) {
      packs[0] = Words(what.at, what.bytes).load(lane() == 0);
    } else {
      each(tile, [&](int i) { packs[i] = from.load(tile.first + at(i)); });
    }
  }
  static __device__ __forceinline__ void store(const Message& what, const Tile& tile,
                                               const Pack* packs) {
    const UserBuffer to(what.at, what.bytes);
    if (all_plain(to, tile)) {
      each(tile, [&](int i) { *const_cast<Pack*>(to.place(tile.first + at(i))) = packs[i]; });
    } else if (is_words(what)) {
      if (lane() == 0) Words(what.at, what.bytes).store(packs[0]);
    } else {
      each(tile, [&](int i) { to.store(tile.first + at(i), packs[i]); });
    }
  }

  __device__ __forceinline__ bool has_room(const PairCall& call, const Tile& tile) const {
    return all_of_warp(position_ + tile.slots() - known_ <= call.channels.ring);
  }

  __device__ __forceinline__ void ask(const PairCall& call) {
    // acquire: pairs with the fence of tell(), so that what is sent comes behind the emptying
    known_ = static_cast<std::uint32_t>(load_acquired(told(call, call.rank, peer_)));
  }

  // The first look at the room is at what begin() has read: the user's bytes are on their way then.
  __device__ __forceinline__ bool send_tile(const PairCall& call) {
    const Tile now = tile(call);
    if (waits_) {
      ask(call);
      if (!has_room(call, now)) return false;
    }
    const Message& what = message_of(call, message_);
    Pack packs[kPairUnroll];
    load(what, now, packs);
    waits_ = !waits_ && !has_room(call, now);
    if (waits_) return false;
    std::uint8_t* const arena = call.arena[peer_];
    if (now.header > 0 && lane() == 0) {
      send(arena, slot(call, peer_, call.rank, 0), {what.word, what.bytes});
    }
    if (!any_rare(now, packs)) {
      each(now, [&](int i) {
        store_shared(slot_of(arena, slot(call, peer_, call.rank, now.header + at(i))), packs[i]);
      });
    } else {
      each(now,
           [&](int i) { send(arena, slot(call, peer_, call.rank, now.header + at(i)), packs[i]); });
    }
    go_on(call, now);
    return true;
  }

  __device__ __forceinline__ bool receive_tile(const PairCall& call, WaitGuard& guard) {
    const Tile now = tile(call);
    if (waits_ && now.packs > kPairTile / 2 && !comes(call, now, guard)) return wait(call);
    std::uint8_t* const arena = call.arena[call.rank];
    const std::uint32_t header = slot(call, call.rank, peer_, 0);
    Pack packs[kPairUnroll];
    Pack said{0, 0};
    if (now.header > 0) said = load_shared(slot_of(arena, header));
    bool here = !is_sentinel(said);
    each(now, [&](int i) {
      packs[i] = load_shared(slot_of(arena, slot(call, call.rank, peer_, now.header + at(i))));
    });
    each(now, [&](int i) { here = here && !is_sentinel(packs[i]); });
    const Message& what = message_of(call, message_);
    if (now.header > 0 && !agree(what, said, guard)) return false;
    if (!all_of_warp(here)) return wait(call);
    waits_ = false;
    if (now.header > 0 && lane() == 0) clear(arena, header);
    if (any_rare(now, packs)) {
      each(now, [&](int i) {
        if (packs[i].low != kSentinelLow) return;
        packs[i] = receive_rare(arena, slot(call, call.rank, peer_, now.header + at(i)), packs[i]);
      });
    }
    each(now, [&](int i) { clear(arena, slot(call, call.rank, peer_, now.header + at(i))); });
    store(what, now, packs);
    go_on(call, now);
    // Where this call ends, the next one tells, unless the sender may need it to go on.
    const std::uint32_t ring = call.channels.ring;
    if (position_ - known_ > (done() ? ring - kMostOfStep : ring / 2)) tell(call);
    return true;
  }

  /// What is behind the header.
  __device__ __forceinline__ bool goes_in_bulk(const PairCall& call) const {
    return begun_ && message_of(call, message_).goes_in_bulk();
  }
  __device__ __forceinline__ bool move_in_bulk(const PairCall& call, Memory& memory,
                                               std::uint64_t most) {
    if (most <= done_) return false;
    const Message& what = message_of(call, message_);
    const std::uint64_t rest = (most < packs_ ? most : packs_) - done_;
    const std::uint32_t packs =
        bulk_.move(call, memory, UserBuffer(what.at, what.bytes), first_ + done_, rest);
    if (packs == 0) return false;
    go_on(call, packs);
    return true;
  }

  /// Of a tile that was waited for: polls of all of it would take what the data needs.
  __device__ __forceinline__ bool comes(const PairCall& call, const Tile& tile,
                                        WaitGuard& guard) const {
    std::uint8_t* const arena = call.arena[call.rank];
    const std::uint32_t last = (tile.packs - 1 - lane()) / 32 * 32 + lane();
    const Pack pack = load_shared(slot_of(arena, slot(call, call.rank, peer_, tile.header + last)));
    if (tile.header > 0) {
      const Pack said = load_shared(slot_of(arena, slot(call, call.rank, peer_, 0)));
      if (!agree(message_of(call, message_), said, guard)) return false;
    }
    return all_of_warp(!is_sentinel(pack));
  }

  /// Nothing has come: time to tell what is empty.
  __device__ __forceinline__ bool wait(const PairCall& call) {
    waits_ = true;
    if (position_ - known_ >= call.channels.ring / 2) tell(call);
    return false;
  }

  /// Whether the sender's message is the one that is expected, or is not there yet. Not later than
  /// the header comes: of a shorter message there is nothing more to wait for.
  __device__ __forceinline__ bool agree(const Message& mine, Pack said, WaitGuard& guard) const {
    const bool same = is_sentinel(said) || (said.low == mine.word && said.high == mine.bytes);
    if (!same) guard.fail(peer_, {mine.word, mine.bytes}, said);
    return all_of_warp(same);
  }

  static __device__ __forceinline__ void clear(std::uint8_t* arena, std::uint32_t slot) {
    store_shared(slot_of(arena, slot), {kSentinelLow, kSentinelHigh});
  }

  /// What went through this channel is empty, in steps so large that their fences cost little.
  __device__ __forceinline__ void tell(const PairCall& call) {
    known_ = position_;
    __syncwarp();
    if (lane() != 0) return;
    fence_system();  // what this warp emptied, is empty before the sender knows
    store_shared(told(call, peer_, call.rank), std::uint64_t{position_});
  }

  int peer_;
  bool sends_;
  bool begun_;          // the header of its message has gone, or come
  bool waits_ = false;  // for room, or for data
  BulkSide<kBulk> bulk_;
  std::uint32_t channel_;
  std::uint32_t message_;
  std::uint32_t end_;
  std::uint32_t position_;  // slots that went through the channel, as the next
  std::uint32_t known_;     // of them emptied, as both sides know
  std::uint64_t first_;     // pack of its message, of this channel's run
  std::uint64_t packs_;     // of that run
  std::uint64_t done_;      // of these
};

}  // namespace gdrx::gpu
