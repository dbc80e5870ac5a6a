// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/rails.hpp"

#include "collectives/comm/hierarchical.hpp"

namespace gdrx {
namespace {

/// A program for ranks 0 to n - 1 as one for those of a rail.
void rename_peers(plan::RankProgram& program, std::span<const Rank> rail) {
  for (plan::Channel& channel : program.channels) {
    for (plan::Op& op : channel) op.peer = rail[static_cast<std::size_t>(index(op.peer))];
  }
}

}  // namespace

Result<void> Rails::take_pinned(gpu::DeviceMemory& memory, RegistrationCache& cache) {
  pinned_ = GDRX_TRY(memory.pinned(Hierarchical::kStagingBytes));
  registration_ = GDRX_TRY(cache.acquire_new(pinned_, MemoryKind::host));
  return {};
}

void Rails::give_pinned_back(RegistrationCache& cache) noexcept {
  if (registration_) cache.remove(registration_.get());
  registration_.reset();
  pinned_ = {};
}

exec::RailAdder& Rails::plan(exec::RailPlan plan, GpuFlags& flags) {
  plan_ = std::move(plan);
  return adder_.emplace(flags);
}

Pieces Rails::cut(Bytes bytes, int ranks) const {
  return Pieces::cut(bytes, ranks,
                     rail_ ? plan_.most_part(rail_->layout()) : Hierarchical::kMostPart);
}

Result<std::shared_ptr<const exec::Program>> Rails::program(plan::Algorithm algorithm) {
  auto& program = programs_[algorithm];
  if (!program) {
    const auto ranks = static_cast<int>(hierarchy_->rail.size());
    const plan::Spec spec{Collective::all_reduce, algorithm, ranks, Rank{}};
    plan::RankProgram own = GDRX_TRY(plan::build_rank(spec, Rank{hierarchy_->own_host}));
    rename_peers(own, hierarchy_->rail);
    program = std::make_shared<const exec::Program>(exec::compile(own));
  }
  return program;
}

}  // namespace gdrx
