/* SPDX-License-Identifier: Apache-2.0
 *
 * gdrx: collective communication for GPU and host buffers. C API.
 *
 * The rules that hold for every call are in docs/reference/calls.md, which is installed, too:
 * order, streams and requests, buffers, threads, errors. A comment here has the rules of its
 * function alone.
 */
#ifndef GDRX_GDRX_H
#define GDRX_GDRX_H

#include <gdrx/gdrx_types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Made by one rank, handed to the others by any means (128 bytes, no pointers). Holds the address
 * of that rank, the job's key and a version. It is a secret: whoever has it can join, and read what
 * ranks tell each other, unless GDRX_SECRET_FILE is set. */
typedef struct {
  char bytes[128];
} gdrxUniqueId;

/* Called once, from a thread of the communicator, never a caller's, when it fails, and before
 * gdrxCommDestroy returns: `message` is valid during the call. It is short: communicators that were
 * split from one another wait for it. It may call gdrxCommGetAsyncError alone, and may exit. */
typedef void (*gdrxErrorHandler_t)(gdrxResult_t result, const char* message, void* user);

/* Zero-initialise with GDRX_CONFIG_INITIALIZER, then set what differs. Environment variables GDRX_*
 * (see `gdrx config`) give the defaults. Later versions only add members at the end: a program that
 * was compiled with an older or newer gdrx.h is served, as long as what is not known here is 0. */
typedef struct {
  size_t size;                 /* sizeof(gdrxConfig_t) */
  const char* algorithm;       /* "auto", "ring", "tree", "halving-doubling", ...; NULL: default */
  const char* transport;       /* "auto", "shm", "ucx", "tcp", "verbs"; NULL: default */
  double timeout_seconds;      /* of each operation; 0: default (300); negative or over 1e7: none;
                                  gdrx_calls.h has it for a call, and for later ones */
  gdrxErrorHandler_t on_error; /* may be NULL */
  void* on_error_user;
  int gpu_blocks;   /* multiprocessors that its calls may keep busy, 1 to 1024; 0: default (all but
                       one, at most 32 between hosts); the same on every rank */
  int reserved;     /* 0 */
  const int* gpus;  /* CUDA's number of this rank's GPU; gdrxCommInitAll takes one a rank. NULL: the
                       GPU whose context is current on the calling thread, none if there is no such.
                       A GPU that is named is used through its primary context, which is made if
                       need be; one that cannot be used is gdrxInvalidArgument on every rank */
  int reproducible; /* 1, on every rank: as GDRX_REPRODUCIBLE; 0: what that says */
} gdrxConfig_t;
#define GDRX_CONFIG_INITIALIZER \
  { sizeof(gdrxConfig_t), NULL, NULL, 0.0, NULL, NULL, 0, 0, NULL, 0 }

GDRX_API int gdrxGetVersion(void);
/* Static text for a result. Never NULL. */
GDRX_API const char* gdrxGetErrorString(gdrxResult_t result);
/* The last error of this communicator, its failure included before any call has returned it, or of
 * this thread's last call without one (comm NULL). One line, empty if there was none, valid until
 * the next call on the same communicator or thread. */
GDRX_API const char* gdrxGetLastError(gdrxComm_t comm);

GDRX_API gdrxResult_t gdrxGetUniqueId(gdrxUniqueId* id);
/* Collective over the `nranks` ranks that have `id`. `config` may be NULL. Between gdrxGroupStart
 * and gdrxGroupEnd it returns at once, and gdrxGroupEnd makes all communicators of the group, each
 * with what is current now (a GPU) and its `config` as it is now: so one thread has several ranks.
 * Those that could be made are then set, others NULL. Alike gdrxCommSplit. */
GDRX_API gdrxResult_t gdrxCommInitRank(gdrxComm_t* comm, int nranks, gdrxUniqueId id, int rank,
                                       const gdrxConfig_t* config);
/* The same, and returns at once: a thread of gdrx makes the communicator. *comm is set; until
 * gdrxCommGetAsyncError says other than gdrxInProgress it may be asked that, aborted and destroyed
 * alone. gdrxCommAbort ends the making here within a second, gdrxCommDestroy does and frees it;
 * peers are told, or wait in vain as for a rank that never comes. If it failed, gdrxGetLastError
 * has the reason, and it is still to be destroyed. */
