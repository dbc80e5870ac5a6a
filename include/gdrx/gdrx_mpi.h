/* SPDX-License-Identifier: Apache-2.0
 * A gdrx communicator from an MPI communicator. In libgdrx-mpi.so: only its users link MPI. */
#ifndef GDRX_GDRX_MPI_H
#define GDRX_GDRX_MPI_H

#include <gdrx/gdrx.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over `mpi`, which is used during the call only. */
GDRX_API gdrxResult_t gdrxCommInitMPI(gdrxComm_t* comm, MPI_Comm mpi, const gdrxConfig_t* config);

#ifdef __cplusplus
}
#endif
#endif
