// SPDX-License-Identifier: Apache-2.0
// How the ranks of a communicator part.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

// Nobody waits longer than this for ranks that do not destroy their communicator.
constexpr std::chrono::seconds kLeaveTime{60};

}  // namespace

Duration Communicator::leave_time() const noexcept {
  const std::chrono::milliseconds timeout = settings_.timeout;
  return timeout.count() > 0 ? std::min<Duration>(timeout, kLeaveTime) : kLeaveTime;
}

Error Communicator::left_alone() const {
  const std::string late = mesh_->awaited();
  return {
      Errc::timeout,
      late.empty()
          ? fmt::format("rank {} leaves without the others: some rank has gone without "
                        "waiting for those that had not destroyed their communicator",
                        index(rank_))
          : fmt::format("rank {} leaves without the others: {}, or a rank that it waits for, "
                        "has not destroyed its communicator within {:g} s",
                        index(rank_), late, std::chrono::duration<double>(leave_time()).count()),
      0};
}

Result<Progress> Communicator::leave_within(Duration most) {
  close_windows();  // whoever frees such memory after this knows that nobody maps it
  if (mesh_->leave(Deadline::after(steady_clock(), most))) {
    if (gpu_.path) gpu_.path->all_left();
    return Progress::done;
  }
  if (failure_.happened()) return tl::unexpected(failure_.error());
  if (!mesh_->awaited().empty()) return Progress::pending;
  if (mesh_->leave(Deadline::after(steady_clock(), Duration::zero()))) {  // they came meanwhile
    if (gpu_.path) gpu_.path->all_left();
    return Progress::done;
  }
  return tl::unexpected(left_alone());
}

Result<void> Communicator::leave() {
  if (GDRX_TRY(leave_within(leave_time())) == Progress::done) return {};
  return tl::unexpected(left_alone());
}

// Whoever destroyed it has his results: what becomes of the others he reads in the log.
bool Communicator::has_left(Deadline deadline) noexcept {
  try {
    const auto left = leave_within(Duration::zero());
    if (left && *left == Progress::done) return true;
    if (left && !deadline.passed(steady_clock().now())) return false;
    settings_.log.warn("after gdrxCommDestroy: {}",
                       gdrx::describe(left ? left_alone() : left.error()));
  } catch (const std::bad_alloc&) {  // to say so
  }
  return true;
}

// Whoever has met is free to go without a word.
Result<void> Communicator::finalize(WaitHook hook) {
  GDRX_TRY(drain(hook));
  const bool endless = settings_.timeout.load().count() <= 0;  // whoever comes hours later is right
  if (GDRX_TRY(leave_within(endless ? Duration::max() : leave_time())) != Progress::done) {
    return tl::unexpected(left_alone());
  }
  mute();
  return {};
}

}  // namespace gdrx
