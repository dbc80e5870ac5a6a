// SPDX-License-Identifier: Apache-2.0
// The collectives of MPI 4 whose counts have 64 bits, for the MPIs that have them. mpi4py calls no
// others there.
#include "mpi/hook.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// clang-format off
GDRX_HOOK(Allreduce_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_HOOK(Reduce_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c), (call.send, call.recv, n, t, op, root, c),
          .kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root)
GDRX_HOOK(Reduce_scatter_block_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_HOOK(Reduce_scatter_c, (const void* s, void* r, const MPI_Count* n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::reduce_scatter, .comm = c, .send = s, .recv = r, .recv_type = t, .recv_counts = n, .op = op)
GDRX_HOOK(Scan_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::scan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_HOOK(Exscan_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::exscan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_HOOK(Bcast_c, (void* b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c), (call.recv, n, t, root, c),
          .kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root)
GDRX_HOOK(Allgather_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, c),
          .kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt)
GDRX_HOOK(Allgatherv_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rd, rt, c),
          .kind = Kind::allgatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd)
GDRX_HOOK(Alltoall_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, c),
          .kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt)
GDRX_HOOK(Alltoallv_c, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c), (call.send, sn, sd, st, call.recv, rn, rd, rt, c),
          .kind = Kind::alltoallv, .comm = c, .send = s, .recv = r, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .recv_counts = rn, .recv_places = rd)
GDRX_HOOK(Gather_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, root, c),
          .kind = Kind::gather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root)
GDRX_HOOK(Gatherv_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rd, rt, root, c),
          .kind = Kind::gatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .root = root)
GDRX_HOOK(Scatter_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, root, c),
          .kind = Kind::scatter, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root)
GDRX_HOOK(Scatterv_c, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, sd, st, call.recv, rn, rt, root, c),
          .kind = Kind::scatterv, .comm = c, .send = s, .recv = r, .recv_count = rn, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .root = root)
GDRX_HOOK(Iallreduce_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .nonblocking = true, .request = q)
GDRX_HOOK(Ireduce_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, root, c, q),
          .kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root, .nonblocking = true, .request = q)
GDRX_HOOK(Ireduce_scatter_block_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .nonblocking = true, .request = q)
GDRX_HOOK(Ireduce_scatter_c, (const void* s, void* r, const MPI_Count* n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::reduce_scatter, .comm = c, .send = s, .recv = r, .recv_type = t, .recv_counts = n, .op = op, .nonblocking = true, .request = q)
GDRX_HOOK(Iscan_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::scan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .nonblocking = true, .request = q)
GDRX_HOOK(Iexscan_c, (const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c, MPI_Request* q), (call.send, call.recv, n, t, op, c, q),
          .kind = Kind::exscan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .nonblocking = true, .request = q)
GDRX_HOOK(Ibcast_c, (void* b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request* q), (call.recv, n, t, root, c, q),
          .kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root, .nonblocking = true, .request = q)
GDRX_HOOK(Iallgather_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, q),
          .kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .nonblocking = true, .request = q)
GDRX_HOOK(Iallgatherv_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, c, q),
          .kind = Kind::allgatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .nonblocking = true, .request = q)
GDRX_HOOK(Ialltoall_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, c, q),
          .kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .nonblocking = true, .request = q)
GDRX_HOOK(Ialltoallv_c, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rd, rt, c, q),
          .kind = Kind::alltoallv, .comm = c, .send = s, .recv = r, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .recv_counts = rn, .recv_places = rd, .nonblocking = true, .request = q)
GDRX_HOOK(Igather_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::gather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .nonblocking = true, .request = q)
GDRX_HOOK(Igatherv_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, const MPI_Count* rn, const MPI_Aint* rd, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rd, rt, root, c, q),
          .kind = Kind::gatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .root = root, .nonblocking = true, .request = q)
GDRX_HOOK(Iscatter_c, (const void* s, MPI_Count sn, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::scatter, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root, .nonblocking = true, .request = q)
GDRX_HOOK(Iscatterv_c, (const void* s, const MPI_Count* sn, const MPI_Aint* sd, MPI_Datatype st, void* r, MPI_Count rn, MPI_Datatype rt, int root, MPI_Comm c, MPI_Request* q), (call.send, sn, sd, st, call.recv, rn, rt, root, c, q),
          .kind = Kind::scatterv, .comm = c, .send = s, .recv = r, .recv_count = rn, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .root = root, .nonblocking = true, .request = q)
// clang-format on
