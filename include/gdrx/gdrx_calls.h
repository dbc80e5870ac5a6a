/* SPDX-License-Identifier: Apache-2.0
 *
 * gdrx: what a call may have of its own, beside its arguments. Part of gdrx.h, which includes it.
 */
#ifndef GDRX_GDRX_CALLS_H
#define GDRX_GDRX_CALLS_H

#include <gdrx/gdrx_types.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise with GDRX_CALL_OPTIONS_INITIALIZER, then set what differs. Members are only ever
 * added at the end, as to gdrxConfig_t. */
typedef struct {
  size_t size;            /* sizeof(gdrxCallOptions_t) */
  double timeout_seconds; /* 0: the communicator's; negative or over 1e7: none */
} gdrxCallOptions_t;
#define GDRX_CALL_OPTIONS_INITIALIZER \
  { sizeof(gdrxCallOptions_t), 0.0 }

/* gdrxGroupStart with options for every call of the group: one call or many, collectives, sends and
 * receives, with a request or without. A group inside another has its own; what is 0 in them is as
 * outside. The struct is the caller's again when this returns. `options` NULL: gdrxGroupStart.
 * gdrxInvalidArgument or gdrxUnsupported, of options that are not understood: no group was started.
 *
 * A timeout is of each call, and its time starts when the call does: when the calls before it are
 * done, and when a stream has come to it. A call that is late ends the communicator on all ranks
 * with gdrxTimeout. Whoever waits for a stream that does not come to the call gives up after that
 * time and a second. A captured call keeps the timeout that it was captured with. */
GDRX_API gdrxResult_t gdrxGroupStartWith(const gdrxCallOptions_t* options);

/* Ends the thread's group, the outermost one, and starts nothing of it: requests stay NULL and no
 * communicator is made. *microseconds: what its calls are predicted to take, one after another but
 * for sends and receives, which start together: by times that were measured here, where there are
 * any (GDRX_TUNE_FILE), else by a model of the machine, which knows nothing of other work on it.
 * Errors are those that gdrxGroupEnd would return before it starts anything. */
GDRX_API gdrxResult_t gdrxGroupPredict(double* microseconds);

/* The timeout of calls that are posted from now on and have none of their own: seconds as in
 * gdrxConfig_t, 0 for what the communicator was made with. Any thread, never blocks. Communicators
 * that are split from this one later have what it was made with. */
GDRX_API gdrxResult_t gdrxCommSetTimeout(gdrxComm_t comm, double seconds);

/* Called once for a request, when its operation has ended: done, failed, aborted, or ended by
 * gdrxCommDestroy. `message` says why, empty if it is done; it is valid during the call. The
 * buffers are the caller's again. */
typedef void (*gdrxRequestHandler_t)(gdrxRequest_t request, gdrxResult_t result,
                                     const char* message, void* user);

/* Has `on_done` called for a request that is open, at once if its operation has ended; one handler
 * a request. It needs nobody who tests or waits: a thread of the communicator sees to it, as it
 * does to the operation. (Of one that a GPU runs it looks every millisecond.)
 *
 * It is called by the thread that finds the end: one of the communicator, or any that is in a gdrx
 * call of it. No lock of gdrx is held. In it may be called
 * - gdrxTest or gdrxWait of this request, by a copy of the handle, which frees it: then nobody else
 * tests it or waits for it, before or after. Where the handler does not, somebody else must later,
 * as for any request;
 * - what any thread may call of the communicator, such as gdrxCommAbort;
 * - calls of other communicators, as the thread's own, and with their rules.
 * It keeps all communicators that were split from one another from going on: it is short, and
 * never waits for its own.
 *
 * gdrxTest elsewhere says gdrxInProgress until the handler has returned; gdrxWait and
 * gdrxCommDestroy wait for that: so they are not called with a lock held that the handler takes.
 * After them nothing of gdrx refers to `user`. */
GDRX_API gdrxResult_t gdrxRequestOnDone(gdrxRequest_t request, gdrxRequestHandler_t on_done,
                                        void* user);

#ifdef __cplusplus
}
#endif
#endif