GDRX_API gdrxResult_t gdrxCommInitRankAsync(gdrxComm_t* comm, int nranks, gdrxUniqueId id, int rank,
                                            const gdrxConfig_t* config);
/* All `nranks` communicators of this process at once: comms[i] is rank i, on the GPU
 * config->gpus[i]; without such a list all are on the calling thread's GPU. */
GDRX_API gdrxResult_t gdrxCommInitAll(gdrxComm_t* comms, int nranks, const gdrxConfig_t* config);
/* Collective over `comm`, a blocking call: every rank calls it, behind what was posted. Ranks of
 * one color get a communicator of their own, in the order of their keys, equal keys in that of
 * their ranks in `comm`; with gdrxSplitNoColor *newcomm is NULL. Any int for a key, a color is not
 * negative. `config` NULL: as `comm` was made. Both communicators are used and destroyed each by
 * itself, in any order. If any rank is refused, all are, with the same error, and `comm` is as it
 * was. Ranks of one process call it from a thread each, or in a group. */
#define gdrxSplitNoColor (-1)
GDRX_API gdrxResult_t gdrxCommSplit(gdrxComm_t comm, int color, int key, gdrxComm_t* newcomm,
                                    const gdrxConfig_t* config);
/* A communicator of the ranks that stay, in their order: those that are not in `exclude`, and they
 * alone call it, with the same list. `comm` may have failed, by the death of those that are left
 * out for one, and is to be destroyed afterwards; gdrxCommGetAsyncErrorInfo names a dead rank. A
 * blocking call, which ends within GDRX_INIT_TIMEOUT: then it names whoever of those that should
 * stay has not come. `config` NULL: as `comm` was made. Ranks of one process call it from a thread
 * each. */
GDRX_API gdrxResult_t gdrxCommShrink(gdrxComm_t comm, const int* exclude, int count,
                                     gdrxComm_t* newcomm, const gdrxConfig_t* config);
/* The meeting of all ranks at the end, apart from gdrxCommDestroy: done when every operation posted
 * here is done and every rank has come as far. `request` NULL: blocks; several ranks of one thread
 * each take a request. Once, before gdrxCommDestroy. From the call on only requests, what any
 * thread may call, and gdrxCommDestroy are left, which then waits for no other rank, and returns
 * gdrxSuccess though ranks that have met may be gone. Errors as of gdrxCommDestroy; gdrxCommAbort
 * ends it. */
GDRX_API gdrxResult_t gdrxCommFinalize(gdrxComm_t comm, gdrxRequest_t* request);
/* Every rank calls it, those of several communicators in any order. Waits until every operation
 * posted here is done; then frees, whatever it returns. Without gdrxCommFinalize other ranks may
 * still need this one, as for a message that they have not taken yet. They are waited for, for a
 * fifth of a second here, then by a thread of gdrx, which serves them until all are as far. exit()
 * waits for that thread, and so does the return from main; _exit() does not, and takes from late
 * ranks what they still need. A rank that does not come within the communicator's timeout, 60 s at
 * the most, is given up, and the log names it. After the return no handler is called, and nothing
 * of the program's is touched. Where GPU memory is registered still, all ranks are waited for here,
 * as long, so that none maps it any more. If the last call on a GPU was not waited for by gdrx, or
 * one is in a graph, it waits for all of that GPU's work of this process: no thread captures a
 * stream meanwhile, or CUDA ends that capture.
 * While the first capture that has calls goes on there is no graph.
 * A graph that is launched after it, or after gdrxCommFinalize, does nothing in the place of its
 * calls, whoever has the memory then.
 * gdrxTimeout: that work did not end within the communicator's timeout, and what it may use is kept
 * until the process ends; or a rank that was waited for here did not come; or this one comes after
 * others have given it up. A failed communicator is freed at once, and the reason is returned; what
 * its GPU runs then is not waited for, and what that may use is kept until it ends. Requests that
 * are open are done then: gdrxWait and gdrxTest still complete them. Communicators of one
 * gdrxCommInitAll hold their memory until the last of them is destroyed, and wait for nobody. comm
 * NULL is allowed. */
