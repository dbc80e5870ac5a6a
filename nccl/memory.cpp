// SPDX-License-Identifier: Apache-2.0
// Memory: allocated, registered, in windows.
#include <atomic>
#include <mutex>
#include <optional>

#include "nccl/comm.hpp"
#include "nccl/driver.hpp"
#include "nccl/group.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

namespace {

/// CUDA maps memory in such pieces, and what has a piece of its own can be shared alone.
constexpr std::size_t kPiece = std::size_t{2} << 20;

constexpr auto kNoWindow = "win is no open window of comm";

/// Handles are numbers, none of them twice: one that was closed names no other window.
std::uintptr_t next_handle() noexcept {
  static std::atomic<std::uintptr_t> last{0};
  return ++last;
}
std::uintptr_t number_of(const ncclWindow_vidmem* window) noexcept {
  return reinterpret_cast<std::uintptr_t>(window);
}

ncclWindow_vidmem* keep(ncclComm* comm, const Window& window) {
  const std::uintptr_t handle = next_handle();
  const std::lock_guard lock(comm->window_lock);
  comm->windows.emplace(handle, window);
  return reinterpret_cast<ncclWindow_vidmem*>(handle);
}

std::optional<Window> find(ncclComm* comm, const ncclWindow_vidmem* window) noexcept {
  const std::lock_guard lock(comm->window_lock);
  const auto found = comm->windows.find(number_of(window));
  return found == comm->windows.end() ? std::nullopt : std::optional(found->second);
}

/// What only some ranks' GPUs can do is no error in NCCL: all of them get a plain window.
Result open_window(ncclComm* comm, std::size_t bytes, Window& window) {
  gdrxResult_t result = gdrxSuccess;
  const Result told = through("ncclCommWindowRegister", comm, [&](gdrxComm_t gdrx) {
    result = gdrxRegister(gdrx, window.memory, bytes, &window.registration);
    return result == gdrxUnsupported ? gdrxSuccess : result;
  });
  return told;
}

}  // namespace

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
    Window made{nullptr, memory};
    const Result opened = shared ? open_window(comm, bytes, made) : kSuccess;
    if (opened == kSuccess) *window = keep(comm, made);
    return opened;
  });
}

GDRX_NCCL(ncclCommWindowDeregister, ncclComm* comm, ncclWindow_vidmem* window) {
  constexpr auto kName = "ncclCommWindowDeregister";
  const Use use(comm);
  if (use.fault() != nullptr) return refuse(kName, kInvalidArgument, use.fault());
  if (window == nullptr) return kSuccess;
  return when_group_ends(kName, comm, [=]() -> Result {
    const std::optional<Window> open = find(comm, window);
    if (!open) return refuse(kName, kInvalidArgument, kNoWindow);
    if (open->registration != nullptr) {
      const Result closed = through(
          kName, comm, [&](gdrxComm_t gdrx) { return gdrxDeregister(gdrx, open->registration); });
      if (closed != kSuccess) return closed;
    }
    const std::lock_guard lock(comm->window_lock);
    comm->windows.erase(number_of(window));
    return kSuccess;
  });
}

GDRX_NCCL(ncclWinGetUserPtr, ncclComm* comm, ncclWindow_vidmem* window, void** memory) {
  constexpr auto kName = "ncclWinGetUserPtr";
  const Use use(comm);
  if (use.fault() != nullptr) return deny(kName, kInvalidArgument, use.fault());
  if (window == nullptr || memory == nullptr) {
    return deny(kName, kInvalidArgument, "win or outUserPtr is NULL");
  }
  const std::optional<Window> open = find(comm, window);
  if (!open) return deny(kName, kInvalidArgument, kNoWindow);
  *memory = open->memory;
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
