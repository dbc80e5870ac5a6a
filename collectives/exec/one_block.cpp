// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/one_block.hpp"

#include <span>

#include "collectives/reduce/copy_few.hpp"
#include "collectives/reduce/reducer.hpp"

namespace gdrx::exec {

namespace {

using plan::Extent;

bool is_of_root(Extent extent) noexcept {
  return extent == Extent::of_root || extent == Extent::all_of_root;
}

}  // namespace

Hop::Hop(const CallSignature& signature, const std::vector<Part>* parts, int self,
         int ranks) noexcept {
  const plan::CollectiveTraits& traits = plan::traits_of(signature.collective);
  if (is_of_root(traits.input)) from = signature.root;
  if (is_of_root(traits.output)) to = signature.root;
  takes = to == ArenaSeat::kAll || to == self;
  reduces = traits.reduces;
  // What a rank has for itself alone it need not put up.
  gives = (from == ArenaSeat::kAll || from == self) && to != self;
  const bool for_each = plan::CollectiveTraits::is_all(traits.input);
  count = signature.count;
  part = count * size_of(signature.type);
  bytes = most = for_each ? part * static_cast<std::uint64_t>(ranks) : part;
  offset = for_each ? part * static_cast<std::uint64_t>(self) : 0;
  stride = plan::CollectiveTraits::is_all(traits.output) ? part : 0;
  if (parts != nullptr) {
    const Range own = (*parts)[static_cast<std::size_t>(self)].range;
    part = (count = own.count) * size_of(signature.type);
    if (traits.reduces) {
      offset = own.begin * size_of(signature.type);
    } else {
      bytes = part;
      most = longest_of(*parts, size_of(signature.type));
    }
  }
  const auto others = static_cast<std::uint64_t>(ranks - 1);
  if (gives) traffic.sends = to == ArenaSeat::kAll ? others : 1;
  if (takes && from != self) traffic.receives = from == ArenaSeat::kAll ? others : 1;
}

template <class Look>
bool OneBlock::each_giver(Look look) const {
  if (!hop_.takes) return true;
  if (hop_.from != ArenaSeat::kAll) return hop_.from == seat_.self() || look(hop_.from);
  for (int rank = 0; rank < seat_.layout().ranks(); ++rank) {
    if (rank != seat_.self() && !look(rank)) return false;
  }
  return true;
}

void OneBlock::give() noexcept {
  if (on_shelf_) seat_.filled(hop_.to);
  reduce::copy_few(place_of(seat_.self()), call_.input, hop_.bytes);
  seat_.post(hop_.to);
  given_ = true;
}

bool OneBlock::have_come() noexcept {
  const bool all = each_giver([this](int rank) {
    if (rank < late_ || seat_.has_come(rank)) return true;
    late_ = rank;
    return false;
  });
  if (all && hop_.takes && hop_.from == ArenaSeat::kAll) seat_.all_have_come();
  return all;
}

bool OneBlock::agrees() const noexcept {
  return each_giver([this](int rank) { return seat_.agrees(rank); });
}

Result<void> OneBlock::check() const {
  Result<void> checked;
  each_giver([&](int rank) {
    checked = seat_.check(rank);
    return checked.has_value();
  });
  return checked;
}

bool OneBlock::run(int looks) noexcept {
  for (; looks > 0; --looks) {
    if (!ready()) continue;
    if (!agrees()) return false;  // step by step it is said how
    end();
    return true;
  }
  return false;
}

void OneBlock::end() noexcept {
  if (hop_.takes && hop_.most > 0) take();
  seat_.end(on_shelf_);
}

std::byte* OneBlock::place_of(int rank) const noexcept {
  if (in_post_) return seat_.post_of(rank).data;
  return on_shelf_ ? seat_.shelf_of(rank) : seat_.layout().slot(call_.base, rank);
}

const std::byte* OneBlock::given_by(int rank) const noexcept {
  return rank == seat_.self() ? call_.input : place_of(rank);
}

void OneBlock::move() noexcept {
  const bool all = hop_.from == ArenaSeat::kAll;
  const int end = all ? seat_.layout().ranks() : hop_.from + 1;
  std::byte* to = call_.output;
  std::uint64_t bytes = hop_.part;
  for (int rank = all ? 0 : hop_.from; rank < end; ++rank, to += hop_.stride) {
    if (call_.parts != nullptr) {
      const std::size_t element = size_of(seat_.signature().type);
      const auto& [begin, count] = (*call_.parts)[static_cast<std::size_t>(rank)].range;
      to = call_.output + begin * element;
      bytes = count * element;
    }
    const std::byte* const from = given_by(rank) + hop_.offset;
    if (to != from) reduce::copy_few(to, from, bytes);
  }
}

void OneBlock::take() noexcept {
  if (!reduces()) return move();
  const CallSignature& signature = seat_.signature();
  // Of a scan those up to this rank, or before it.
  int end = seat_.layout().ranks();
  if (is_scan(signature.collective))
    end = seat_.self() + (signature.collective == Collective::scan ? 1 : 0);
  const std::span<const void*> operands = seat_.operands().first(static_cast<std::size_t>(end));
  for (int rank = 0; rank < end; ++rank) {
    operands[static_cast<std::size_t>(rank)] = given_by(rank) + hop_.offset;
  }
  if (end < 2) {
    if (end > 0 && operands[0] != call_.output) {
      reduce::copy(call_.output, operands[0], hop_.part);
    }
  } else if (call_.user != nullptr) {
    reduce::reduce_by(*call_.user, call_.output, operands, hop_.count, signature.type);
  } else {
    const int finish = signature.op == ReduceOp::avg ? seat_.layout().ranks() : 0;
    reduce::reduce(call_.output, operands, hop_.count, signature.type, signature.op, finish);
  }
}

std::vector<Rank> OneBlock::awaited() const {
  if (!given_) return seat_.late_readers();
  std::vector<Rank> late;
  each_giver([&](int rank) {
    if (!seat_.has_come(rank)) late.push_back(Rank{rank});
    return true;
  });
  return late;
}

}  // namespace gdrx::exec
