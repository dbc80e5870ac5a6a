// SPDX-License-Identifier: Apache-2.0
#include "nccl/group.hpp"

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gdrx::nccl {

thread_local constinit Group group;

namespace {

struct Making {
  ncclComm* comm = nullptr;
  ncclComm** handle = nullptr;
};
thread_local std::vector<Making> makings;
thread_local std::vector<Later> works;

// A line that a thread of ours leaves is the caller's.
struct Ended {
  Result result = kSuccess;
  std::string why;
};

// In order; the first that fails is told.
Result run_in_order(const std::vector<const Later*>& of_one) {
  Result first = kSuccess;
  for (const Later* work : of_one) {
    if (work->ends) let_go(work->comm, ncclComm::kHolder);
    const Result result = guarded("ncclGroupEnd", work->run);
    if (!work->ends) let_go(work->comm, ncclComm::kHolder);
    if (first == kSuccess) first = result;
  }
  return first;
}

Result run_all(const std::vector<Later>& all) {
  std::map<ncclComm*, std::vector<const Later*>> by_comm;
  for (const Later& work : all) by_comm[work.comm].push_back(&work);
  if (by_comm.size() == 1) return run_in_order(by_comm.begin()->second);
  std::vector<Ended> ended(by_comm.size());
  {
    std::vector<std::jthread> threads;
    threads.reserve(by_comm.size());
    for (const auto& [comm, of_one] : by_comm) {
      threads.emplace_back([&, &one = ended[threads.size()], &works_of = of_one] {
        one.result = run_in_order(works_of);
        if (one.result != kSuccess) one.why = last_line();
      });
    }
  }
  for (const Ended& one : ended) {
    if (one.result != kSuccess) return refuse("ncclGroupEnd", one.result, one.why.c_str());
  }
  return kSuccess;
}

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
  for (ncclComm* comm = std::exchange(group.comms, nullptr); comm != nullptr;) {
    ncclComm* const next = std::exchange(comm->next_in_group, nullptr);
    comm->in_group = false;
    let_go(comm, ncclComm::kHolder);
    comm = next;
  }
}

/// While it runs the group is a call of each of its communicators: their ends wait for it.
gdrxResult_t run_group() noexcept {
  for (ncclComm* comm = group.comms; comm != nullptr; comm = comm->next_in_group) {
    comm->users.fetch_add(ncclComm::kCall, std::memory_order_seq_cst);
  }
  const gdrxResult_t ran = gdrxGroupEnd();
  for (ncclComm* comm = group.comms; comm != nullptr; comm = comm->next_in_group) {
    let_go(comm, ncclComm::kCall);  // not the last: the group has it
  }
  return ran;
}

// Of the outermost group.
Result end_group() {
  const auto made = std::exchange(makings, {});
  const auto later = std::exchange(works, {});
  const gdrxResult_t ran = run_group();
  const Result refusal = std::exchange(group.refusal, kSuccess);
  const Result refused =
      refusal != kSuccess || ran == gdrxSuccess ? refusal : failed("ncclGroupEnd", ran);
  const Result making = settle(made);
  release_comms();
  if (refused != kSuccess) {
    for (const Later& work : later) let_go(work.comm, ncclComm::kHolder);
    return refused;
  }
  const Result worked = later.empty() ? kSuccess : run_all(later);
  return worked != kSuccess ? worked : making;
}

}  // namespace

void add_to_group(Later work) {
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
  for (ncclComm** at = &group.comms; *at != nullptr; at = &(*at)->next_in_group) {
    if (*at != comm) continue;
    *at = comm->next_in_group;
    comm->in_group = false;
    let_go(comm, ncclComm::kHolder);
    return;
  }
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
  return guarded("ncclGroupEnd", end_group);
}

/// gdrx predicts no group: this one ends, and nothing of it is started.
GDRX_NCCL(ncclGroupSimulateEnd, SimInfo*) {
  const Result refused = absent("ncclGroupSimulateEnd",
                                "gdrx predicts no group: `gdrx plan` and "
                                "gdrxCommExplainCall predict calls");
  if (group.depth > 0) ncclGroupEnd();
  return refused;
}
