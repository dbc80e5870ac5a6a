// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hierarchical_direct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gdrx {

std::optional<gpu::HostSum> host_sum(const exec::RailAdder::Sum& sum, int blocks) {
  if (sum.bytes == 0) return std::nullopt;
  gpu::HostSum what;
  what.own = reinterpret_cast<const std::uint8_t*>(sum.own);
  what.landed = reinterpret_cast<const std::uint8_t*>(sum.landed);
  what.stride = sum.stride;
  what.hosts = sum.hosts;
  what.self = sum.self;
  what.into = reinterpret_cast<std::uint8_t*>(sum.into);
  what.bytes = sum.bytes;
  what.type = sum.type;
  what.op = sum.op;
  what.finish_over = sum.finish_over;
  what.blocks = std::min(what.blocks, 2 * blocks);  // of half a multiprocessor each, or less
  return what;
}

void GpuAdder::begin_call() noexcept {
  allowed_ = 0;
  ready_ = {};
}

Result<void> GpuAdder::start(std::uint32_t slot, const Sum&) {
  ready_[slot] = true;
  while (ready_[allowed_ % kSlots]) {
    const std::uint64_t next = allowed_ % kSlots;
    ready_[next] = false;
    sums_[next] = ++allowed_;
    flags_.allow(gpu::Allowed::add);
  }
  return {};
}

Result<bool> GpuAdder::ended(std::uint32_t slot) {
  return !ready_[slot] && flags_.count(gpu::Told::added) >= sums_[slot];
}

HierarchicalDirect::HierarchicalDirect(exec::Handshake handshake, const Setup& setup)
    : gpus_(*setup.flags, setup.pieces, setup.track),
      handshake_(std::move(handshake)),
      rail_(setup.rail),
      call_{setup.word.type, setup.word.op, setup.finish_over},
      local_(setup.local),
      first_(setup.rail->reserve(gpus_.count())),
      before_(setup.rail->counters()) {
  setup.adder->begin_call();
}

Result<std::unique_ptr<HierarchicalDirect>> HierarchicalDirect::create(const Setup& setup) {
  auto handshake = GDRX_TRY(exec::Handshake::create(setup.word, setup.rail->ranks(), *setup.links));
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

std::uint64_t HierarchicalDirect::planned() const noexcept {
  std::uint64_t messages = 0;
  for (std::uint64_t number = 0; number < gpus_.count(); ++number) {
    const Bytes part = gpus_.cut().piece(number).part_of(local_);
    messages += rail_->layout().messages(part, rail_->self());
  }
  return messages;
}

std::string HierarchicalDirect::waiting_for() const {
  if (ended_ < begun_) return rail_->waiting_for();
  if (begun_ < gpus_.count() || agreed_) return "the GPUs of this host";
  return fmt::format("rank {} to make this call", index(handshake_.missing()));
}

}  // namespace gdrx
