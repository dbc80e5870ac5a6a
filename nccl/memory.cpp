// SPDX-License-Identifier: Apache-2.0
// Memory: allocated, registered, in windows.
#include <memory>
#include <mutex>
#include <utility>

#include "nccl/comm.hpp"
#include "nccl/driver.hpp"
#include "nccl/group.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

namespace {

/// CUDA maps memory in such pieces, and what has a piece of its own can be shared alone.
constexpr std::size_t kPiece = std::size_t{2} << 20;

constexpr auto kNoWindow = "win is no open window of comm";

void keep(ncclComm* comm, ncclWindow_vidmem* window) noexcept {
  const std::lock_guard lock(comm->window_lock);
  window->next = comm->windows;
  comm->windows = window;
}

/// The place in the communicator's list that names the window, which is locked; null: none does.
ncclWindow_vidmem** place_of(ncclComm* comm, const ncclWindow_vidmem* window) noexcept {
  for (ncclWindow_vidmem** at = &comm->windows; *at != nullptr; at = &(*at)->next) {
    if (*at == window) return at;
  }
  return nullptr;
}

std::unique_ptr<ncclWindow_vidmem> take(ncclComm* comm, ncclWindow_vidmem* window) noexcept {
  const std::lock_guard lock(comm->window_lock);
  ncclWindow_vidmem** const at = place_of(comm, window);
  if (at == nullptr) return nullptr;
  *at = window->next;
  return std::unique_ptr<ncclWindow_vidmem>(window);
}

/// What only some ranks' GPUs can do is no error in NCCL: all of them get a plain window.
Result open_window(ncclComm* comm, std::size_t bytes, ncclWindow_vidmem* window) {
  gdrxResult_t result = gdrxSuccess;
  const Result told = through("ncclCommWindowRegister", comm, [&](gdrxComm_t gdrx) {
    result = gdrxRegister(gdrx, window->memory, bytes, &window->registration);
    return result == gdrxUnsupported ? gdrxSuccess : result;
  });
  return told;
}

}  // namespace

// Calls in other threads have returned. What gdrx has of them ends with its communicator.
void gdrx::nccl::forget_windows(const ncclComm* comm) noexcept {
  for (const ncclWindow_vidmem* window = comm->windows; window != nullptr;) {
    delete std::exchange(window, window->next);
  }
}

GDRX_NCCL(ncclMemAlloc, void** memory, std::size_t bytes) {
  if (memory == nullptr) return deny("ncclMemAlloc", kInvalidArgument, "ptr is NULL");
  *memory = nullptr;
  if (bytes == 0) return kSuccess;
  const std::size_t whole = (bytes + kPiece - 1) / kPiece * kPiece;
  if (whole >= bytes && driver::allocate(memory, whole)) return kSuccess;
  return deny("ncclMemAlloc", kUnhandledCudaError, "CUDA has no GPU, or not so much memory");
}

GDRX_NCCL(ncclMemFree, void* memory) {
  if (memory == nullptr || driver::release(memory)) return kSuccess;
  return deny("ncclMemFree", kUnhandledCudaError, "CUDA did not allocate this memory");
}

/// gdrx needs no such registration, and its own is for all ranks at once: nothing is done.
GDRX_NCCL(ncclCommRegister, const ncclComm* comm, void* memory, std::size_t bytes, void** handle) {
  constexpr auto kName = "ncclCommRegister";
  const Use use(comm);
  if (use.fault() != nullptr) return deny(kName, kInvalidArgument, use.fault());
  if (memory == nullptr || bytes == 0 || handle == nullptr) {
    return deny(kName, kInvalidArgument, "buff or handle is NULL, or size is 0");
  }
  *handle = memory;
  return kSuccess;
}

GDRX_NCCL(ncclCommDeregister, const ncclComm* comm, void*) {
  const Use use(comm);
  if (use.fault() == nullptr) return kSuccess;
  return deny("ncclCommDeregister", kInvalidArgument, use.fault());
}

GDRX_NCCL(ncclCommWindowRegister, ncclComm* comm, void* memory, std::size_t bytes,
          ncclWindow_vidmem** window, int flags) {
  constexpr auto kName = "ncclCommWindowRegister";
  const Use use(comm);
  if (use.fault() != nullptr) return refuse(kName, kInvalidArgument, use.fault());
  if (memory == nullptr || bytes == 0 || window == nullptr) {
    return refuse(kName, kInvalidArgument, "buff or win is NULL, or size is 0");
  }
  *window = nullptr;
  const bool shared = (flags & kWindowSymmetric) != 0;
  return when_group_ends(kName, comm, [=]() -> Result {
    auto made = std::make_unique<ncclWindow_vidmem>(ncclWindow_vidmem{nullptr, memory});
    const Result opened = shared ? open_window(comm, bytes, made.get()) : kSuccess;
    if (opened != kSuccess) return opened;
    keep(comm, made.get());
    *window = made.release();
    return kSuccess;
  });
}

GDRX_NCCL(ncclCommWindowDeregister, ncclComm* comm, ncclWindow_vidmem* window) {
  constexpr auto kName = "ncclCommWindowDeregister";
  const Use use(comm);
  if (use.fault() != nullptr) return refuse(kName, kInvalidArgument, use.fault());
  if (window == nullptr) return kSuccess;
  return when_group_ends(kName, comm, [=]() -> Result {
    const auto closed = take(comm, window);
    if (!closed) return refuse(kName, kInvalidArgument, kNoWindow);
    if (closed->registration == nullptr) return kSuccess;
    return through(kName, comm,
                   [&](gdrxComm_t gdrx) { return gdrxDeregister(gdrx, closed->registration); });
  });
}

GDRX_NCCL(ncclWinGetUserPtr, ncclComm* comm, ncclWindow_vidmem* window, void** memory) {
  constexpr auto kName = "ncclWinGetUserPtr";
  const Use use(comm);
  if (use.fault() != nullptr) return deny(kName, kInvalidArgument, use.fault());
  if (window == nullptr || memory == nullptr) {
    return deny(kName, kInvalidArgument, "win or outUserPtr is NULL");
  }
  const std::lock_guard lock(comm->window_lock);
  if (place_of(comm, window) == nullptr) return deny(kName, kInvalidArgument, kNoWindow);
  *memory = window->memory;
  return kSuccess;
}

/// ncclCommMemStat_t: 0 can be suspended, 1 is suspended, 2 cannot be, 3 all.
GDRX_NCCL(ncclCommMemStats, ncclComm* comm, int stat, std::uint64_t* value) {
  constexpr auto kName = "ncclCommMemStats";
  if (value == nullptr || stat < 0 || stat > 3) {
    return deny(kName, kInvalidArgument, "value is NULL, or stat is no ncclCommMemStat_t");
  }
  *value = 0;
  gdrxMemoryInfo_t info{};
  info.size = sizeof info;
  const Result asked =
      at_once(kName, comm, [&](gdrxComm_t gdrx) { return gdrxCommGetMemory(gdrx, &info); });
  if (asked == kSuccess && stat >= 2) *value = info.gpu_bytes;
  return asked;
}
