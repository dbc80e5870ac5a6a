// SPDX-License-Identifier: Apache-2.0
#include "mpi/library.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "mpi/abi/abi.hpp"

namespace gdrx::mpi {
namespace {

// Opened by the program, with names that it keeps to itself. Null: not opened.
void* own_handle() noexcept {
  for (const char* const name : kAbi.sonames) {
    if (*name == 0) continue;
    if (void* const opened = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return opened;
  }
  return nullptr;
}

}  // namespace

void* find_function(const char* name) noexcept {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  void* const handle = own_handle();
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

void* find_object(const char* name) noexcept {
  if (void* const found = dlsym(RTLD_DEFAULT, name)) return found;
  void* const handle = own_handle();
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

bool Place::look() noexcept {
  void* const found = find_function(name_);
  at_.store(found, std::memory_order_relaxed);
  lacks_.store(found == nullptr, std::memory_order_relaxed);
  return found != nullptr;
}

void* Place::must_find() noexcept {
  if (!look()) {
    std::fprintf(stderr, "gdrx: there is no %s behind %s: the program's MPI is not %s\n", name_,
                 kAbi.object, kAbi.mpis);
    std::abort();
  }
  return at_.load(std::memory_order_relaxed);
}

int refuse_missing(MPI_Comm comm, const char* name) noexcept {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) std::fprintf(stderr, "gdrx: MPI has no %s\n", name);
  real::Comm_call_errhandler(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

bool is_served() noexcept {
  static const bool kIs = [] {
    if (has_this_abi()) return true;
    if (sizeof(MPI_Comm) >= sizeof(void*)) return false;  // what it calls a handle passes whole
    std::fprintf(
        stderr,
        "gdrx: %s is before a program whose MPI is not %s: gdrx mpirun picks the right one\n",
        kAbi.object, kAbi.mpis);
    std::abort();
  }();
  return kIs;
}

}  // namespace gdrx::mpi
