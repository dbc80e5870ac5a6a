// SPDX-License-Identifier: Apache-2.0
// gdrxMemAlloc, gdrxGpuMemAlloc, gdrxRegister and their ends.
#include <algorithm>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_state.hpp"

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

namespace {

Result<void> check(const gdrxComm* comm, bool given, const char* what) {
  GDRX_TRY(check_comm(comm));
  GDRX_TRY(check_open(comm));
  if (!given) return fail(Errc::invalid_argument, std::string(what) + " is NULL");
  return {};
}

trace::Span mark(const gdrxComm* comm, std::string_view name, std::size_t bytes) {
  trace::Detail detail;
  detail.bytes = bytes;
  return {comm->impl->track(), trace::Row::calls, trace::Kind::call, name, detail};
}

}  // namespace

gdrxResult_t gdrxMemAlloc(gdrxComm_t comm, void** memory, size_t bytes) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check(comm, memory != nullptr, "memory"));
    *memory = nullptr;
    if (bytes == 0) return {};
    const trace::Span marked = mark(comm, "gdrxMemAlloc", bytes);
    *memory = GDRX_TRY(comm->impl->allocate_memory(bytes));
    return {};
  });
}

gdrxResult_t gdrxGpuMemAlloc(gdrxComm_t comm, void** memory, size_t bytes) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check(comm, memory != nullptr, "memory"));
    *memory = nullptr;
    const trace::Span marked = mark(comm, "gdrxGpuMemAlloc", bytes);
    *memory = GDRX_TRY(comm->impl->allocate_gpu_memory(bytes));
    return {};
  });
}

gdrxResult_t gdrxMemFree(gdrxComm_t comm, void* memory) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check(comm, true, "memory"));
    if (memory == nullptr) return {};
    const trace::Span marked = mark(comm, "gdrxMemFree", 0);
    if (const auto* window = comm->impl->window_with(memory)) {
      return comm->impl->close_window(window);
    }
    return comm->impl->free_memory(static_cast<const std::byte*>(memory));
  });
}

// A handle is the registration itself: one that is not in the communicator's table is refused.
gdrxResult_t gdrxRegister(gdrxComm_t comm, void* memory, size_t bytes, gdrxRegistration_t* handle) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check(comm, memory != nullptr, "memory"));
    GDRX_TRY(check(comm, handle != nullptr, "handle"));
    *handle = nullptr;
    const trace::Span marked = mark(comm, "gdrxRegister", bytes);
    if (comm->impl->shares(memory)) {
      const auto* window =
          GDRX_TRY(comm->impl->open_window({static_cast<std::byte*>(memory), bytes}));
      *handle = reinterpret_cast<gdrxRegistration_t>(const_cast<Window*>(window));
      return {};
    }
    const RegistrationRef made =
        GDRX_TRY(comm->impl->register_memory({static_cast<std::byte*>(memory), bytes}));
    comm->registered.push_back(made.get());
    *handle = reinterpret_cast<gdrxRegistration_t>(const_cast<Registration*>(made.get()));
    return {};
  });
}

gdrxResult_t gdrxDeregister(gdrxComm_t comm, gdrxRegistration_t handle) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check(comm, handle != nullptr, "handle"));
    const trace::Span marked = mark(comm, "gdrxDeregister", 0);
    if (const auto* window = comm->impl->window_of(handle)) {
      return comm->impl->close_window(window);
    }
    const auto* const registration = reinterpret_cast<const Registration*>(handle);
    const auto mine = std::find(comm->registered.begin(), comm->registered.end(), registration);
    if (mine != comm->registered.end()) comm->registered.erase(mine);
    return comm->impl->release_memory(registration);
  });
}
