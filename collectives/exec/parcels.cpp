// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/parcels.hpp"

#include <fmt/format.h>

#include <cstring>

#include "collectives/reduce/copy_few.hpp"

namespace gdrx::exec {
namespace {

// What a post says first: where the parcel is.
enum Where : std::uint32_t { kInPost = 1, kInSlot = 2, kByMessages = 3 };

constexpr std::size_t kBegin = 16;  // of a parcel in a post
constexpr std::size_t kGrain = 16;  // the parts of a parcel begin at multiples of it
using Length = std::uint32_t;       // elements of a part, in front of all parts

std::uint64_t whole(std::uint64_t bytes) noexcept { return (bytes + kGrain - 1) / kGrain * kGrain; }
std::uint64_t head(std::size_t ranks) noexcept { return whole(ranks * sizeof(Length)); }

// 0: too much. Each part is looked at before it is added, so that no sum runs over.
std::uint64_t room_for(const ExchangeCall& call, int self, std::uint64_t most) noexcept {
  const std::vector<Part>& parts = call.parts->sends;
  std::uint64_t room = head(parts.size());
  for (const Part& part : parts) {
    if (index(part.peer) == self) continue;
    if (part.range.count > most) return 0;
    room += whole(part.range.count * call.element);
    if (room > most) return 0;
  }
  return room;
}

}  // namespace

Parcels::Parcels(ArenaSeat& seat, const ExchangeCall& call, std::uint64_t base) noexcept
    : seat_(seat), call_(call), base_(base) {
  if (call.signature.collective == Collective::gather_v) taker_ = call.signature.root;
  if (call.signature.collective == Collective::scatter_v) giver_ = call.signature.root;
  gives_ = (giver_ == ArenaSeat::kAll || giver_ == self()) && taker_ != self();
  given_ = !gives_;
  if (!gives_) return;
  room_ = room_for(call, self(), std::min<std::uint64_t>(kMostInParcel, seat.layout().block()));
}

bool Parcels::on_shelf() const noexcept {
  return seat_.rooted() && room_ > ArenaPost::kData - kBegin;
}

std::span<std::byte> Parcels::place_of(int rank, std::uint32_t where) const noexcept {
  if (where == kInPost) return std::span(seat_.post_of(rank).data).subspan(kBegin);
  const std::size_t block = seat_.layout().block();
  if (where == kInSlot && seat_.rooted()) {
    return {seat_.shelf_of(rank), ArenaLayout::shelf_bytes(block)};
  }
  if (where == kInSlot) return {seat_.layout().slot(base_, rank), block};
  return {};
}

void Parcels::give() noexcept {
  std::uint32_t where = kByMessages;
  if (room_ > 0) where = room_ <= ArenaPost::kData - kBegin ? kInPost : kInSlot;
  if (on_shelf()) seat_.filled(taker_);
  std::memcpy(seat_.post_of(self()).data, &where, sizeof where);
  std::byte* to = place_of(self(), where).data();
  if (room_ > 0) {
    std::byte* part_at = to + head(lengths());
    for (const Part& part : call_.parts->sends) {
      const bool own = index(part.peer) == self();
      const auto length = static_cast<Length>(own ? 0 : part.range.count);
      std::memcpy(to, &length, sizeof length);
      to += sizeof length;
      const std::uint64_t bytes = length * call_.element;
      reduce::copy_few(part_at, call_.input + part.range.begin * call_.element, bytes);
      part_at += whole(bytes);
    }
  }
  seat_.post(taker_);
  given_ = true;
}

bool Parcels::have_come() noexcept {
  for (; late_ < ranks(); ++late_) {
    if (takes_from(late_) && !seat_.has_come(late_)) return false;
  }
  if (takes() && giver_ == ArenaSeat::kAll) seat_.all_have_come();
  return true;
}

std::optional<std::uint64_t> Parcels::open(int rank) noexcept {
  std::uint32_t where = 0;
  std::memcpy(&where, seat_.post_of(rank).data, sizeof where);
  const void*& found = seat_.operands()[at(rank)];
  found = nullptr;
  if (where == kByMessages) return part_from(rank).range.count;
  const std::span<const std::byte> parcel = place_of(rank, where);
  std::uint64_t offset = head(lengths());
  if (offset > parcel.size()) return std::nullopt;
  const std::size_t mine = lengths() == 1 ? 0 : at(self());
  Length length = 0;
  for (std::size_t to = 0;; ++to) {
    std::memcpy(&length, parcel.data() + to * sizeof length, sizeof length);
    if (to == mine) break;
    offset += whole(length * call_.element);
  }
  if (offset + length * call_.element > parcel.size()) return std::nullopt;
  found = parcel.data() + offset;
  return length;
}

bool Parcels::all_here() noexcept {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!takes_from(rank)) continue;
    if (!seat_.agrees(rank) || open(rank) != part_from(rank).range.count || sends(rank)) {
      return false;
    }
  }
  return true;
}

Result<void> Parcels::check(int rank) {
  GDRX_TRY(seat_.check(rank));
  const auto theirs = open(rank);
  if (!theirs) {
    return fail(Errc::protocol,
                fmt::format("what rank {} has put into shared memory for {} is damaged", rank,
                            describe(call_.signature)));
  }
  return check_count(*theirs, Rank{rank}, part_from(rank).range.count, Rank{self()},
                     call_.signature);
}

void Parcels::end() noexcept {
  keep_own();
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!takes_from(rank)) continue;
    const void* const from = seat_.operands()[at(rank)];
    const auto& [begin, count] = part_from(rank).range;
    if (from == nullptr) continue;
    reduce::copy_few(call_.output + begin * call_.element, from, count * call_.element);
  }
  // Nobody knows whether others have used a shelf: each has had its turn.
  seat_.end(seat_.rooted());
}

// What a rank that is no root has for the root is not its own.
void Parcels::keep_own() noexcept {
  if (seat_.rooted() && call_.signature.root != self()) return;
  const auto& [begin, count] = of(call_.parts->sends, self()).range;
  const std::byte* const from = call_.input + begin * call_.element;
  std::byte* const to = call_.output + part_from(self()).range.begin * call_.element;
  if (from != to) reduce::copy_few(to, from, count * call_.element);
}

plan::Traffic Parcels::traffic() const noexcept {
  const auto others = static_cast<std::uint64_t>(ranks() - 1);
  std::uint64_t taken = 0;
  if (takes() && giver_ != self()) taken = giver_ == ArenaSeat::kAll ? others : 1;
  return {gives_ ? (taker_ == ArenaSeat::kAll ? others : 1) : 0, taken};
}

std::vector<Rank> Parcels::awaited() const {
  if (!given_) return seat_.late_readers();
  std::vector<Rank> late;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (takes_from(rank) && !seat_.has_come(rank)) late.push_back(Rank{rank});
  }
  return late;
}

}  // namespace gdrx::exec
