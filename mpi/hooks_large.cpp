// SPDX-License-Identifier: Apache-2.0
// The collectives of MPI 4 whose counts have 64 bits, for the MPIs that have them. mpi4py calls no
// others there, and so they are here for an MPI that lacks them, too.
#include "mpi/hook.hpp"
#include "mpi/narrow.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

#define GDRX_LARGE_AS(prefix, name, PARAMETERS, ARGUMENTS, ...)                          \
  GDRX_HOOK_BY(prefix##name##_c, PARAMETERS,                                             \
               (real_one.exists() ? real_one ARGUMENTS : pass_on_narrow(call, #prefix)), \
               __VA_ARGS__)
#define GDRX_LARGE(name, PARAMETERS, ARGUMENTS, ...)            \
  GDRX_LARGE_AS(MPI_, name, PARAMETERS, ARGUMENTS, __VA_ARGS__) \
  GDRX_LARGE_AS(PMPI_, name, PARAMETERS, ARGUMENTS, __VA_ARGS__)

// clang-format off
GDRX_LARGE(Allreduce, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_LARGE(Reduce, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c), (call.send, call.recv, n, t, op, root, c),
          .kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root)
GDRX_LARGE(Reduce_scatter_block, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_LARGE(Reduce_scatter, (const void* s, void* r, const MPI_Count* n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::reduce_scatter, .comm = c, .send = s, .recv = r, .recv_type = t, .recv_counts = n, .op = op)
GDRX_LARGE(Scan, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::scan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_LARGE(Exscan, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::exscan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_LARGE(Bcast, (void* b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c), (call.recv, n, t, root, c),
          .kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root)
GDRX_LARGE(Allgather, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, c),
          .kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt)
GDRX_LARGE(Allgatherv, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rd, rt, c),
          .kind = Kind::allgatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd)
GDRX_LARGE(Alltoall, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, c),
          .kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt)
GDRX_LARGE(Alltoallv, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c), (call.send, sn, sd, st, call.recv, rn, rd, rt, c),
          .kind = Kind::alltoallv, .comm = c, .send = s, .recv = r, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .recv_counts = rn, .recv_places = rd)
GDRX_LARGE(Gather, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, root, c),
          .kind = Kind::gather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root)
GDRX_LARGE(Gatherv, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rd, rt, root, c),
          .kind = Kind::gatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .root = root)
GDRX_LARGE(Scatter, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, root, c),
          .kind = Kind::scatter, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root)
GDRX_LARGE(Scatterv, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, sd, st, call.recv, rn, rt, root, c),
          .kind = Kind::scatterv, .comm = c, .send = s, .recv = r, .recv_count = rn, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .root = root)
GDRX_LARGE(Iallreduce, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Ireduce, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, root, c, q),
          .kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Ireduce_scatter_block, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Ireduce_scatter, (const void* s, void* r, const MPI_Count* n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::reduce_scatter, .comm = c, .send = s, .recv = r, .recv_type = t, .recv_counts = n, .op = op, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Iscan, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::scan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Iexscan, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::exscan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Ibcast, (void* b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request* q), (call.recv, n, t, root, c, q),
          .kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Iallgather, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, q),
          .kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Iallgatherv, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, c, q),
          .kind = Kind::allgatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Ialltoall, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, q),
          .kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Ialltoallv, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rd, rt, c, q),
          .kind = Kind::alltoallv, .comm = c, .send = s, .recv = r, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .recv_counts = rn, .recv_places = rd, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Igather, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::gather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Igatherv, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, root, c, q),
          .kind = Kind::gatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .root = root, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Iscatter, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::scatter, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Iscatterv, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::scatterv, .comm = c, .send = s, .recv = r, .recv_count = rn, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .root = root, .form = Form::nonblocking, .request = q)
GDRX_LARGE(Allreduce_init, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::persistent, .request = q)
GDRX_LARGE(Reduce_init, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, root, c, info, q),
          .kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root, .form = Form::persistent, .request = q)
GDRX_LARGE(Reduce_scatter_block_init, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::persistent, .request = q)
GDRX_LARGE(Reduce_scatter_init, (const void* s, void* r, const MPI_Count* n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::reduce_scatter, .comm = c, .send = s, .recv = r, .recv_type = t, .recv_counts = n, .op = op, .form = Form::persistent, .request = q)
GDRX_LARGE(Scan_init, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::scan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::persistent, .request = q)
GDRX_LARGE(Exscan_init, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, call.recv, n, t, op, c, info, q),
          .kind = Kind::exscan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .form = Form::persistent, .request = q)
GDRX_LARGE(Bcast_init, (void* b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.recv, n, t, root, c, info, q),
          .kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root, .form = Form::persistent, .request = q)
GDRX_LARGE(Allgather_init, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, info, q),
          .kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .form = Form::persistent, .request = q)
GDRX_LARGE(Allgatherv_init, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, c, info, q),
          .kind = Kind::allgatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .form = Form::persistent, .request = q)
GDRX_LARGE(Alltoall_init, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, info, q),
          .kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .form = Form::persistent, .request = q)
GDRX_LARGE(Alltoallv_init, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rd, rt, c, info, q),
          .kind = Kind::alltoallv, .comm = c, .send = s, .recv = r, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .recv_counts = rn, .recv_places = rd, .form = Form::persistent, .request = q)
GDRX_LARGE(Gather_init, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, info, q),
          .kind = Kind::gather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .form = Form::persistent, .request = q)
GDRX_LARGE(Gatherv_init, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, root, c, info, q),
          .kind = Kind::gatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .root = root, .form = Form::persistent, .request = q)
GDRX_LARGE(Scatter_init, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, info, q),
          .kind = Kind::scatter, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .form = Form::persistent, .request = q)
GDRX_LARGE(Scatterv_init, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Info info, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rt, root, c, info, q),
          .kind = Kind::scatterv, .comm = c, .send = s, .recv = r, .recv_count = rn, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .root = root, .form = Form::persistent, .request = q)
// clang-format on
