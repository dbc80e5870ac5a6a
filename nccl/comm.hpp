// SPDX-License-Identifier: Apache-2.0
// What stands behind an ncclComm_t, and how a call goes through it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "gdrx/gdrx.h"
#include "nccl/abi.hpp"
#include "nccl/errors.hpp"

namespace gdrx::nccl {
/// A range of addresses that all ranks have. Without a registration calls on it are as any others.
struct Window {
  gdrxRegistration_t registration = nullptr;
  void* memory = nullptr;
};
}  // namespace gdrx::nccl

struct ncclComm {
  static constexpr std::uint64_t kMagic = 0x6e63636c67647278;
  static constexpr std::uint64_t kEnding = 1;  // a thread ends it: no new call
  static constexpr std::uint64_t kGone = 2;
  static constexpr std::uint64_t kCall = 1;
  static constexpr std::uint64_t kHolder = std::uint64_t{1} << 32;
  mutable std::atomic<std::uint64_t> magic{kMagic};
  /// Threads in a call of it, and above them who has it: the program, groups with a call of it.
  /// What it has of gdrx ends with the last of them.
  mutable std::atomic<std::uint64_t> users{kHolder};
  gdrxComm_t gdrx = nullptr;         // null: a group makes it
  std::atomic<bool> revoked{false};  // that it has failed since is no news
  int device = 0;
  bool blocking = true;
  std::mutex window_lock;
  std::map<std::uintptr_t, gdrx::nccl::Window> windows;  // that are open, by their handles
  gdrxRequest_t finalizing = nullptr;
  std::atomic<int> finalized{gdrxSuccess};  // gdrxInProgress: ranks are still to come
  ncclComm* older = nullptr;                // of those that programs were given
};

namespace gdrx::nccl {

/// What is open on this thread, in memory that a thread has from its beginning: reading it takes no
/// call (initial-exec).
struct Group {
  int depth = 0;
  Result refusal = kSuccess;       // the first call that this layer refused
  const ncclComm* last = nullptr;  // of those with calls
};
extern thread_local constinit Group group __attribute__((tls_model("initial-exec")));

/// Null, or what is wrong with the handle. One that was destroyed can be asked, too: what a program
/// was given stays until the process ends, without what it had of gdrx.
inline const char* fault_of(const ncclComm* comm) noexcept {
  if (comm == nullptr) return "comm is NULL";
  if (comm->magic.load(std::memory_order_acquire) != ncclComm::kMagic) {
    return "comm is no communicator, or was destroyed";
  }
  if (comm->gdrx == nullptr) return "comm is made when its group ends";
  return nullptr;
}

/// The last who has it ends it, and is told how that went.
gdrxResult_t end(const ncclComm* comm) noexcept;
inline gdrxResult_t let_go(const ncclComm* comm, std::uint64_t of) noexcept {
  return comm->users.fetch_sub(of, std::memory_order_acq_rel) == of ? end(comm) : gdrxSuccess;
}
inline void hold(const ncclComm* comm) noexcept {
  comm->users.fetch_add(ncclComm::kHolder, std::memory_order_relaxed);
}

/// A call or a question of the communicator: it lasts at least as long.
class Use {
 public:
  explicit Use(const ncclComm* comm) noexcept : fault_(fault_of(comm)) {
    if (fault_ != nullptr) return;
    comm_ = comm;
    // In one order with the end's mark: either that thread sees this one, or this one the mark.
    comm_->users.fetch_add(ncclComm::kCall, std::memory_order_seq_cst);
    if (comm_->magic.load(std::memory_order_seq_cst) != ncclComm::kMagic) fault_ = fault_of(comm_);
  }
  ~Use() {
    if (comm_ != nullptr) let_go(comm_, ncclComm::kCall);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  const char* fault() const noexcept { return fault_; }

 private:
  const ncclComm* comm_ = nullptr;
  const char* fault_;
};

/// False: there is no memory to remember it in.
bool add_to_group(ncclComm* comm) noexcept;
/// The thread's group has a call of it from here on.
inline bool join_group(ncclComm* comm) noexcept {
  return group.depth == 0 || group.last == comm || add_to_group(comm);
}
constexpr auto kNoMemory = "no memory";

/// Calls gdrx, by `body`, which is given its communicator.
template <class Body>
Result through(const char* function, ncclComm* comm, Body&& body) {
  const Use use(comm);
  if (use.fault() != nullptr) return refuse(function, kInvalidArgument, use.fault());
  if (!join_group(comm)) return refuse(function, kSystemError, kNoMemory);
  const gdrxResult_t result = body(comm->gdrx);
  return result == gdrxSuccess ? kSuccess : failed(function, result);
}

/// The same of what is no part of a group: it runs at once, and if it fails a group goes on.
template <class Body>
Result at_once(const char* function, const ncclComm* comm, Body&& body) {
  const Use use(comm);
  if (use.fault() != nullptr) return deny(function, kInvalidArgument, use.fault());
  const gdrxResult_t result = body(comm->gdrx);
  if (result == gdrxSuccess) return kSuccess;
  return deny(function, result_of(result), gdrxGetLastError(nullptr));
}

}  // namespace gdrx::nccl
