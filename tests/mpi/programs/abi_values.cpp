// SPDX-License-Identifier: Apache-2.0
// What mpi/abi has of an interface, beside an MPI's own header of it. GDRX_ABI: its folder.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#define GDRX_QUOTE(path) #path
// clang-format off
#define GDRX_PATH(folder, name) GDRX_QUOTE(mpi/abi/folder/name)
// clang-format on
#define GDRX_TYPES GDRX_PATH_OF(GDRX_ABI, types.h)
#define GDRX_VALUES GDRX_PATH_OF(GDRX_ABI, values.h)
#define GDRX_PATH_OF(folder, name) GDRX_PATH(folder, name)

namespace ours {
#include GDRX_TYPES
}

#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "mpi/abi/functions.h"  // one that is declared in another way does not compile
#include GDRX_VALUES

static_assert(sizeof(ours::MPI_Comm) == sizeof(MPI_Comm));
static_assert(sizeof(ours::MPI_Datatype) == sizeof(MPI_Datatype));
static_assert(sizeof(ours::MPI_Errhandler) == sizeof(MPI_Errhandler));
static_assert(sizeof(ours::MPI_Info) == sizeof(MPI_Info));
static_assert(sizeof(ours::MPI_Group) == sizeof(MPI_Group));
static_assert(sizeof(ours::MPI_Message) == sizeof(MPI_Message));
static_assert(sizeof(ours::MPI_Op) == sizeof(MPI_Op));
static_assert(sizeof(ours::MPI_Request) == sizeof(MPI_Request));
static_assert(sizeof(ours::MPI_Aint) == sizeof(MPI_Aint));
static_assert(sizeof(ours::MPI_Count) == sizeof(MPI_Count));
static_assert(sizeof(ours::MPI_Status) == sizeof(MPI_Status));
static_assert(offsetof(ours::MPI_Status, MPI_SOURCE) == offsetof(MPI_Status, MPI_SOURCE));
static_assert(offsetof(ours::MPI_Status, MPI_TAG) == offsetof(MPI_Status, MPI_TAG));
static_assert(offsetof(ours::MPI_Status, MPI_ERROR) == offsetof(MPI_Status, MPI_ERROR));

static int compare(const char* name, std::intptr_t theirs, std::intptr_t ours) {
  if (theirs == ours) return 0;
  std::printf("%s is %#lx, not %#lx\n", name, static_cast<long>(theirs), static_cast<long>(ours));
  return 1;
}

int main() {
  int wrong = 0;
#define COMPARE(type, name, value) \
  wrong += compare(#name, (std::intptr_t)(name), (std::intptr_t)(type)(value));
  GDRX_MPI_HANDLES(COMPARE)
  GDRX_MPI_NUMBERS(COMPARE)
#undef COMPARE
#define COMPARE(type, name, value) wrong += compare(#name, (std::intptr_t)(name), value);
  GDRX_MPI_POINTERS(COMPARE)
  return wrong;
}