GDRX_API gdrxResult_t gdrxCommDestroy(gdrxComm_t comm);
/* Ends every operation here and on all ranks with gdrxAborted. Any thread. Still to be destroyed.
 */
GDRX_API gdrxResult_t gdrxCommAbort(gdrxComm_t comm);
/* gdrxSuccess, or why the communicator failed. Any thread, never blocks. */
GDRX_API gdrxResult_t gdrxCommGetAsyncError(gdrxComm_t comm, gdrxResult_t* error);
/* The same, and whom it is about. */
typedef struct {
  size_t size;         /* sizeof(gdrxAsyncErrorInfo_t), set by the caller */
  gdrxResult_t result; /* gdrxSuccess: it has not failed, and the rest is -1 */
  int origin;          /* the rank that found it */
  int subject;         /* gdrxPeerLost: the rank that is lost; else -1 */
} gdrxAsyncErrorInfo_t;
GDRX_API gdrxResult_t gdrxCommGetAsyncErrorInfo(gdrxComm_t comm, gdrxAsyncErrorInfo_t* info);
GDRX_API gdrxResult_t gdrxCommCount(gdrxComm_t comm, int* count);
GDRX_API gdrxResult_t gdrxCommUserRank(gdrxComm_t comm, int* rank);

/* Registered memory: an RDMA NIC sends straight from it, where it copies from any other memory
 * first. Of one communicator; host memory is registered on this rank alone. Nothing is registered
 * that was not asked for, so memory that was never registered may be freed at any time.
 *
 * gdrxMemAlloc: `bytes` of host memory, zero at first, page-aligned, registered, until gdrxMemFree
 * or gdrxCommDestroy. Free it when no operation is pending. */
GDRX_API gdrxResult_t gdrxMemAlloc(gdrxComm_t comm, void** memory, size_t bytes);
/* `bytes` of memory of the communicator's GPU, not cleared, registered with all ranks as by
 * gdrxRegister, until gdrxMemFree or gdrxCommDestroy. Aligned to 2 MiB, and so much of the GPU's
 * memory at least: for large buffers, and for many small ones at once.
 * - Collective, a blocking call: every rank calls it in the same order with as many bytes, ranks of
 *   one process from a thread each. All get memory, or nobody: then *memory is NULL, every rank
 *   gets the same error, which names a rank and says why, and the communicator is as before.
 * - 0 bytes on all ranks: gdrxSuccess, *memory is NULL; on some: gdrxMismatch. If a rank's thread
 *   captures a stream all are refused (gdrxUnsupported). A `memory` of NULL is refused at once, on
 *   this rank alone.
 * - gdrxUnsupported: the ranks do not run calls on the GPUs of one host (then nothing needs
 *   registration: use memory of cudaMalloc), or a GPU's memory cannot be shared so. */
GDRX_API gdrxResult_t gdrxGpuMemAlloc(gdrxComm_t comm, void** memory, size_t bytes);
/* Frees memory of either. Of gdrxGpuMemAlloc's it is collective, as gdrxDeregister, in the same
 * order on every rank: it waits for this rank's GPU, and when it returns no rank maps the memory
 * and the GPU has it again. No graph that holds operations on it is launched after that. What the
 * communicator did not allocate, or freed, is refused on this rank alone, with
 * gdrxInvalidArgument. NULL is allowed. */
