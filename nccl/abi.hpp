// SPDX-License-Identifier: Apache-2.0
// NCCL's API as programs are compiled against it: types and values. Written from facts about NCCL
// 2.14 to 2.32 (LP64). Layouts are NCCL's and frozen; tests/nccl holds them against its nccl.h.
#pragma once

#include <cstddef>
#include <cstdint>

struct ncclComm;           // nccl/comm.hpp
struct ncclWindow_vidmem;  // never made: handles are numbers
struct ncclParamHandle;    // never made

namespace gdrx::nccl {

/// ncclResult_t.
enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,  // of 2.30 and later
};

/// ncclDataType_t and ncclRedOp_t arrive as what they are: ints that a program may have wrong.
using Type = int;
using Operator = int;
inline constexpr Operator kOperators = 5;  // sum, prod, max, min, avg; from here on: made ones

/// ncclScalarResidence_t.
inline constexpr int kScalarDevice = 0;
inline constexpr int kScalarHost = 1;

struct UniqueId {
  char bytes[128];
};

/// ncclConfig_t. Every version adds members at the end; `size` tells which has been given.
struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int cga_cluster_size;
  int min_ctas;
  int max_ctas;
  const char* net_name;
  int split_share;
  int traffic_class;
  const char* comm_name;
  int collnet_enable;
  int cta_policy;
  int shrink_share;
  int nvls_ctas;
  int channels_per_net_peer;
  int nvlink_centric_sched;
};
inline constexpr unsigned kConfigMagic = 0xcafebeef;
inline constexpr int kUndefined = INT32_MIN;

/// ncclCollConfig_t, of 2.31 and later.
struct CallConfig {
  std::size_t size;
  unsigned magic;
  unsigned version;
  const void* extensions;
  int min_ctas;
  int max_ctas;
  int nvls_ctas;
  int cga_cluster_size;
  const char* algorithms;
  int force_algorithms;
  int cta_policy;
  std::uint64_t profiler_tag;
  const void* launched;  // a CUDA event
};

/// ncclSimInfo_t.
inline constexpr unsigned kSimMagic = 0x74685283;
struct SimInfo {
  std::size_t size;
  unsigned magic;
  unsigned version;
  float estimated_time;
};

inline constexpr int kWindowSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
inline constexpr int kShrinkAbort = 1;      // NCCL_SHRINK_ABORT

using Stream = struct CUstream_st*;

}  // namespace gdrx::nccl

/// One of NCCL's functions, and the same under the name by which profilers call what they wrap.
#define GDRX_NCCL_AS(type, name, ...)                                                        \
  extern "C" __attribute__((visibility("default"))) type name(__VA_ARGS__);                  \
  extern "C" __attribute__((visibility("default"), alias(#name))) type p##name(__VA_ARGS__); \
  type name(__VA_ARGS__)
#define GDRX_NCCL(name, ...) GDRX_NCCL_AS(gdrx::nccl::Result, name, __VA_ARGS__)
