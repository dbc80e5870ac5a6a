// SPDX-License-Identifier: Apache-2.0
// What the trace file has of a communicator's collectives on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "collectives/comm/operation.hpp"
#include "collectives/comm/route.hpp"
#include "collectives/trace/span.hpp"

namespace gdrx {

class CallTrace {
 public:
  /// Before there is another thread. Null: nobody watches.
  void watch(std::unique_ptr<trace::Track> track) { track_ = std::move(track); }
  trace::Track* track() const noexcept { return track_.get(); }

  // By who drives.
  /// The first of the queue runs, the `number`th call.
  void begin(const OperationInfo& info, Bytes bytes, std::uint64_t number) {
    if (!track_) return;
    plan_ = trace::Span(track_.get(), trace::Row::plans, trace::Kind::plan, row_of(info.route).mark,
                        {bytes, trace::kNobody, static_cast<std::uint32_t>(number),
                         plan::to_string(info.algorithm)});
  }
  void end() noexcept { plan_.end(); }
  void write(const Log& log) {
    if (track_) track_->write(log);
  }

 private:
  std::unique_ptr<trace::Track> track_;
  trace::Span plan_;
};

}  // namespace gdrx
