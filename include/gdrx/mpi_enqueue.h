/* SPDX-License-Identifier: Apache-2.0
 *
 * MPI calls in the order of a CUDA stream, for every MPI that gdrx is before. What makes streams
 * and communicators, Send, Recv and Allreduce are MPICH's by name and prototype, whose mpi.h has
 * them from 4.1 on: they may be declared twice. The other collectives are gdrx's, in the same form.
 * MPICH's Isend, Irecv, Wait and Waitall are not here. They are in libgdrx-coll-*.so: the one for
 * the program's MPI is linked before MPI, or preloaded. docs/how-to/mpi-programs.md has an example.
 */
#ifndef GDRX_MPI_ENQUEUE_H
#define GDRX_MPI_ENQUEUE_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle of a stream: MPICH's, where it has one. */
#ifndef MPIX_STREAM_NULL
typedef int MPIX_Stream;
#define MPIX_STREAM_NULL ((MPIX_Stream)0x3c000000)
#endif

/* `value` as a string of hexadecimal digits. */
int MPIX_Info_set_hex(MPI_Info info, const char* key, const void* value, int value_size);

/* Of a CUDA stream: `info` has "type", which is "cudaStream_t", and "value", by MPIX_Info_set_hex,
 * which is the cudaStream_t (CUstream); 0 is CUDA's default stream. Local. The stream belongs to
 * the program, and lives until its communicators are freed. */
int MPIX_Stream_create(MPI_Info info, MPIX_Stream* stream);
/* Communicators that were made of it stay. */
int MPIX_Stream_free(MPIX_Stream* stream);

/* Collective: a communicator with the ranks of `comm`, each with a CUDA stream of its own, whose
 * GPU is current on the calling thread. Attributes are not copied. It is freed by MPI_Comm_free,
 * and is a communicator like any other besides. */
int MPIX_Stream_comm_create(MPI_Comm comm, MPIX_Stream stream, MPI_Comm* newcomm);

/* As the calls without _enqueue, on a communicator of a CUDA stream. They return at once where the
 * buffers are on its GPU. The stream is past a call when it is done. Buffers in host memory are
 * right, too: then the call waits for the stream, and returns when it is done. All ranks have the
 * same kind of memory. Types are MPI's own. What fails later is returned by the next call.
 * Reduce_scatter_block is not in place. */
int MPIX_Allreduce_enqueue(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm);
int MPIX_Reduce_enqueue(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                        MPI_Op op, int root, MPI_Comm comm);
int MPIX_Reduce_scatter_block_enqueue(const void* sendbuf, void* recvbuf, int recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int MPIX_Bcast_enqueue(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int MPIX_Allgather_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int MPIX_Alltoall_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                          int recvcount, MPI_Datatype recvtype, MPI_Comm comm);
/* Messages between two ranks are matched in the order of their calls, whatever their tags. Sender
 * and receiver name the same count. No MPI_ANY_SOURCE. A status has the tag that was asked for. */
int MPIX_Send_enqueue(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                      MPI_Comm comm);
int MPIX_Recv_enqueue(void* buf, int count, MPI_Datatype datatype, int source, int tag,
                      MPI_Comm comm, MPI_Status* status);

#ifdef __cplusplus
}
#endif
#endif
