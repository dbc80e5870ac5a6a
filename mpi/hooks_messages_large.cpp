// SPDX-License-Identifier: Apache-2.0
// Point-to-point calls with counts of 64 bits, by those of ints where an MPI lacks them (MPICH 3).
#include "mpi/message_hook.hpp"
#include "mpi/narrow.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// NARROW, PASSED: the call with ints, where FITS.
#define GDRX_LARGE_COPIED_AS(name, PARAMETERS, ARGUMENTS, NARROW, PASSED, FITS, COPY, DONE) \
  GDRX_MPIS int name##_c PARAMETERS {                                                       \
    static constinit Real<decltype(::name##_c)> real_one(#name "_c");                       \
    static constinit Real<int NARROW> narrow_one(#name);                                    \
    Copies copies;                                                                          \
    if (copies_for_mpi()) [[unlikely]]                                                      \
      COPY;                                                                                 \
    const int result = real_one.exists() ? real_one ARGUMENTS                               \
                       : FITS            ? narrow_one PASSED                                \
                                         : refuse_count(#name);                                        \
    return copies.done DONE;                                                                \
  }
#define GDRX_LARGE_COPIED(name, ...)            \
  GDRX_LARGE_COPIED_AS(MPI_##name, __VA_ARGS__) \
  GDRX_LARGE_COPIED_AS(PMPI_##name, __VA_ARGS__)

namespace {
bool fits(MPI_Count count) noexcept { return count == static_cast<int>(count); }
}  // namespace

// clang-format off
GDRX_LARGE_COPIED(Send, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm), (b, static_cast<int>(n), t, to, tag, c), fits(n), b = copies.send(b, n, t, to), (result))
GDRX_LARGE_COPIED(Bsend, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm), (b, static_cast<int>(n), t, to, tag, c), fits(n), b = copies.send(b, n, t, to), (result))
GDRX_LARGE_COPIED(Ssend, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm), (b, static_cast<int>(n), t, to, tag, c), fits(n), b = copies.send(b, n, t, to), (result))
GDRX_LARGE_COPIED(Rsend, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm), (b, static_cast<int>(n), t, to, tag, c), fits(n), b = copies.send(b, n, t, to), (result))
GDRX_LARGE_COPIED(Recv, (void* b, MPI_Count n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* s), (b, n, t, from, tag, c, s),
                  (void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*), (b, static_cast<int>(n), t, from, tag, c, s), fits(n), b = copies.recv(b, n, t, from), (result))
GDRX_LARGE_COPIED(Mrecv, (void* b, MPI_Count n, MPI_Datatype t, MPI_Message* m, MPI_Status* s), (b, n, t, m, s),
                  (void*, int, MPI_Datatype, MPI_Message*, MPI_Status*), (b, static_cast<int>(n), t, m, s), fits(n), b = copies.recv(b, n, t), (result))
GDRX_LARGE_COPIED(Sendrecv, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, void* rb, MPI_Count rn, MPI_Datatype rt, int from, int rtag, MPI_Comm c, MPI_Status* s), (b, n, t, to, tag, rb, rn, rt, from, rtag, c, s),
                  (const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*), (b, static_cast<int>(n), t, to, tag, rb, static_cast<int>(rn), rt, from, rtag, c, s), fits(n) && fits(rn), (b = copies.send(b, n, t, to), rb = copies.recv(rb, rn, rt, from)), (result))
GDRX_LARGE_COPIED(Sendrecv_replace, (void* b, MPI_Count n, MPI_Datatype t, int to, int tag, int from, int rtag, MPI_Comm c, MPI_Status* s), (b, n, t, to, tag, from, rtag, c, s),
                  (void*, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status*), (b, static_cast<int>(n), t, to, tag, from, rtag, c, s), fits(n), b = copies.recv(b, n, t, from == MPI_PROC_NULL ? to : from), (result))
GDRX_LARGE_COPIED(Isend, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, to, tag, c, q), fits(n), b = copies.send(b, n, t, to), (result, q, false))
GDRX_LARGE_COPIED(Ibsend, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, to, tag, c, q), fits(n), b = copies.send(b, n, t, to), (result, q, false))
GDRX_LARGE_COPIED(Issend, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, to, tag, c, q), fits(n), b = copies.send(b, n, t, to), (result, q, false))
GDRX_LARGE_COPIED(Irsend, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, to, tag, c, q), fits(n), b = copies.send(b, n, t, to), (result, q, false))
GDRX_LARGE_COPIED(Irecv, (void* b, MPI_Count n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, from, tag, c, q),
                  (void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, from, tag, c, q), fits(n), b = copies.recv(b, n, t, from), (result, q, false))
GDRX_LARGE_COPIED(Imrecv, (void* b, MPI_Count n, MPI_Datatype t, MPI_Message* m, MPI_Request* q), (b, n, t, m, q),
                  (void*, int, MPI_Datatype, MPI_Message*, MPI_Request*), (b, static_cast<int>(n), t, m, q), fits(n), b = copies.recv(b, n, t), (result, q, false))
GDRX_LARGE_COPIED(Send_init, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, to, tag, c, q), fits(n), b = copies.send(b, n, t, to), (result, q, true))
GDRX_LARGE_COPIED(Bsend_init, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, to, tag, c, q), fits(n), b = copies.send(b, n, t, to), (result, q, true))
GDRX_LARGE_COPIED(Ssend_init, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, to, tag, c, q), fits(n), b = copies.send(b, n, t, to), (result, q, true))
GDRX_LARGE_COPIED(Rsend_init, (const void* b, MPI_Count n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q),
                  (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, to, tag, c, q), fits(n), b = copies.send(b, n, t, to), (result, q, true))
GDRX_LARGE_COPIED(Recv_init, (void* b, MPI_Count n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, from, tag, c, q),
                  (void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), (b, static_cast<int>(n), t, from, tag, c, q), fits(n), b = copies.recv(b, n, t, from), (result, q, true))
// clang-format on
