/* SPDX-License-Identifier: Apache-2.0
 *
 * gdrx: what a communicator holds, what it waits for, and how it would carry a call. Part of
 * gdrx.h, which includes it.
 */
#ifndef GDRX_GDRX_LOOK_H
#define GDRX_GDRX_LOOK_H

#include <gdrx/gdrx_types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that this rank's communicator holds now. Members are only ever added at the end. */
typedef struct {
  size_t size;              /* sizeof(gdrxMemoryInfo_t), set by the caller */
  uint64_t shared_bytes;    /* memory that all ranks of this host share: once a host */
  uint64_t message_bytes;   /* addresses for messages of all peers; pages of the active are taken */
  uint64_t scratch_bytes;   /* host memory in which calls work; grows with them, and is kept */
  uint64_t pinned_bytes;    /* host memory through which GPU buffers go; grows and is kept alike */
  uint64_t allocated_bytes; /* by gdrxMemAlloc, in whole pages */
  uint64_t registered_bytes; /* host memory that is registered: gdrxRegister's, and of the above */
  uint64_t gpu_bytes;        /* GPU memory of gdrx's own */
  uint64_t gpu_allocated_bytes;  /* by gdrxGpuMemAlloc, as asked for */
  uint64_t gpu_registered_bytes; /* of the caller's GPU memory, by gdrxRegister */
} gdrxMemoryInfo_t;
GDRX_API gdrxResult_t gdrxCommGetMemory(gdrxComm_t comm, gdrxMemoryInfo_t* info);

/* Whom the running calls wait for: the front collective, and all sends and receives. */
typedef struct {
  size_t size;          /* sizeof(gdrxWaiting_t), set by the caller, as the next four */
  int* ranks;           /* room for ranks, or NULL */
  int rank_capacity;    /* of it */
  char* text;           /* room for a line a call: how long it runs, what it is, what it lacks */
  size_t text_capacity; /* of it, its NUL included; text NULL: not looked at */
  int calls;            /* that run */
  int behind;           /* that wait for those to end, or for their stream to come to them */
  double seconds;       /* for which the oldest of those that run has run */
  int rank_count;       /* ranks that are waited for, ascending, though there be less room */
} gdrxWaiting_t;
/* Any thread, also while another is in a call of this communicator; it fails nothing. gdrxTimeout:
 * the communicator was busy for a second, with an operator of the program's or with CUDA. A call
 * that GPUs run by themselves is seen, as one with all others that are, once its kernel has waited
 * for a rank for some 10 ms; such a look takes up to 20 ms. */
GDRX_API gdrxResult_t gdrxCommGetWaiting(gdrxComm_t comm, gdrxWaiting_t* waiting);

/* A call, without its buffers. Members are only ever added at the end. */
typedef struct {
  size_t size;            /* sizeof(gdrxCallShape_t) */
  const char* collective; /* "allReduce", "reduceScatterv", "barrier", "sendRecv": in any case */
  size_t count;           /* the call's; with a count for each rank, the largest */
  gdrxDataType_t type;
  gdrxRedOp_t op; /* of those that reduce */
  int root;       /* of those that have one */
  int cuda;       /* 1: of CUDA memory, in a stream */
} gdrxCallShape_t;
/* How such a call would be carried, and why: the candidates with predicted times and the choice, or
 * the one way that there is; of CUDA memory by which kernel, or why it is staged through host
 * memory. Nothing is called. Writes at most `capacity` characters and a NUL. gdrxUnsupported:
 * nothing carries it here. */
GDRX_API gdrxResult_t gdrxCommExplainCall(gdrxComm_t comm, const gdrxCallShape_t* call, char* text,
                                          size_t capacity);
/* The route that such a call takes by itself, outside a group and in a stream of the program's own,
 * static text: "host"; "GPU kernel": of one host; "GPUs and network"; "staged in its stream": the
 * host makes it on pinned memory while the stream waits; "nothing". A trace has the collective's
 * part there as "plan", "launch", "plan of hosts" or "staged plan". Errors: gdrxCommExplainCall's.
 */
GDRX_API gdrxResult_t gdrxCommRouteOfCall(gdrxComm_t comm, const gdrxCallShape_t* call,
                                          const char** route);

/* What the last finished operation was and what it cost here: for tools and tests. */
typedef struct {
  size_t size;            /* sizeof(gdrxOpInfo_t), set by the caller */
  char algorithm[24];     /* "ring" */
  char transport[24];     /* "shm", "ucx", "ucx+tcp" */
  uint64_t slices;        /* how many times the plan was run */
  uint64_t messages_sent; /* counted where they were sent */
  uint64_t messages_received;
  uint64_t plan_sends; /* sends in this rank's plan: messages_sent = plan_sends * slices */
  uint64_t plan_receives;
  double predicted_us; /* by the tuner's cost model, for GPUs of several hosts what the network
                        * takes; 0: no prediction, as for send and recv */
  int registered;      /* 1: all its buffers were registered, and that saved copies */
} gdrxOpInfo_t;
GDRX_API gdrxResult_t gdrxCommGetLastOp(gdrxComm_t comm, gdrxOpInfo_t* info);
/* The tuner's reasons for an allReduce of `bytes`: candidates with predicted times and the choice.
 * A table for GPU buffers, where GPUs were found, and one for host buffers. Kernels for registered
 * GPU buffers are in it while some are registered. Writes at most `capacity` characters and a
 * NUL. */
GDRX_API gdrxResult_t gdrxCommExplain(gdrxComm_t comm, size_t bytes, char* text, size_t capacity);
/* Bytes of host memory this communicator holds, and what carries its messages. */
GDRX_API gdrxResult_t gdrxCommDescribe(gdrxComm_t comm, char* text, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
