// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hierarchical.hpp"

namespace gdrx {

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
  if (piece_ == gpus_.count()) return gpus_.gathered() ? exec::Step::done : exec::Step::idle;
  if (!gpus_.scattered(piece_)) return exec::Step::idle;
  const std::uint64_t bytes = gpus_.cut().piece(piece_).part_of(setup_.local);
  if (bytes == 0) return finish_piece();
  network_ =
      GDRX_TRY(setup_.network(piece_, {setup_.staging + offset(piece_, gpus_.cut()), bytes}));
  return exec::Step::advanced;
}

exec::Step Hierarchical::finish_piece() {
  gpus_.allow_gather();
  ++piece_;
  return exec::Step::advanced;
}

std::string Hierarchical::waiting_for() const {
  return network_ ? network_->waiting_for() : "the GPUs of this host";
}

}  // namespace gdrx
