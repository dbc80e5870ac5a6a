// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hierarchical.hpp"

#include <algorithm>
#include <utility>

namespace gdrx {
namespace {

// The network and the way to the host are far slower than these can feed; the rest of the GPU stays
// free for other work.
constexpr int kMostBlocks = 32;

}  // namespace

Hierarchical::Hierarchical(Setup setup)
    : setup_(std::move(setup)), pieces_(Pieces::cut(setup_.work.bytes, setup_.host.ranks)) {
  setup_.host.blocks = std::min(setup_.host.blocks, kMostBlocks);
}

Result<std::unique_ptr<Hierarchical>> Hierarchical::create(Setup setup) {
  std::unique_ptr<Hierarchical> made(new Hierarchical(std::move(setup)));
  made->stream_ = made->setup_.path->own_stream();
  GDRX_TRY(made->setup_.before->hold(made->stream_));
  const std::uint64_t ahead = std::min(kSlots, made->pieces_.count());
  for (std::uint64_t piece = 0; piece < ahead; ++piece) GDRX_TRY(made->scatter(piece));
  return made;
}

Result<void> Hierarchical::scatter(std::uint64_t number) {
  const Pieces::Piece piece = pieces_.piece(number);
  gpu::Work work = setup_.work;
  work.input = static_cast<const std::byte*>(work.input) + piece.begin;
  work.output = part(number);
  work.bytes = piece.bytes;
  work.block = piece.part;
  work.finish = false;  // the rail's last step divides
  const auto shape = gpu::shape_of_blocks(gpu::Kernel::reduce_scatter, setup_.host, piece.part);
  GDRX_TRY(setup_.path->launch(work, shape, stream_));
  scattered_[number % kSlots] = GDRX_TRY(setup_.path->mark(stream_));
  return {};
}

Result<void> Hierarchical::gather(std::uint64_t number) {
  const Pieces::Piece piece = pieces_.piece(number);
  gpu::Work work = setup_.work;
  work.input = part(number);
  work.output = static_cast<std::byte*>(work.output) + piece.begin;
  work.bytes = piece.bytes;
  work.block = piece.part;
  const auto shape = gpu::shape_of_blocks(gpu::Kernel::all_gather, setup_.host, piece.part);
  GDRX_TRY(setup_.path->launch(work, shape, stream_));
  if (number + 1 == pieces_.count()) gathered_ = GDRX_TRY(setup_.path->mark(stream_));
  return {};
}

Result<exec::Step> Hierarchical::step() {
  if (network_) {
    const exec::Step step = GDRX_TRY(network_->step());
    if (step != exec::Step::done) return step;
    counters_.slices += network_->counters().slices;
    counters_.sent += network_->counters().sent;
    counters_.received += network_->counters().received;
    network_.reset();
    return finish_piece();
  }
  if (piece_ == pieces_.count()) {
    return GDRX_TRY(gathered_->reached()) ? exec::Step::done : exec::Step::idle;
  }
  if (!GDRX_TRY(scattered_[piece_ % kSlots]->reached())) return exec::Step::idle;
  const std::uint64_t bytes = pieces_.piece(piece_).part_of(setup_.local);
  if (bytes == 0) return finish_piece();
  network_ = GDRX_TRY(setup_.network(piece_, {part(piece_), bytes}));
  return exec::Step::advanced;
}

Result<exec::Step> Hierarchical::finish_piece() {
  GDRX_TRY(gather(piece_));
  if (piece_ + kSlots < pieces_.count()) GDRX_TRY(scatter(piece_ + kSlots));
  ++piece_;
  return exec::Step::advanced;
}

std::string Hierarchical::waiting_for() const {
  return network_ ? network_->waiting_for() : "the GPUs of this host";
}

}  // namespace gdrx
