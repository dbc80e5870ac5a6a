// SPDX-License-Identifier: Apache-2.0
// Point-to-point calls, for buffers on a GPU: MPI has them all.
#include "mpi/message_hook.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// MPI 4's.
#define GDRX_LATER_AS(name, PARAMETERS, ARGUMENTS, COPY)     \
  GDRX_MPIS int name PARAMETERS {                            \
    static constinit Real<decltype(::name)> real_one(#name); \
    if (!real_one.exists()) return refuse_missing(c, #name); \
    Copies copies;                                           \
    if (copies_for_mpi()) [[unlikely]]                       \
      COPY;                                                  \
    return copies.done(real_one ARGUMENTS, q, false);        \
  }
#define GDRX_LATER(name, PARAMETERS, ARGUMENTS, COPY)    \
  GDRX_LATER_AS(MPI_##name, PARAMETERS, ARGUMENTS, COPY) \
  GDRX_LATER_AS(PMPI_##name, PARAMETERS, ARGUMENTS, COPY)

// clang-format off
GDRX_BLOCKING(Send, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c), b = copies.send(b, n, t, to))
GDRX_BLOCKING(Bsend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c), b = copies.send(b, n, t, to))
GDRX_BLOCKING(Ssend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c), b = copies.send(b, n, t, to))
GDRX_BLOCKING(Rsend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c), b = copies.send(b, n, t, to))
GDRX_BLOCKING(Recv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* s), (b, n, t, from, tag, c, s), b = copies.recv(b, n, t, from))
GDRX_BLOCKING(Mrecv, (void* b, int n, MPI_Datatype t, MPI_Message* m, MPI_Status* s), (b, n, t, m, s), b = copies.recv(b, n, t))
GDRX_BLOCKING(Sendrecv, (const void* b, int n, MPI_Datatype t, int to, int tag, void* rb, int rn, MPI_Datatype rt, int from, int rtag, MPI_Comm c, MPI_Status* s),
          (b, n, t, to, tag, rb, rn, rt, from, rtag, c, s), (b = copies.send(b, n, t, to), rb = copies.recv(rb, rn, rt, from)))
GDRX_BLOCKING(Sendrecv_replace, (void* b, int n, MPI_Datatype t, int to, int tag, int from, int rtag, MPI_Comm c, MPI_Status* s),
          (b, n, t, to, tag, from, rtag, c, s), b = copies.recv(b, n, t, from == MPI_PROC_NULL ? to : from))
GDRX_REQUESTING(Isend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q), b = copies.send(b, n, t, to))
GDRX_REQUESTING(Ibsend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q), b = copies.send(b, n, t, to))
GDRX_REQUESTING(Issend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q), b = copies.send(b, n, t, to))
GDRX_REQUESTING(Irsend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q), b = copies.send(b, n, t, to))
GDRX_REQUESTING(Irecv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, from, tag, c, q), b = copies.recv(b, n, t, from))
GDRX_REQUESTING(Imrecv, (void* b, int n, MPI_Datatype t, MPI_Message* m, MPI_Request* q), (b, n, t, m, q), b = copies.recv(b, n, t))
GDRX_PERSISTING(Send_init, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q), b = copies.send(b, n, t, to))
GDRX_PERSISTING(Bsend_init, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q), b = copies.send(b, n, t, to))
GDRX_PERSISTING(Ssend_init, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q), b = copies.send(b, n, t, to))
GDRX_PERSISTING(Rsend_init, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, to, tag, c, q), b = copies.send(b, n, t, to))
GDRX_PERSISTING(Recv_init, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* q), (b, n, t, from, tag, c, q), b = copies.recv(b, n, t, from))
GDRX_BLOCKING(Pack, (const void* b, int n, MPI_Datatype t, void* rb, int size, int* at, MPI_Comm c), (b, n, t, rb, size, at, c), (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add(Run{*at, size}); })))
GDRX_BLOCKING(Unpack, (const void* b, int size, int* at, void* rb, int n, MPI_Datatype t, MPI_Comm c), (b, size, at, rb, n, t, c), (b = copies.send(b, size, MPI_BYTE), rb = copies.recv(rb, n, t)))
GDRX_BLOCKING(Pack_external, (const char* form, const void* b, int n, MPI_Datatype t, void* rb, MPI_Aint size, MPI_Aint* at), (form, b, n, t, rb, size, at), (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add(Run{*at, size}); })))
GDRX_BLOCKING(Unpack_external, (const char* form, const void* b, MPI_Aint size, MPI_Aint* at, void* rb, int n, MPI_Datatype t), (form, b, size, at, rb, n, t), (b = copies.send(b, size, MPI_BYTE), rb = copies.recv(rb, n, t)))
GDRX_LATER(Isendrecv, (const void* b, int n, MPI_Datatype t, int to, int tag, void* rb, int rn, MPI_Datatype rt, int from, int rtag, MPI_Comm c, MPI_Request* q),
           (b, n, t, to, tag, rb, rn, rt, from, rtag, c, q), (b = copies.send(b, n, t, to), rb = copies.recv(rb, rn, rt, from)))
GDRX_LATER(Isendrecv_replace, (void* b, int n, MPI_Datatype t, int to, int tag, int from, int rtag, MPI_Comm c, MPI_Request* q),
           (b, n, t, to, tag, from, rtag, c, q), b = copies.recv(b, n, t, from == MPI_PROC_NULL ? to : from))
// clang-format on
