// SPDX-License-Identifier: Apache-2.0
// Point-to-point calls with counts of 64 bits, by those of ints where an MPI lacks them (MPICH 3).
#include "mpi/large_hook.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

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
GDRX_LARGE_COPIED(Pack, (const void* b, MPI_Count n, MPI_Datatype t, void* rb, MPI_Count size, MPI_Count* at, MPI_Comm c), (b, n, t, rb, size, at, c),
                  (const void*, int, MPI_Datatype, void*, int, int*, MPI_Comm), (b, static_cast<int>(n), t, rb, static_cast<int>(size), NarrowPlace(at).at(), c), fits(n) && fits(size) && fits(*at), (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add(Run{*at, size}); })), (result))
GDRX_LARGE_COPIED(Unpack, (const void* b, MPI_Count size, MPI_Count* at, void* rb, MPI_Count n, MPI_Datatype t, MPI_Comm c), (b, size, at, rb, n, t, c),
                  (const void*, int, int*, void*, int, MPI_Datatype, MPI_Comm), (b, static_cast<int>(size), NarrowPlace(at).at(), rb, static_cast<int>(n), t, c), fits(n) && fits(size) && fits(*at), (b = copies.send(b, size, MPI_BYTE), rb = copies.recv(rb, n, t)), (result))
// clang-format on
