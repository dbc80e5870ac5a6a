/* SPDX-License-Identifier: Apache-2.0
 * A tool as profilers are: it has MPI's name, and calls the other one. */
#include <mpi.h>

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return PMPI_Allreduce(in, out, count, type, op, comm);
}