GDRX_API gdrxResult_t gdrxMemFree(gdrxComm_t comm, void* memory);
/* Memory of the caller's. Deregister it before freeing it: until then the NIC keeps the pages it
 * had, and would send those. Registering what is registered is cheap and counted; operations under
 * way keep it registered until they end. A handle ends with gdrxDeregister or gdrxCommDestroy.
 *
 * CUDA memory, where calls on it run on the GPUs of one host: the ranks map each other's, so that
 * an allReduce may read and write it without copies. Then
 * - gdrxRegister and gdrxDeregister are collective, as blocking calls: every rank calls them in the
 *   same order, with as many bytes, ranks of one process from a thread each. Afterwards all ranks
 *   have mapped everybody's memory, or nobody has: then every rank gets the same error, which names
 *   a rank and says why, and the communicator is as before. (A memory or a handle of NULL is
 *   refused at once, on this rank alone.)
 * - The memory is of the communicator's GPU: any part of one allocation of cudaMalloc, or of
 *   addresses mapped by cuMemMap (PyTorch's expandable segments; between processes their memory
 *   must have been made with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR). Ranges that are registered
 *   at once do not overlap, but for the very same one, which is counted.
 * - If a rank's sendbuff and recvbuff both lie in registered memory, each within one range, every
 *   rank's must, in the ranges that were registered together, at the same offsets. Nothing is
 *   exchanged when an operation is called, so it may be captured; memory is not registered or
 *   deregistered by a thread that captures.
 * - gdrxDeregister waits for this rank's GPU as gdrxCommDestroy does, and returns when no rank maps
 *   the memory any more: then it may be freed. No graph that holds operations on it is launched
 *   after that.
 *   gdrxCommDestroy does the same for what is left, but not for communicators of one
 *   gdrxCommInitAll, which map nothing. */
GDRX_API gdrxResult_t gdrxRegister(gdrxComm_t comm, void* memory, size_t bytes,
                                   gdrxRegistration_t* handle);
GDRX_API gdrxResult_t gdrxDeregister(gdrxComm_t comm, gdrxRegistration_t handle);

/* Operators of a program's own, of one communicator: they end with gdrxRedOpDestroy or with it.
 * Another's, or one that has ended, is gdrxInvalidArgument. Operations posted before keep theirs.
 *
 * gdrxRedOpCreatePreMulSum: a sum in which this rank's elements are first multiplied by *scalar, of
 * `type`, which may differ on every rank. Of host memory it is read now; of GPU or managed memory
 * by each operation, in its stream, until the last has ended. A product is rounded to the type. */
GDRX_API gdrxResult_t gdrxRedOpCreatePreMulSum(gdrxRedOp_t* op, const void* scalar,
                                               gdrxDataType_t type, gdrxComm_t comm);
/* inout[i] = in[i] (op) inout[i] for `count` elements of `type`, each by itself: a call is cut
 * between any two. Both are aligned to 64 bytes, host memory and not the caller's own. It may run
 * in any thread, for several operations at once; it throws nothing and makes no call of gdrx. */
typedef void (*gdrxRedOpFunction_t)(const void* in, void* inout, size_t count, gdrxDataType_t type,
                                    void* user);
/* An associative operator, of any type. `commutative` 0: it is applied in the order of ranks, 0
 * first, whatever algorithm was asked for; else in any order. Every rank makes such operators in
 * the same order: a call with another one than its peers' is gdrxMismatch. */
GDRX_API gdrxResult_t gdrxRedOpCreate(gdrxRedOp_t* op, gdrxRedOpFunction_t function,
                                      int commutative, void* user, gdrxComm_t comm);
GDRX_API gdrxResult_t gdrxRedOpDestroy(gdrxRedOp_t op, gdrxComm_t comm);

/* recvbuff[i] = op over ranks of sendbuff[i], `count` elements each. */
GDRX_API gdrxResult_t gdrxAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                    gdrxDataType_t type, gdrxRedOp_t op, gdrxComm_t comm,
                                    gdrxStream_t stream, gdrxRequest_t* request);
/* sendbuff: nranks * recvcount elements, recvbuff: this rank's block of recvcount.
 * In place: recvbuff == sendbuff + rank * recvcount. */
GDRX_API gdrxResult_t gdrxReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                        gdrxDataType_t type, gdrxRedOp_t op, gdrxComm_t comm,
                                        gdrxStream_t stream, gdrxRequest_t* request);
/* recvbuff: nranks * sendcount elements, rank r's block at r * sendcount.
 * In place: sendbuff == recvbuff + rank * sendcount. */
GDRX_API gdrxResult_t gdrxAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                    gdrxDataType_t type, gdrxComm_t comm, gdrxStream_t stream,
                                    gdrxRequest_t* request);
