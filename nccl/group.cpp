// SPDX-License-Identifier: Apache-2.0
#include "nccl/group.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/own_thread.hpp"

namespace gdrx::nccl {

thread_local constinit Group group;

namespace {

struct Making {
  ncclComm* comm = nullptr;
  ncclComm** handle = nullptr;
};
thread_local std::vector<Making> makings;
thread_local std::vector<Later> works;
thread_local std::vector<const ncclComm*> comms;  // with calls in the group

// A line that a thread of ours leaves is the caller's.
struct Ended {
  Result result = kSuccess;
  std::string why;
};

void release(Later& work) noexcept {
  if (std::exchange(work.held, false)) let_go(work.comm, ncclComm::kHolder);
}

// In order; the first that fails is told.
Result run_in_order(const std::vector<Later*>& of_one) {
  Result first = kSuccess;
  for (Later* work : of_one) {
    if (work->ends) release(*work);
    const Result result = guarded("ncclGroupEnd", work->run);
    release(*work);
    if (first == kSuccess) first = result;
  }
  return first;
}

// Communicators wait for each other's ranks: where a thread cannot be had none of them is run.
Result run_all(std::vector<Later>& all) {
  std::map<ncclComm*, std::vector<Later*>> by_comm;
  for (Later& work : all) by_comm[work.comm].push_back(&work);
  if (by_comm.size() == 1) return run_in_order(by_comm.begin()->second);
  std::vector<Ended> ended(by_comm.size());
  std::promise<bool> all_are_there;
  const std::shared_future<bool> goes = all_are_there.get_future().share();
  std::vector<OwnThread> threads;
  threads.reserve(by_comm.size());
  try {
    for (const auto& [comm, of_one] : by_comm) {
      threads.emplace_back("gdrx-group", [&, &one = ended[threads.size()], &works_of = of_one] {
        if (!goes.get()) return;
        one.result = run_in_order(works_of);
        if (one.result != kSuccess) one.why = last_line();
      });
    }
  } catch (...) {
    all_are_there.set_value(false);
    throw;  // once they have ended
  }
  all_are_there.set_value(true);
  threads.clear();
  for (const Ended& one : ended) {
    if (one.result != kSuccess) return refuse("ncclGroupEnd", one.result, one.why.c_str());
  }
  return kSuccess;
}

/// What a group has for its end. What of it is not run lets its communicator go, too.
class Works {
 public:
  explicit Works(std::vector<Later> all) noexcept : all_(std::move(all)) {}
  ~Works() {
    for (Later& work : all_) release(work);
  }
  Works(const Works&) = delete;
  Works& operator=(const Works&) = delete;
  Result run() { return all_.empty() ? kSuccess : run_all(all_); }

 private:
  std::vector<Later> all_;
};

Result settle(const std::vector<Making>& made) noexcept {
  Result result = kSuccess;
  for (const Making& making : made) {
    if (making.comm->gdrx == nullptr) {
      *making.handle = nullptr;
      making.comm->magic = ncclComm::kEnding;
      let_go(making.comm, ncclComm::kHolder);
    } else if (!making.comm->blocking) {
      result = kInProgress;
    }
  }
  return result;
}

void release_comms() noexcept {
  group.last = nullptr;
  for (const ncclComm* comm : std::exchange(comms, {})) let_go(comm, ncclComm::kHolder);
}

/// While it runs the group is a call of each of its communicators: their ends wait for it.
gdrxResult_t run_group() noexcept {
  for (const ncclComm* comm : comms) {
    comm->users.fetch_add(ncclComm::kCall, std::memory_order_seq_cst);
  }
  const gdrxResult_t ran = gdrxGroupEnd();
  for (const ncclComm* comm : comms)
    let_go(comm, ncclComm::kCall);  // not the last: the group has it
  return ran;
}

// Of the outermost group.
Result end_outermost_group() {
  const auto made = std::exchange(makings, {});
  Works later(std::exchange(works, {}));
  const gdrxResult_t ran = run_group();
  const Result refusal = std::exchange(group.refusal, kSuccess);
  const Result refused =
      refusal != kSuccess || ran == gdrxSuccess ? refusal : failed("ncclGroupEnd", ran);
  const Result making = settle(made);
  release_comms();
  if (refused != kSuccess) return refused;
  const Result worked = later.run();
  return worked != kSuccess ? worked : making;
}

}  // namespace

namespace {

Result predict_group(SimInfo* info) {
  const auto made = std::exchange(makings, {});
  const Works dropped(std::exchange(works, {}));
  double us = 0;
  const gdrxResult_t predicted = gdrxGroupPredict(&us);
  const Result refusal = std::exchange(group.refusal, kSuccess);
  settle(made);
  release_comms();
  if (refusal != kSuccess) return refusal;
  if (predicted != gdrxSuccess) return failed("ncclGroupSimulateEnd", predicted);
  if (info != nullptr) info->estimated_time = static_cast<float>(us);
  return kSuccess;
}

}  // namespace

bool add_to_group(ncclComm* comm) noexcept {
  if (std::find(comms.begin(), comms.end(), comm) == comms.end()) {
    try {
      comms.push_back(comm);
    } catch (const std::bad_alloc&) {
      return false;
    }
    hold(comm);
  }
  group.last = comm;
  return true;
}

void run_later(Later work) {
  works.push_back(std::move(work));
  hold(works.back().comm);
}

void made_by_group(ncclComm* comm, ncclComm** handle) { makings.push_back({comm, handle}); }

void forget_in_group(ncclComm* comm) noexcept {
  std::erase_if(works, [comm](const Later& work) {
    if (work.comm != comm) return false;
    let_go(comm, ncclComm::kHolder);
    return true;
  });
  if (std::erase(comms, comm) == 0) return;
  if (group.last == comm) group.last = nullptr;
  let_go(comm, ncclComm::kHolder);
}

}  // namespace gdrx::nccl

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

GDRX_NCCL(ncclGroupStart) {
  gdrxGroupStart();
  ++group.depth;
  return kSuccess;
}

GDRX_NCCL(ncclGroupEnd) {
  if (group.depth == 0) {
    return refuse("ncclGroupEnd", kInvalidUsage, "no group is open on this thread");
  }
  if (--group.depth > 0) {
    gdrxGroupEnd();
    return kSuccess;
  }
  return guarded("ncclGroupEnd", end_outermost_group);
}

/// Nothing of the group is started. As in NCCL an inner one just ends.
GDRX_NCCL(ncclGroupSimulateEnd, SimInfo* info) {
  constexpr auto kName = "ncclGroupSimulateEnd";
  if (group.depth != 1) return ncclGroupEnd();
  const bool known = info == nullptr || (info->size >= sizeof *info && info->magic == kSimMagic);
  if (!known)
    refuse(kName, kInvalidArgument, "info was not initialised with NCCL_SIM_INFO_INITIALIZER");
  group.depth = 0;
  return guarded(kName, [&] { return predict_group(info); });
}
