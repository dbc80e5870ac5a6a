// SPDX-License-Identifier: Apache-2.0
#include "mpi/library.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace gdrx::mpi {
namespace {

constexpr const char* kSoname = "libmpi.so.40";

// Opened by the program, with names that it keeps to itself. Null: not opened.
void* own_handle() noexcept { return dlopen(kSoname, RTLD_LAZY | RTLD_NOLOAD); }

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

void die_without(const char* name) noexcept {
  std::fprintf(stderr,
               "gdrx: there is no %s behind libgdrx-coll-ompi.so: the program's MPI is not %s\n",
               name, kSoname);
  std::abort();
}

}  // namespace gdrx::mpi