/* sendbuff is read on root only and may be NULL elsewhere. */
GDRX_API gdrxResult_t gdrxBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                    gdrxDataType_t type, int root, gdrxComm_t comm,
                                    gdrxStream_t stream, gdrxRequest_t* request);
/* recvbuff is written on root only and may be NULL elsewhere. */
GDRX_API gdrxResult_t gdrxReduce(const void* sendbuff, void* recvbuff, size_t count,
                                 gdrxDataType_t type, gdrxRedOp_t op, int root, gdrxComm_t comm,
                                 gdrxStream_t stream, gdrxRequest_t* request);
/* Sums of the ranks before: recvbuff[i] = op over ranks 0 .. this one, in their order. avg has no
 * meaning here and is refused. */
GDRX_API gdrxResult_t gdrxScan(const void* sendbuff, void* recvbuff, size_t count,
                               gdrxDataType_t type, gdrxRedOp_t op, gdrxComm_t comm,
                               gdrxStream_t stream, gdrxRequest_t* request);
/* As gdrxScan without this rank's own; rank 0's recvbuff stays as it is. */
GDRX_API gdrxResult_t gdrxExscan(const void* sendbuff, void* recvbuff, size_t count,
                                 gdrxDataType_t type, gdrxRedOp_t op, gdrxComm_t comm,
                                 gdrxStream_t stream, gdrxRequest_t* request);
/* Both buffers: nranks * count elements. Block r of sendbuff goes to rank r, block r of recvbuff
 * comes from it. May be in place (recvbuff == sendbuff). */
GDRX_API gdrxResult_t gdrxAllToAll(const void* sendbuff, void* recvbuff, size_t count,
                                   gdrxDataType_t type, gdrxComm_t comm, gdrxStream_t stream,
                                   gdrxRequest_t* request);
/* recvbuff: nranks * sendcount elements on root, rank r's at r * sendcount; elsewhere it may be
 * NULL. In place on root: sendbuff == recvbuff + rank * sendcount. */
GDRX_API gdrxResult_t gdrxGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                 gdrxDataType_t type, int root, gdrxComm_t comm,
                                 gdrxStream_t stream, gdrxRequest_t* request);
/* sendbuff: nranks * recvcount elements on root, for rank r at r * recvcount; elsewhere it may be
 * NULL. In place on root: recvbuff == sendbuff + rank * recvcount. */
GDRX_API gdrxResult_t gdrxScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                  gdrxDataType_t type, int root, gdrxComm_t comm,
                                  gdrxStream_t stream, gdrxRequest_t* request);
/* With a count for each rank. Lists have nranks entries, of elements, and are the caller's again
 * when the call returns. counts[r]: of the part that goes to rank r or comes from it, 0 too;
 * displs[r]: where it begins in the buffer; displs NULL: one part behind another, in the order of
 * ranks. Parts of a buffer that is written do not overlap; what lies between them is not touched. A
 * pair of ranks that disagrees about a count is named with both (gdrxMismatch).
 *
 * gdrxAllToAllv: in place (recvbuff == sendbuff) if counts and displs of both sides are alike. */
GDRX_API gdrxResult_t gdrxAllToAllv(const void* sendbuff, const size_t* sendcounts,
                                    const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
                                    const size_t* rdispls, gdrxDataType_t type, gdrxComm_t comm,
                                    gdrxStream_t stream, gdrxRequest_t* request);
/* recvbuff and its lists are looked at on root only. In place on root: sendbuff is its part. */
GDRX_API gdrxResult_t gdrxGatherv(const void* sendbuff, size_t sendcount, void* recvbuff,
                                  const size_t* recvcounts, const size_t* displs,
                                  gdrxDataType_t type, int root, gdrxComm_t comm,
                                  gdrxStream_t stream, gdrxRequest_t* request);
/* sendbuff and its lists are looked at on root only. In place on root: recvbuff is its part. */
GDRX_API gdrxResult_t gdrxScatterv(const void* sendbuff, const size_t* sendcounts,
                                   const size_t* displs, void* recvbuff, size_t recvcount,
                                   gdrxDataType_t type, int root, gdrxComm_t comm,
                                   gdrxStream_t stream, gdrxRequest_t* request);
