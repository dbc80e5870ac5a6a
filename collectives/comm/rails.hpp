// SPDX-License-Identifier: Apache-2.0
// What GPUs of several hosts have between them: NICs that write their memory, or pinned memory.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "collectives/comm/hierarchical_direct.hpp"
#include "collectives/comm/hierarchy.hpp"
#include "collectives/exec/plan_execution.hpp"
#include "collectives/gpu/path.hpp"
#include "gdrx/plan.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx {

class Rails {
 public:
  // As the communicator is made.
  void stand(Hierarchy hierarchy) { hierarchy_ = std::move(hierarchy); }
  /// With the communicator: later, the driver might wait for kernels that wait for this rank.
  Result<void> take_pinned(gpu::DeviceMemory& memory, RegistrationCache& cache);
  /// What adds on the GPU, for the rail that use() is given.
  exec::RailAdder& plan(exec::RailPlan plan, GpuFlags& flags);
  void use(std::unique_ptr<exec::Rail> rail) { rail_ = std::move(rail); }

  /// Before the memory is another's.
  void give_pinned_back(RegistrationCache& cache) noexcept;

  /// Where this rank stands. Empty: all are on one host.
  const std::optional<Hierarchy>& hierarchy() const noexcept { return hierarchy_; }
  /// Of a rank as the GPUs of this host count themselves.
  Rank rank_of(Rank local) const noexcept {
    const auto at = static_cast<std::size_t>(index(local));
    return hierarchy_ && at < hierarchy_->host.size() ? hierarchy_->host[at] : local;
  }
  /// So many there are.
  int ranks_of_host(int all) const noexcept {
    return hierarchy_ ? static_cast<int>(hierarchy_->host.size()) : all;
  }
  /// Null: pinned memory is between them.
  exec::Rail* direct() const noexcept { return rail_.get(); }
  // With direct().
  const exec::RailPlan& plan() const noexcept { return plan_; }
  GpuAdder& adder() noexcept { return *adder_; }
  /// Else.
  std::byte* pinned() const noexcept { return pinned_.data(); }
  std::uint64_t pinned_bytes() const noexcept { return pinned_.size(); }

  /// How a call of so many bytes is cut, of as many ranks on each host.
  Pieces cut(Bytes bytes, int ranks) const;
  /// Over pinned memory, between the ranks of a rail.
  Result<std::shared_ptr<const exec::Program>> program(plan::Algorithm algorithm);

 private:
  std::optional<Hierarchy> hierarchy_;
  std::span<std::byte> pinned_;  // the path's
  RegistrationRef registration_;
  exec::RailPlan plan_;
  std::optional<GpuAdder> adder_;
  std::unique_ptr<exec::Rail> rail_;
  std::map<plan::Algorithm, std::shared_ptr<const exec::Program>> programs_;
};

}  // namespace gdrx
