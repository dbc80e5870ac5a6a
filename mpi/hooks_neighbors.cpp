// SPDX-License-Identifier: Apache-2.0
// Collectives that gdrx never takes, for buffers on a GPU: MPI has them all.
#include "mpi/message_hook.hpp"
#include "mpi/neighbors.hpp"
#include "mpi/started_hook.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// clang-format off
GDRX_BLOCKING(Neighbor_allgather, (const void* b, int n, MPI_Datatype t, void* rb, int rn, MPI_Datatype rt, MPI_Comm c), (b, n, t, rb, rn, rt, c),
             (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, neighbors_of(c).in); })))
GDRX_REQUESTING(Ineighbor_allgather, (const void* b, int n, MPI_Datatype t, void* rb, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (b, n, t, rb, rn, rt, c, q),
             (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, neighbors_of(c).in); })))
GDRX_BLOCKING(Neighbor_allgatherv, (const void* b, int n, MPI_Datatype t, void* rb, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c), (b, n, t, rb, rn, rd, rt, c),
             (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_REQUESTING(Ineighbor_allgatherv, (const void* b, int n, MPI_Datatype t, void* rb, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (b, n, t, rb, rn, rd, rt, c, q),
             (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_BLOCKING(Neighbor_alltoall, (const void* b, int n, MPI_Datatype t, void* rb, int rn, MPI_Datatype rt, MPI_Comm c), (b, n, t, rb, rn, rt, c),
             (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, neighbors_of(c).in); })))
GDRX_REQUESTING(Ineighbor_alltoall, (const void* b, int n, MPI_Datatype t, void* rb, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (b, n, t, rb, rn, rt, c, q),
             (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, neighbors_of(c).in); })))
GDRX_BLOCKING(Neighbor_alltoallv, (const void* b, const int* n, const int* d, MPI_Datatype t, void* rb, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c), (b, n, d, t, rb, rn, rd, rt, c),
             (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_REQUESTING(Ineighbor_alltoallv, (const void* b, const int* n, const int* d, MPI_Datatype t, void* rb, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c, MPI_Request* q), (b, n, d, t, rb, rn, rd, rt, c, q),
             (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_BLOCKING(Neighbor_alltoallw, (const void* b, const int* n, const MPI_Aint* d, const MPI_Datatype* t, void* rb, const int* rn, const MPI_Aint* rd, const MPI_Datatype* rt, MPI_Comm c), (b, n, d, t, rb, rn, rd, rt, c),
             (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_REQUESTING(Ineighbor_alltoallw, (const void* b, const int* n, const MPI_Aint* d, const MPI_Datatype* t, void* rb, const int* rn, const MPI_Aint* rd, const MPI_Datatype* rt, MPI_Comm c, MPI_Request* q), (b, n, d, t, rb, rn, rd, rt, c, q),
             (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_BLOCKING(Alltoallw, (const void* b, const int* n, const int* d, const MPI_Datatype* t, void* rb, const int* rn, const int* rd, const MPI_Datatype* rt, MPI_Comm c), (b, n, d, t, rb, rn, rd, rt, c),
             ((b == MPI_IN_PLACE ? b : b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, ranks_of(c).out); })), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, ranks_of(c).in); })))
GDRX_REQUESTING(Ialltoallw, (const void* b, const int* n, const int* d, const MPI_Datatype* t, void* rb, const int* rn, const int* rd, const MPI_Datatype* rt, MPI_Comm c, MPI_Request* q), (b, n, d, t, rb, rn, rd, rt, c, q),
             ((b == MPI_IN_PLACE ? b : b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, ranks_of(c).out); })), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, ranks_of(c).in); })))
GDRX_BLOCKING(Reduce_local, (const void* b, void* rb, int n, MPI_Datatype t, MPI_Op op), (b, rb, n, t, op), (b = copies.send(b, n, t), rb = copies.recv(rb, n, t)))
GDRX_STARTED_AS_OF_OLD(Neighbor_allgather, (const void* b, int n, MPI_Datatype t, void* rb, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (b, n, t, rb, rn, rt, c, info, q), (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, neighbors_of(c).in); })))
GDRX_STARTED_AS_OF_OLD(Neighbor_allgatherv, (const void* b, int n, MPI_Datatype t, void* rb, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (b, n, t, rb, rn, rd, rt, c, info, q), (b = copies.send(b, n, t), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_STARTED_AS_OF_OLD(Neighbor_alltoall, (const void* b, int n, MPI_Datatype t, void* rb, int rn, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (b, n, t, rb, rn, rt, c, info, q), (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, neighbors_of(c).in); })))
GDRX_STARTED_AS_OF_OLD(Neighbor_alltoallv, (const void* b, const int* n, const int* d, MPI_Datatype t, void* rb, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (b, n, d, t, rb, rn, rd, rt, c, info, q), (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_STARTED_AS_OF_OLD(Neighbor_alltoallw, (const void* b, const int* n, const MPI_Aint* d, const MPI_Datatype* t, void* rb, const int* rn, const MPI_Aint* rd, const MPI_Datatype* rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (b, n, d, t, rb, rn, rd, rt, c, info, q), (b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, neighbors_of(c).out); }), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, neighbors_of(c).in); })))
GDRX_STARTED_AS_OF_OLD(Alltoallw, (const void* b, const int* n, const int* d, const MPI_Datatype* t, void* rb, const int* rn, const int* rd, const MPI_Datatype* rt, MPI_Comm c, MPI_Info info, MPI_Request* q), (b, n, d, t, rb, rn, rd, rt, c, info, q), ((b == MPI_IN_PLACE ? b : b = copies.send_blocks(b, [&](Touched& touched) { touched.add_blocks(t, n, d, ranks_of(c).out); })), rb = copies.recv_blocks(rb, [&](Touched& touched) { touched.add_blocks(rt, rn, rd, ranks_of(c).in); })))
// clang-format on
