// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hierarchical_direct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gdrx {

Result<void> GpuAdder::start(std::uint32_t slot, const Sum& sum) {
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
  what.blocks = std::min(what.blocks, 2 * blocks_);  // of half a multiprocessor each, or less
  GDRX_TRY(path_.combine(what, path_.own_stream()));
  marks_[slot] = GDRX_TRY(path_.mark(path_.own_stream()));
  return {};
}

HierarchicalDirect::HierarchicalDirect(GpuPieces gpus, exec::Handshake handshake,
                                       const Setup& setup)
    : gpus_(std::move(gpus)),
      handshake_(std::move(handshake)),
      rail_(setup.rail),
      call_{setup.word.type, setup.word.op, setup.finish_over},
      local_(setup.local),
      first_(setup.rail->reserve(gpus_.count())),
      before_(setup.rail->counters()) {}

Result<std::unique_ptr<HierarchicalDirect>> HierarchicalDirect::create(const Setup& setup) {
  auto handshake = GDRX_TRY(exec::Handshake::create(setup.word, setup.rail->ranks(), *setup.links));
  GpuPieces gpus = GDRX_TRY(GpuPieces::create(setup.gpus, kMostPart));
  std::unique_ptr<HierarchicalDirect> made(
      new HierarchicalDirect(std::move(gpus), std::move(handshake), setup));
  const std::uint64_t ahead = std::min(GpuPieces::kAhead, made->gpus_.count());
  for (std::uint64_t piece = 0; piece < ahead; ++piece) {
    GDRX_TRY(made->gpus_.scatter(piece, made->rail_->input(made->first_ + piece)));
  }
  return made;
}

Result<exec::Step> HierarchicalDirect::step() {
  bool advanced = GDRX_TRY(begin_pieces());
  advanced = GDRX_TRY(rail_->step()) == exec::Step::advanced || advanced;
  advanced = GDRX_TRY(end_pieces()) || advanced;
  if (!agreed_) {
    const exec::Step step = GDRX_TRY(handshake_.step());
    agreed_ = step == exec::Step::done;
    advanced = advanced || step != exec::Step::idle;
  }
  if (advanced) return exec::Step::advanced;
  if (!agreed_ || ended_ < gpus_.count() || !GDRX_TRY(gpus_.gathered())) return exec::Step::idle;
  count();
  return exec::Step::done;
}

Result<bool> HierarchicalDirect::begin_pieces() {
  bool advanced = false;
  const std::uint64_t scattering = std::min(ended_ + GpuPieces::kAhead, gpus_.count());
  while (begun_ < scattering && GDRX_TRY(gpus_.scattered(begun_))) {
    rail_->begin(first_ + begun_, gpus_.cut().piece(begun_).part_of(local_), call_);
    ++begun_;
    advanced = true;
  }
  return advanced;
}

// In order, though the rail may sum a later piece first: see GpuPieces.
Result<bool> HierarchicalDirect::end_pieces() {
  bool advanced = false;
  while (ended_ < begun_ && rail_->ended(first_ + ended_)) {
    GDRX_TRY(gpus_.gather(ended_, rail_->result(first_ + ended_)));
    const std::uint64_t next = ended_ + GpuPieces::kAhead;
    if (next < gpus_.count()) GDRX_TRY(gpus_.scatter(next, rail_->input(first_ + next)));
    ++ended_;
    advanced = true;
  }
  return advanced;
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
