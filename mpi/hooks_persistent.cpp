// SPDX-License-Identifier: Apache-2.0
// The persistent collectives: MPI 4's, and those that Open MPI 4 has under names of its own.
#include "mpi/hook.hpp"
#include "mpi/persistent.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// Where MPI has a call by the other name alone, that has it.
#define GDRX_PERSISTENT_AS(prefix, other, name, PARAMETERS, ARGUMENTS, ...)              \
  GDRX_HOOK_BY(prefix##name##_init, PARAMETERS, ([&] {                                   \
                 static constinit Real<int PARAMETERS> other_one(#other #name "_init");  \
                 Real<int PARAMETERS>& one = real_one.exists() ? real_one : other_one;   \
                 return one.exists() ? one ARGUMENTS                                     \
                                     : refuse_missing(call.comm, #prefix #name "_init"); \
               }()),                                                                     \
               __VA_ARGS__)
#define GDRX_PERSISTENT(name, PARAMETERS, ARGUMENTS, ...)                     \
  GDRX_PERSISTENT_AS(MPI_, MPIX_, name, PARAMETERS, ARGUMENTS, __VA_ARGS__)   \
  GDRX_PERSISTENT_AS(PMPI_, PMPIX_, name, PARAMETERS, ARGUMENTS, __VA_ARGS__) \
  GDRX_PERSISTENT_AS(MPIX_, MPI_, name, PARAMETERS, ARGUMENTS, __VA_ARGS__)   \
  GDRX_PERSISTENT_AS(PMPIX_, PMPI_, name, PARAMETERS, ARGUMENTS, __VA_ARGS__)

// clang-format off
GDRX_PERSISTENT(Allreduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Reduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, root, c, info, q),
          .kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Reduce_scatter_block, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Reduce_scatter, (const void* s, void* r, const int* n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::reduce_scatter, .comm = c, .send = s, .recv = r, .recv_type = t, .recv_counts = n, .op = op, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Scan, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::scan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Exscan, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::exscan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.recv, n, t, root, c, info, q),
          .kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Allgather, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, info, q),
          .kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Allgatherv, (const void* s, int sn, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, c, info, q),
          .kind = Kind::allgatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Alltoall, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, info, q),
          .kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Alltoallv, (const void* s, const int* sn, const int* sd, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rd, rt, c, info, q),
          .kind = Kind::alltoallv, .comm = c, .send = s, .recv = r, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .recv_counts = rn, .recv_places = rd, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Gather, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, info, q),
          .kind = Kind::gather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Gatherv, (const void* s, int sn, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, root, c, info, q),
          .kind = Kind::gatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .root = root, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Scatter, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, info, q),
          .kind = Kind::scatter, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Scatterv, (const void* s, const int* sn, const int* sd, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rt, root, c, info, q),
          .kind = Kind::scatterv, .comm = c, .send = s, .recv = r, .recv_count = rn, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .root = root, .form = Form::persistent, .request = q)
GDRX_PERSISTENT(Barrier, (MPI_Comm c, MPI_Info info, MPI_Request* q), (c, info, q), .kind = Kind::barrier, .comm = c, .form = Form::persistent, .request = q)
// clang-format on
