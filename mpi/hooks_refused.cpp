// SPDX-License-Identifier: Apache-2.0
// Windows, files and partitioned messages: memory that MPI keeps, or writes to for long, is not
// copied. A line in place of a crash.
#include <cstdio>

#include "mpi/copies.hpp"
#include "mpi/cuda.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

namespace {

int refuse_gpu(const char* name) noexcept {
  std::fprintf(stderr,
               "gdrx: %s has got a buffer on a GPU, and this MPI knows no GPUs: copy it to host "
               "memory before\n",
               name);
  real::Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_BUFFER);
  return MPI_ERR_BUFFER;
}

}  // namespace

#define GDRX_REFUSED_AS(name, PARAMETERS, ARGUMENTS, IS_ON_GPU)           \
  GDRX_MPIS int name PARAMETERS {                                         \
    static constinit Real<decltype(::name)> real_one(#name);              \
    if (copies_for_mpi() && (IS_ON_GPU)) [[unlikely]]                     \
      return refuse_gpu(#name);                                           \
    if (!real_one.exists()) return refuse_missing(MPI_COMM_WORLD, #name); \
    return real_one ARGUMENTS;                                            \
  }
#define GDRX_REFUSED(name, PARAMETERS, ARGUMENTS, IS_ON_GPU)    \
  GDRX_REFUSED_AS(MPI_##name, PARAMETERS, ARGUMENTS, IS_ON_GPU) \
  GDRX_REFUSED_AS(PMPI_##name, PARAMETERS, ARGUMENTS, IS_ON_GPU)

// clang-format off
GDRX_REFUSED(Win_create, (void* b, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm c, MPI_Win* w), (b, bytes, unit, info, c, w), is_on_gpu(b))
GDRX_REFUSED(Win_attach, (MPI_Win w, void* b, MPI_Aint bytes), (w, b, bytes), is_on_gpu(b))
GDRX_REFUSED(Put, (const void* b, int n, MPI_Datatype t, int to, MPI_Aint d, int rn, MPI_Datatype rt, MPI_Win w), (b, n, t, to, d, rn, rt, w), is_on_gpu(b))
GDRX_REFUSED(Rput, (const void* b, int n, MPI_Datatype t, int to, MPI_Aint d, int rn, MPI_Datatype rt, MPI_Win w, MPI_Request* q), (b, n, t, to, d, rn, rt, w, q), is_on_gpu(b))
GDRX_REFUSED(Get, (void* b, int n, MPI_Datatype t, int to, MPI_Aint d, int rn, MPI_Datatype rt, MPI_Win w), (b, n, t, to, d, rn, rt, w), is_on_gpu(b))
GDRX_REFUSED(Rget, (void* b, int n, MPI_Datatype t, int to, MPI_Aint d, int rn, MPI_Datatype rt, MPI_Win w, MPI_Request* q), (b, n, t, to, d, rn, rt, w, q), is_on_gpu(b))
GDRX_REFUSED(Accumulate, (const void* b, int n, MPI_Datatype t, int to, MPI_Aint d, int rn, MPI_Datatype rt, MPI_Op op, MPI_Win w), (b, n, t, to, d, rn, rt, op, w), is_on_gpu(b))
GDRX_REFUSED(Raccumulate, (const void* b, int n, MPI_Datatype t, int to, MPI_Aint d, int rn, MPI_Datatype rt, MPI_Op op, MPI_Win w, MPI_Request* q), (b, n, t, to, d, rn, rt, op, w, q), is_on_gpu(b))
GDRX_REFUSED(Get_accumulate, (const void* b, int n, MPI_Datatype t, void* rb, int got, MPI_Datatype gt, int to, MPI_Aint d, int rn, MPI_Datatype rt, MPI_Op op, MPI_Win w), (b, n, t, rb, got, gt, to, d, rn, rt, op, w), is_on_gpu(b) || is_on_gpu(rb))
GDRX_REFUSED(Rget_accumulate, (const void* b, int n, MPI_Datatype t, void* rb, int got, MPI_Datatype gt, int to, MPI_Aint d, int rn, MPI_Datatype rt, MPI_Op op, MPI_Win w, MPI_Request* q), (b, n, t, rb, got, gt, to, d, rn, rt, op, w, q), is_on_gpu(b) || is_on_gpu(rb))
GDRX_REFUSED(Fetch_and_op, (const void* b, void* rb, MPI_Datatype t, int to, MPI_Aint d, MPI_Op op, MPI_Win w), (b, rb, t, to, d, op, w), is_on_gpu(b) || is_on_gpu(rb))
GDRX_REFUSED(Compare_and_swap, (const void* b, const void* other, void* rb, MPI_Datatype t, int to, MPI_Aint d, MPI_Win w), (b, other, rb, t, to, d, w), is_on_gpu(b) || is_on_gpu(other) || is_on_gpu(rb))
GDRX_REFUSED(File_read, (MPI_File f, void* b, int n, MPI_Datatype t, MPI_Status* s), (f, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_read_all, (MPI_File f, void* b, int n, MPI_Datatype t, MPI_Status* s), (f, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_read_shared, (MPI_File f, void* b, int n, MPI_Datatype t, MPI_Status* s), (f, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_read_ordered, (MPI_File f, void* b, int n, MPI_Datatype t, MPI_Status* s), (f, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_read_at, (MPI_File f, MPI_Offset at, void* b, int n, MPI_Datatype t, MPI_Status* s), (f, at, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_read_at_all, (MPI_File f, MPI_Offset at, void* b, int n, MPI_Datatype t, MPI_Status* s), (f, at, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_iread, (MPI_File f, void* b, int n, MPI_Datatype t, MPI_Request* q), (f, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_iread_all, (MPI_File f, void* b, int n, MPI_Datatype t, MPI_Request* q), (f, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_iread_shared, (MPI_File f, void* b, int n, MPI_Datatype t, MPI_Request* q), (f, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_iread_at, (MPI_File f, MPI_Offset at, void* b, int n, MPI_Datatype t, MPI_Request* q), (f, at, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_iread_at_all, (MPI_File f, MPI_Offset at, void* b, int n, MPI_Datatype t, MPI_Request* q), (f, at, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_write, (MPI_File f, const void* b, int n, MPI_Datatype t, MPI_Status* s), (f, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_write_all, (MPI_File f, const void* b, int n, MPI_Datatype t, MPI_Status* s), (f, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_write_shared, (MPI_File f, const void* b, int n, MPI_Datatype t, MPI_Status* s), (f, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_write_ordered, (MPI_File f, const void* b, int n, MPI_Datatype t, MPI_Status* s), (f, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_write_at, (MPI_File f, MPI_Offset at, const void* b, int n, MPI_Datatype t, MPI_Status* s), (f, at, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_write_at_all, (MPI_File f, MPI_Offset at, const void* b, int n, MPI_Datatype t, MPI_Status* s), (f, at, b, n, t, s), is_on_gpu(b))
GDRX_REFUSED(File_iwrite, (MPI_File f, const void* b, int n, MPI_Datatype t, MPI_Request* q), (f, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_iwrite_all, (MPI_File f, const void* b, int n, MPI_Datatype t, MPI_Request* q), (f, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_iwrite_shared, (MPI_File f, const void* b, int n, MPI_Datatype t, MPI_Request* q), (f, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_iwrite_at, (MPI_File f, MPI_Offset at, const void* b, int n, MPI_Datatype t, MPI_Request* q), (f, at, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(File_iwrite_at_all, (MPI_File f, MPI_Offset at, const void* b, int n, MPI_Datatype t, MPI_Request* q), (f, at, b, n, t, q), is_on_gpu(b))
GDRX_REFUSED(Psend_init, (const void* b, int parts, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Info i, MPI_Request* q), (b, parts, n, t, to, tag, c, i, q), is_on_gpu(b))
GDRX_REFUSED(Precv_init, (void* b, int parts, MPI_Count n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Info i, MPI_Request* q), (b, parts, n, t, from, tag, c, i, q), is_on_gpu(b))
// clang-format on
