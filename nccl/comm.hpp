// SPDX-License-Identifier: Apache-2.0
// What stands behind an ncclComm_t, and how a call goes through it.
#pragma once

#include <atomic>
#include <cstdint>

#include "gdrx/gdrx.h"
#include "nccl/abi.hpp"
#include "nccl/errors.hpp"

struct ncclComm {
  static constexpr std::uint64_t kMagic = 0x6e63636c67647278;
  std::uint64_t magic = kMagic;
  gdrxComm_t gdrx = nullptr;         // null: a group makes it
  std::atomic<int> users{0};         // threads in a call of it, or in a group that has one
  std::atomic<bool> revoked{false};  // that it has failed since is no news
  int device = 0;
  bool blocking = true;
  bool in_group = false;  // of the thread that uses it, as the next
  ncclComm* next_in_group = nullptr;
  gdrxRequest_t finalizing = nullptr;
  std::atomic<int> finalized{gdrxSuccess};  // gdrxInProgress: ranks are still to come
};

namespace gdrx::nccl {

/// What is open on this thread, in memory that a thread has from its beginning: reading it takes no
/// call (initial-exec).
struct Group {
  int depth = 0;
  Result refusal = kSuccess;  // the first call that this layer refused
  ncclComm* comms = nullptr;  // with calls
};
extern thread_local constinit Group group __attribute__((tls_model("initial-exec")));

/// Null, or what is wrong with the handle.
inline const char* fault_of(const ncclComm* comm) noexcept {
  if (comm == nullptr) return "comm is NULL";
  if (comm->magic != ncclComm::kMagic) return "comm is no communicator, or was destroyed";
  if (comm->gdrx == nullptr) return "comm is made when its group ends";
  return nullptr;
}

/// Keeps ncclCommAbort from freeing the communicator while a call or a group needs it.
inline void enter(ncclComm* comm) noexcept {
  if (group.depth == 0) {
    comm->users.fetch_add(1, std::memory_order_acquire);
  } else if (!comm->in_group) {
    comm->users.fetch_add(1, std::memory_order_acquire);
    comm->in_group = true;
    comm->next_in_group = group.comms;
    group.comms = comm;
  }
}
inline void leave(ncclComm* comm) noexcept {
  if (group.depth == 0) comm->users.fetch_sub(1, std::memory_order_release);
}

/// Calls gdrx, by `body`, which is given its communicator.
template <class Body>
Result through(const char* function, ncclComm* comm, Body&& body) {
  if (const char* fault = fault_of(comm)) return refuse(function, kInvalidArgument, fault);
  enter(comm);
  const gdrxResult_t result = body(comm->gdrx);
  leave(comm);
  return result == gdrxSuccess ? kSuccess : failed(function, result);
}

}  // namespace gdrx::nccl
