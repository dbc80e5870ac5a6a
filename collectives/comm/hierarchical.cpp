// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hierarchical.hpp"

#include <algorithm>
#include <utility>

namespace gdrx {

Result<std::unique_ptr<Hierarchical>> Hierarchical::create(Setup setup) {
  GpuPieces gpus = GDRX_TRY(GpuPieces::create(setup.gpus, kMostPart));
  std::unique_ptr<Hierarchical> made(new Hierarchical(std::move(gpus), std::move(setup)));
  const std::uint64_t ahead = std::min(GpuPieces::kAhead, made->gpus_.count());
  for (std::uint64_t piece = 0; piece < ahead; ++piece) {
    GDRX_TRY(made->gpus_.scatter(piece, made->part(piece)));
  }
  return made;
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
  if (piece_ == gpus_.count()) {
    return GDRX_TRY(gpus_.gathered()) ? exec::Step::done : exec::Step::idle;
  }
  if (!GDRX_TRY(gpus_.scattered(piece_))) return exec::Step::idle;
  const std::uint64_t bytes = gpus_.cut().piece(piece_).part_of(setup_.local);
  if (bytes == 0) return finish_piece();
  network_ = GDRX_TRY(setup_.network(piece_, {part(piece_), bytes}));
  return exec::Step::advanced;
}

Result<exec::Step> Hierarchical::finish_piece() {
  GDRX_TRY(gpus_.gather(piece_, part(piece_)));
  const std::uint64_t next = piece_ + GpuPieces::kAhead;
  if (next < gpus_.count()) GDRX_TRY(gpus_.scatter(next, part(next)));
  ++piece_;
  return exec::Step::advanced;
}

std::string Hierarchical::waiting_for() const {
  return network_ ? network_->waiting_for() : "the GPUs of this host";
}

}  // namespace gdrx
