// SPDX-License-Identifier: Apache-2.0
// A call that the host makes on pinned memory while its stream waits.
#pragma once

#include <memory>
#include <utility>

#include "collectives/comm/gpu_flags.hpp"
#include "collectives/exec/execution.hpp"

namespace gdrx {

/// Made when the stream has come to it. It is over when the GPU has taken the results.
class StagedExecution final : public exec::Execution {
 public:
  StagedExecution(std::unique_ptr<exec::Execution> call, GpuFlags& flags)
      : call_(std::move(call)), flags_(flags) {}

  Result<exec::Step> step() override {
    if (!ended_) {
      const exec::Step step = GDRX_TRY(call_->step());
      if (step != exec::Step::done) return step;
      ended_ = true;
      flags_.allow(gpu::WaitFlag::gather);
      return exec::Step::advanced;
    }
    if (flags_.count(gpu::Signal::gathered) == 0) return exec::Step::idle;
    flags_.end();
    return exec::Step::done;
  }
  void on_write_done(std::uint64_t cookie) noexcept override { call_->on_write_done(cookie); }
  const exec::Counters& counters() const noexcept override { return call_->counters(); }
  std::string waiting_for() const override {
    return ended_ ? "the GPU to take the results" : call_->waiting_for();
  }
  std::vector<Rank> awaited() const override {
    return ended_ ? std::vector<Rank>() : call_->awaited();
  }
  std::uint64_t end_stage(std::uint64_t now) const noexcept override {
    return call_->end_stage(now);
  }

 private:
  std::unique_ptr<exec::Execution> call_;
  GpuFlags& flags_;
  bool ended_ = false;
};

}  // namespace gdrx
