// SPDX-License-Identifier: Apache-2.0
// NCCL's functions, as a program that is linked to libgdrx-nccl.so sees them.
#pragma once

#include <cuda_runtime_api.h>

#include "nccl/abi.hpp"

extern "C" {
using gdrx::nccl::CallConfig;
using gdrx::nccl::Config;
using gdrx::nccl::Operator;
using gdrx::nccl::Result;
using gdrx::nccl::SimInfo;
using gdrx::nccl::Type;
using gdrx::nccl::UniqueId;
using ncclComm_t = ncclComm*;
using ncclWindow_t = ncclWindow_vidmem*;

Result ncclGetVersion(int*);
Result ncclGetUniqueId(UniqueId*);
const char* ncclGetErrorString(Result);
const char* ncclGetLastError(ncclComm_t);
Result ncclCommInitRank(ncclComm_t*, int, UniqueId, int);
Result ncclCommInitRankConfig(ncclComm_t*, int, UniqueId, int, Config*);
Result ncclCommInitRankScalable(ncclComm_t*, int, int, int, UniqueId*, Config*);
Result ncclCommInitAll(ncclComm_t*, int, const int*);
Result ncclCommSplit(ncclComm_t, int, int, ncclComm_t*, Config*);
Result ncclCommShrink(ncclComm_t, int*, int, ncclComm_t*, Config*, int);
Result ncclCommGetUniqueId(ncclComm_t, UniqueId*);
Result ncclCommGrow(ncclComm_t, int, const UniqueId*, int, ncclComm_t*, Config*);
Result ncclCommFinalize(ncclComm_t);
Result ncclCommDestroy(ncclComm_t);
Result ncclCommAbort(ncclComm_t);
Result ncclCommRevoke(ncclComm_t, int);
Result ncclCommGetAsyncError(ncclComm_t, Result*);
Result ncclCommCount(const ncclComm*, int*);
Result ncclCommUserRank(const ncclComm*, int*);
Result ncclCommCuDevice(const ncclComm*, int*);
Result ncclMemAlloc(void**, std::size_t);
Result ncclMemFree(void*);
Result ncclCommRegister(const ncclComm*, void*, std::size_t, void**);
Result ncclCommDeregister(const ncclComm*, void*);
Result ncclCommWindowRegister(ncclComm_t, void*, std::size_t, ncclWindow_t*, int);
Result ncclCommWindowDeregister(ncclComm_t, ncclWindow_t);
Result ncclWinGetUserPtr(ncclComm_t, ncclWindow_t, void**);
Result ncclCommMemStats(ncclComm_t, int, std::uint64_t*);
Result ncclRedOpCreatePreMulSum(Operator*, void*, Type, int, ncclComm_t);
Result ncclRedOpDestroy(Operator, ncclComm_t);
Result ncclAllReduce(const void*, void*, std::size_t, Type, Operator, ncclComm_t, cudaStream_t);
Result pncclAllReduce(const void*, void*, std::size_t, Type, Operator, ncclComm_t, cudaStream_t);
Result ncclReduce(const void*, void*, std::size_t, Type, Operator, int, ncclComm_t, cudaStream_t);
Result ncclReduceScatter(const void*, void*, std::size_t, Type, Operator, ncclComm_t, cudaStream_t);
Result ncclBroadcast(const void*, void*, std::size_t, Type, int, ncclComm_t, cudaStream_t);
Result ncclBcast(void*, std::size_t, Type, int, ncclComm_t, cudaStream_t);
Result ncclAllGather(const void*, void*, std::size_t, Type, ncclComm_t, cudaStream_t);
Result ncclAlltoAll(const void*, void*, std::size_t, Type, ncclComm_t, cudaStream_t);
Result ncclGather(const void*, void*, std::size_t, Type, int, ncclComm_t, cudaStream_t);
Result ncclScatter(const void*, void*, std::size_t, Type, int, ncclComm_t, cudaStream_t);
Result ncclSend(const void*, std::size_t, Type, int, ncclComm_t, cudaStream_t);
Result ncclRecv(void*, std::size_t, Type, int, ncclComm_t, cudaStream_t);
Result ncclAllReduceConfig(const void*, void*, std::size_t, Type, Operator, ncclComm_t,
                           cudaStream_t, const CallConfig*);
Result ncclReduceConfig(const void*, void*, std::size_t, Type, Operator, int, ncclComm_t,
                        cudaStream_t, const CallConfig*);
Result ncclReduceScatterConfig(const void*, void*, std::size_t, Type, Operator, ncclComm_t,
                               cudaStream_t, const CallConfig*);
Result ncclBroadcastConfig(const void*, void*, std::size_t, Type, int, ncclComm_t, cudaStream_t,
                           const CallConfig*);
Result ncclAllGatherConfig(const void*, void*, std::size_t, Type, ncclComm_t, cudaStream_t,
                           const CallConfig*);
Result ncclAlltoAllConfig(const void*, void*, std::size_t, Type, ncclComm_t, cudaStream_t,
                          const CallConfig*);
Result ncclGatherConfig(const void*, void*, std::size_t, Type, int, ncclComm_t, cudaStream_t,
                        const CallConfig*);
Result ncclScatterConfig(const void*, void*, std::size_t, Type, int, ncclComm_t, cudaStream_t,
                         const CallConfig*);
Result ncclGroupStart();
Result ncclGroupEnd();
Result ncclGroupSimulateEnd(SimInfo*);
Result ncclPutSignal();
Result ncclParamGetI8();
Result ncclCommQueryProperties();
}

namespace gdrx::nccl {

inline constexpr Type kInt8 = 0, kInt32 = 2, kUint32 = 3, kFloat32 = 7, kFloat64 = 8;
inline constexpr Operator kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4;

}  // namespace gdrx::nccl
