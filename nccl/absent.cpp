// SPDX-License-Identifier: Apache-2.0
// What NCCL has and gdrx does not: a program that is linked against it starts, and is told.
#include "nccl/comm.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

/// Refused whatever its arguments are.
#define GDRX_NCCL_ABSENT(name, why) \
  GDRX_NCCL(name) { return absent(#name, why); }
#define GDRX_NCCL_ABSENT_QUESTION(name, why) \
  GDRX_NCCL(name) { return absent_question(#name, why); }

// One-sided communication.
GDRX_NCCL_ABSENT(ncclPutSignal, "gdrx puts nothing by itself: use ncclSend and ncclRecv")
GDRX_NCCL_ABSENT(ncclSignal, "gdrx has no signals: use ncclSend and ncclRecv")
GDRX_NCCL_ABSENT(ncclWaitSignal, "gdrx has no signals: use ncclSend and ncclRecv")

// Memory that comes and goes.
GDRX_NCCL_ABSENT(ncclCommSuspend, "a communicator of gdrx keeps its memory: destroy it")
GDRX_NCCL_ABSENT(ncclCommResume, "a communicator of gdrx cannot be suspended")

GDRX_NCCL_ABSENT(ncclSetEncryption,
                 "gdrx has its own: give every rank the same GDRX_SECRET_FILE (docs/security.md)")

// Communication out of a program's own kernels.
#define GDRX_NCCL_DEVICE(name)    \
  GDRX_NCCL_ABSENT_QUESTION(name, \
                            "gdrx has nothing to call from kernels: use collectives on streams")
GDRX_NCCL_DEVICE(ncclCommQueryProperties)
GDRX_NCCL_DEVICE(ncclDevCommCreate)
GDRX_NCCL_DEVICE(ncclDevCommDestroy)
GDRX_NCCL_DEVICE(ncclGetLsaDevicePointer)
GDRX_NCCL_DEVICE(ncclGetLsaMultimemDevicePointer)
GDRX_NCCL_DEVICE(ncclGetMultimemDevicePointer)
GDRX_NCCL_DEVICE(ncclGetPeerDevicePointer)

// NCCL's parameters. There are none here, which is an answer.
#define GDRX_NCCL_PARAMETER(name)                                                         \
  GDRX_NCCL_ABSENT_QUESTION(name,                                                         \
                            "gdrx has no parameters of NCCL's: `gdrx config` prints its " \
                            "own")
GDRX_NCCL_PARAMETER(ncclParamBind)
GDRX_NCCL_PARAMETER(ncclParamGetI8)
GDRX_NCCL_PARAMETER(ncclParamGetI16)
GDRX_NCCL_PARAMETER(ncclParamGetI32)
GDRX_NCCL_PARAMETER(ncclParamGetI64)
GDRX_NCCL_PARAMETER(ncclParamGetU8)
GDRX_NCCL_PARAMETER(ncclParamGetU16)
GDRX_NCCL_PARAMETER(ncclParamGetU32)
GDRX_NCCL_PARAMETER(ncclParamGetU64)
GDRX_NCCL_PARAMETER(ncclParamGetStr)
GDRX_NCCL_PARAMETER(ncclParamGet)
GDRX_NCCL_PARAMETER(ncclParamGetParameter)

GDRX_NCCL(ncclParamGetAllParameterKeys, const char*** table, int* count) {
  if (table == nullptr || count == nullptr) {
    return deny("ncclParamGetAllParameterKeys", kInvalidArgument, "table or tableLen is NULL");
  }
  *table = nullptr;
  *count = 0;
  return kSuccess;
}

GDRX_NCCL_AS(void, ncclParamDumpAll) {}
