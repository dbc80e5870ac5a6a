// SPDX-License-Identifier: Apache-2.0
// The nonblocking collectives.
#include "mpi/hook.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// clang-format off
GDRX_HOOK(Iallreduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Ireduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, root, c, q),
          .kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Ireduce_scatter_block, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Ireduce_scatter, (const void* s, void* r, const int* n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::reduce_scatter, .comm = c, .send = s, .recv = r, .recv_type = t, .recv_counts = n, .op = op, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Iscan, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::scan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Iexscan, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::exscan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Ibcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request* q), (call.recv, n, t, root, c, q),
          .kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Iallgather, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, q),
          .kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Iallgatherv, (const void* s, int sn, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, c, q),
          .kind = Kind::allgatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Ialltoall, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, q),
          .kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Ialltoallv, (const void* s, const int* sn, const int* sd, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rd, rt, c, q),
          .kind = Kind::alltoallv, .comm = c, .send = s, .recv = r, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .recv_counts = rn, .recv_places = rd, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Igather, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::gather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Igatherv, (const void* s, int sn, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, root, c, q),
          .kind = Kind::gatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .root = root, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Iscatter, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::scatter, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Iscatterv, (const void* s, const int* sn, const int* sd, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::scatterv, .comm = c, .send = s, .recv = r, .recv_count = rn, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .root = root, .form = Form::nonblocking, .request = q)
GDRX_HOOK(Ibarrier, (MPI_Comm c, MPI_Request* q), (c, q), .kind = Kind::barrier, .comm = c, .form = Form::nonblocking, .request = q)
// clang-format on
