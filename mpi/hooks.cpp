// SPDX-License-Identifier: Apache-2.0
// What the program calls instead of MPI's: a row for each collective, and the ends. Both names are
// ours: Open MPI's Fortran calls PMPI_X, and so do tools that stand before this library. Each
// passes on to the same name behind it.
#include "mpi/agree.hpp"
#include "mpi/communicator.hpp"
#include "mpi/copied_requests.hpp"
#include "mpi/explain.hpp"
#include "mpi/hook.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// clang-format off
GDRX_HOOK(Allreduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_HOOK(Reduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c), (call.send, call.recv, n, t, op, root, c),
          .kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root)
GDRX_HOOK(Reduce_scatter_block, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_HOOK(Reduce_scatter, (const void* s, void* r, const int* n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::reduce_scatter, .comm = c, .send = s, .recv = r, .recv_type = t, .recv_counts = n, .op = op)
GDRX_HOOK(Scan, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::scan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_HOOK(Exscan, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (call.send, call.recv, n, t, op, c),
          .kind = Kind::exscan, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op)
GDRX_HOOK(Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c), (call.recv, n, t, root, c),
          .kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root)
GDRX_HOOK(Allgather, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, c),
          .kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt)
GDRX_HOOK(Allgatherv, (const void* s, int sn, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rd, rt, c),
          .kind = Kind::allgatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd)
GDRX_HOOK(Alltoall, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, c),
          .kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt)
GDRX_HOOK(Alltoallv, (const void* s, const int* sn, const int* sd, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, MPI_Comm c), (call.send, sn, sd, st, call.recv, rn, rd, rt, c),
          .kind = Kind::alltoallv, .comm = c, .send = s, .recv = r, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .recv_counts = rn, .recv_places = rd)
GDRX_HOOK(Gather, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, root, c),
          .kind = Kind::gather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root)
GDRX_HOOK(Gatherv, (const void* s, int sn, MPI_Datatype st, void* r, const int* rn, const int* rd, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rd, rt, root, c),
          .kind = Kind::gatherv, .comm = c, .send = s, .recv = r, .send_count = sn, .send_type = st, .recv_type = rt, .recv_counts = rn, .recv_places = rd, .root = root)
GDRX_HOOK(Scatter, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, st, call.recv, rn, rt, root, c),
          .kind = Kind::scatter, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt, .root = root)
GDRX_HOOK(Scatterv, (const void* s, const int* sn, const int* sd, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, int root, MPI_Comm c), (call.send, sn, sd, st, call.recv, rn, rt, root, c),
          .kind = Kind::scatterv, .comm = c, .send = s, .recv = r, .recv_count = rn, .send_type = st, .recv_type = rt, .send_counts = sn, .send_places = sd, .root = root)
GDRX_HOOK(Barrier, (MPI_Comm c), (c), .kind = Kind::barrier, .comm = c)
// clang-format on

#define GDRX_INIT_AS(name, PARAMETERS, ARGUMENTS)            \
  GDRX_MPIS int name PARAMETERS {                            \
    static constinit Real<decltype(::name)> real_one(#name); \
    const int result = real_one ARGUMENTS;                   \
    if (result == MPI_SUCCESS) agree_in_init();              \
    return result;                                           \
  }
GDRX_INIT_AS(MPI_Init, (int* argc, char*** argv), (argc, argv))
GDRX_INIT_AS(PMPI_Init, (int* argc, char*** argv), (argc, argv))
GDRX_INIT_AS(MPI_Init_thread, (int* argc, char*** argv, int wanted, int* got),
             (argc, argv, wanted, got))
GDRX_INIT_AS(PMPI_Init_thread, (int* argc, char*** argv, int wanted, int* got),
             (argc, argv, wanted, got))

#define GDRX_FREE_AS(name)                                   \
  GDRX_MPIS int name(MPI_Comm* comm) {                       \
    static constinit Real<decltype(::name)> real_one(#name); \
    const Freeing freeing(comm);                             \
    return real_one(comm);                                   \
  }
GDRX_FREE_AS(MPI_Comm_free)
GDRX_FREE_AS(PMPI_Comm_free)
GDRX_FREE_AS(MPI_Comm_disconnect)
GDRX_FREE_AS(PMPI_Comm_disconnect)

#define GDRX_FINALIZE_AS(name)                               \
  GDRX_MPIS int name() {                                     \
    static constinit Real<decltype(::name)> real_one(#name); \
    end_communicators();                                     \
    explain();                                               \
    const int result = real_one();                           \
    end_copied();                                            \
    end_pinned();                                            \
    return result;                                           \
  }
GDRX_FINALIZE_AS(MPI_Finalize)
GDRX_FINALIZE_AS(PMPI_Finalize)

// Programs ask before they give MPI a buffer on a GPU. Windows and files alone are refused.
GDRX_MPIS int MPIX_Query_cuda_support() { return mpi_knows_gpus() || copies_for_mpi() ? 1 : 0; }