/* recvcounts: the same on every rank. sendbuff: recvcounts[rank] elements; in place it is this
 * rank's part of recvbuff. */
GDRX_API gdrxResult_t gdrxAllGatherv(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                     const size_t* displs, gdrxDataType_t type, gdrxComm_t comm,
                                     gdrxStream_t stream, gdrxRequest_t* request);
/* recvcounts: the same on every rank. sendbuff: their sum, one part behind another; recvbuff:
 * recvcounts[rank] elements; in place it is this rank's part of sendbuff. */
GDRX_API gdrxResult_t gdrxReduceScatterv(const void* sendbuff, void* recvbuff,
                                         const size_t* recvcounts, gdrxDataType_t type,
                                         gdrxRedOp_t op, gdrxComm_t comm, gdrxStream_t stream,
                                         gdrxRequest_t* request);
/* The reduction of vectors, called leaves, which the ranks hold in their order: this rank the next
 * leafcounts[rank] of them, one behind another in sendbuff. leafcounts: nranks entries, the same on
 * every rank, 0 too, 65,536 in all at most; NULL: one each. The leaves are reduced along one tree,
 * which follows from their number. So the bits of recvbuff do not depend on how many ranks hold
 * them, nor on who holds which: a job that is resumed on other ranks goes on with the same sums if
 * it gives a micro-batch's gradients as a leaf. sendbuff: leafcounts[rank] * count elements;
 * recvbuff: count, apart from sendbuff. gdrxAvg divides by the number of leaves. GPU memory goes
 * through host memory. */
GDRX_API gdrxResult_t gdrxAllReduceLeaves(const void* sendbuff, const size_t* leafcounts,
                                          void* recvbuff, size_t count, gdrxDataType_t type,
                                          gdrxRedOp_t op, gdrxComm_t comm, gdrxStream_t stream,
                                          gdrxRequest_t* request);
GDRX_API gdrxResult_t gdrxBarrier(gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request);
/* Point to point. Messages between two ranks are matched in the order of their calls, each way;
 * their counts and types must agree on both sides. A message waits for no other call. Between
 * gdrxGroupStart and gdrxGroupEnd calls start together, so that exchanges cannot deadlock,
 * whatever their number and sizes; else a send of over 8 KiB may wait for its receive. Messages of
 * CUDA memory with a stream that has them (see above) are as NCCL's instead: they have their place
 * among the communicator's calls in streams. A group's are one such call, behind its collectives,
 * with the longest of their timeouts; each of their streams is behind all of them. A send waits
 * for its receive unless the receiver's GPU has room: on one host for one message of 4 KiB at
 * least. So what two ranks receive, or send in larger messages, before the other, and not in a
 * group, ends by its timeout; so do, on one host, messages of different kinds of memory, or with a
 * stream on one side alone. A group of several communicators in one stream names these in the same
 * order on every rank, and over 16384 messages of a group are in one group on both. */
GDRX_API gdrxResult_t gdrxSend(const void* sendbuff, size_t count, gdrxDataType_t type, int peer,
                               gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request);
GDRX_API gdrxResult_t gdrxRecv(void* recvbuff, size_t count, gdrxDataType_t type, int peer,
                               gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request);
/* Per thread. Every operation between the two is posted at the outermost gdrxGroupEnd; those
 * without a request are waited for there. If any of them was refused, or is refused there, none is
 * started, all requests stay NULL, and gdrxGroupEnd returns the first error. Groups nest.
 * gdrxGroupStartWith (gdrx_calls.h) gives its calls options. */
GDRX_API gdrxResult_t gdrxGroupStart(void);
GDRX_API gdrxResult_t gdrxGroupEnd(void);

/* gdrxSuccess: done and *request set to NULL; gdrxInProgress: not yet; anything else: failed,
 * *request set to NULL. A NULL *request is done. */
GDRX_API gdrxResult_t gdrxTest(gdrxRequest_t* request);
GDRX_API gdrxResult_t gdrxWait(gdrxRequest_t* request);

#ifdef __cplusplus
}
#endif

#include <gdrx/gdrx_calls.h>
#include <gdrx/gdrx_look.h>

#endif
