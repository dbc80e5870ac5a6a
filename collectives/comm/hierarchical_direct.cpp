// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hierarchical_direct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gdrx {

std::optional<gpu::HostSum> host_sum(const exec::RailAdder::Sum& sum, int blocks) {
  if (sum.bytes == 0) return std::nullopt;
  gpu::HostSum what;
  what.own = what.into = reinterpret_cast<std::uint8_t*>(sum.own);
  what.landed = reinterpret_cast<const std::uint8_t*>(sum.landed);
  what.stride = sum.stride;
  what.hosts = sum.operands;
  what.self = sum.self;
  what.bytes = sum.bytes;
  what.type = sum.type;
  what.op = sum.op;
  what.finish_over = sum.finish_over;
  what.blocks = std::min(what.blocks, 2 * blocks);  // of half a multiprocessor each, or less
  return what;
}

std::vector<std::uint32_t> levels_of(const exec::RailPlan& plan) {
  std::vector<std::uint32_t> levels;
  for (const exec::RailPlan::Sum& sum : plan.sums) levels.push_back(sum.level);
  return levels;
}

void GpuAdder::begin_call(std::size_t sums, StreamOrder order,
                          std::function<bool(std::uint64_t, std::uint32_t)> has_bytes) {
  order_ = std::move(order);
  has_bytes_ = std::move(has_bytes);
  allowed_ = 0;
  for (auto& states : states_) states.assign(sums, {});
  find_next();
}

void GpuAdder::find_next() {
  do {
    next_ = order_->next();
  } while (next_ &&
           (next_->kind != StreamOrder::Kind::add || !has_bytes_(next_->piece, next_->sum)));
}

Result<void> GpuAdder::start(std::uint32_t slot, std::uint32_t which, const Sum&) {
  states_[slot][which].ready = true;
  while (next_) {
    State& first = states_[next_->piece % kAhead][next_->sum];
    if (!first.ready) break;
    first = {false, ++allowed_};
    flags_.allow(gpu::WaitFlag::add);
    find_next();
  }
  return {};
}

Result<bool> GpuAdder::ended(std::uint32_t slot, std::uint32_t which) {
  const State& it = states_[slot][which];
  return !it.ready && flags_.count(gpu::Signal::added) >= it.place;
}

HierarchicalDirect::HierarchicalDirect(exec::Handshake handshake, const Setup& setup)
    : gpus_(*setup.flags, setup.pieces, setup.track),
      handshake_(std::move(handshake)),
      rail_(setup.rail),
      call_{setup.signature.type, setup.signature.op, setup.finish_over, setup.plan},
      local_(setup.local),
      first_(setup.rail->reserve(gpus_.count())),
      before_(setup.rail->counters()) {
  setup.adder->begin_call(
      setup.plan->sums.size(), {gpus_.count(), setup.plan->levels, levels_of(*setup.plan)},
      [pieces = setup.pieces, plan = setup.plan, local = local_](auto piece, auto sum) {
        const Bytes part = pieces.piece(piece).part_of(local);
        return plan->share(part, plan->sums[sum].chunks).bytes > 0;
      });
}

Result<std::unique_ptr<HierarchicalDirect>> HierarchicalDirect::create(const Setup& setup) {
  auto handshake =
      GDRX_TRY(exec::Handshake::create(setup.signature, setup.rail->ranks(), *setup.links));
  return std::unique_ptr<HierarchicalDirect>(new HierarchicalDirect(std::move(handshake), setup));
}

Result<exec::Step> HierarchicalDirect::step() {
  bool advanced = begin_pieces();
  advanced = GDRX_TRY(rail_->step()) == exec::Step::advanced || advanced;
  advanced = end_pieces() || advanced;
  if (!agreed_) {
    const exec::Step step = GDRX_TRY(handshake_.step());
    agreed_ = step == exec::Step::done;
    advanced = advanced || step != exec::Step::idle;
  }
  if (advanced) return exec::Step::advanced;
  if (!agreed_ || ended_ < gpus_.count() || !gpus_.gathered()) return exec::Step::idle;
  count();
  return exec::Step::done;
}

// A piece is scattered when its slot was gathered, and so when the rail had ended it.
bool HierarchicalDirect::begin_pieces() {
  const std::uint64_t before = begun_;
  while (begun_ < gpus_.count() && gpus_.scattered(begun_)) {
    rail_->begin(first_ + begun_, gpus_.cut().piece(begun_).part_of(local_), call_);
    ++begun_;
  }
  return begun_ > before;
}

// In order, though the rail may sum a later piece first: so the gathers stand in the stream.
bool HierarchicalDirect::end_pieces() {
  const std::uint64_t before = ended_;
  while (ended_ < begun_ && rail_->ended(first_ + ended_)) {
    gpus_.allow_gather();
    ++ended_;
  }
  return ended_ > before;
}

void HierarchicalDirect::count() noexcept {
  const exec::Counters& now = rail_->counters();
  counters_.slices = 1;
  counters_.sent = now.sent - before_.sent;
  counters_.received = now.received - before_.received;
}

plan::Traffic HierarchicalDirect::planned() const noexcept {
  plan::Traffic all;
  for (std::uint64_t number = 0; number < gpus_.count(); ++number) {
    const auto part = call_.plan->traffic(gpus_.cut().piece(number).part_of(local_));
    all.sends += part.sends;
    all.receives += part.receives;
  }
  return all;
}

std::string HierarchicalDirect::waiting_for() const {
  if (ended_ < begun_) return rail_->waiting_for();
  if (begun_ < gpus_.count() || agreed_) return "the GPUs of this host";
  return fmt::format("rank {} to make this call", index(handshake_.missing()));
}

}  // namespace gdrx
