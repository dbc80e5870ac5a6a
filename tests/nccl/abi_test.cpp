// SPDX-License-Identifier: Apache-2.0
// Our declarations against the nccl.h that is installed here. It compiles, or they differ.
#include <nccl.h>

#include <cstddef>

#include "nccl/abi.hpp"
#include "nccl/map.hpp"

namespace ours = gdrx::nccl;

static_assert(int{ours::kSuccess} == ncclSuccess);
static_assert(int{ours::kUnhandledCudaError} == ncclUnhandledCudaError);
static_assert(int{ours::kSystemError} == ncclSystemError);
static_assert(int{ours::kInternalError} == ncclInternalError);
static_assert(int{ours::kInvalidArgument} == ncclInvalidArgument);
static_assert(int{ours::kInvalidUsage} == ncclInvalidUsage);
static_assert(int{ours::kRemoteError} == ncclRemoteError);
static_assert(int{ours::kInProgress} == ncclInProgress);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
static_assert(int{ours::kTimeout} == ncclTimeout);
#endif
static_assert(sizeof(ours::Result) == sizeof(ncclResult_t));

static_assert(sizeof(ours::UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(ours::Type) == sizeof(ncclDataType_t));
static_assert(sizeof(ours::Operator) == sizeof(ncclRedOp_t));
static_assert(ours::kOperators == ncclNumOps);
static_assert(ours::kScalarDevice == ncclScalarDevice);
static_assert(ours::kScalarHost == ncclScalarHostImmediate);
static_assert(ours::kWindowSymmetric == NCCL_WIN_COLL_SYMMETRIC);
static_assert(ours::kShrinkAbort == NCCL_SHRINK_ABORT && NCCL_SHRINK_DEFAULT == 0);
static_assert(NCCL_REVOKE_DEFAULT == 0 && NCCL_SPLIT_NOCOLOR == gdrxSplitNoColor);
static_assert(ours::kUndefined == NCCL_CONFIG_UNDEF_INT);

static_assert(ncclSimInfo_t(NCCL_SIM_INFO_INITIALIZER).magic == ours::kSimMagic);
static_assert(ours::kTypes.size() == ncclNumTypes);
static_assert(ours::kTypes[ncclInt8].type == gdrxInt8);
static_assert(ours::kTypes[ncclUint8].type == gdrxUint8);
static_assert(ours::kTypes[ncclInt32].type == gdrxInt32);
static_assert(ours::kTypes[ncclUint32].type == gdrxUint32);
static_assert(ours::kTypes[ncclInt64].type == gdrxInt64);
static_assert(ours::kTypes[ncclUint64].type == gdrxUint64);
static_assert(ours::kTypes[ncclFloat16].type == gdrxFloat16);
static_assert(ours::kTypes[ncclFloat32].type == gdrxFloat32);
static_assert(ours::kTypes[ncclFloat64].type == gdrxFloat64);
static_assert(ours::kTypes[ncclBfloat16].type == gdrxBfloat16);
static_assert(ours::kTypes[ncclFloat8e4m3].type == gdrxFloat8e4m3);
static_assert(ours::kTypes[ncclFloat8e5m2].type == gdrxFloat8e5m2);
static_assert(ours::kNamed[ncclSum] == gdrxSum && ours::kNamed[ncclProd] == gdrxProd);
static_assert(ours::kNamed[ncclMax] == gdrxMax && ours::kNamed[ncclMin] == gdrxMin);
static_assert(ours::kNamed[ncclAvg] == gdrxAvg);

// Later versions have more behind it.
#define SAME_PLACE(mine, theirs) \
  static_assert(offsetof(ours::Config, mine) == offsetof(ncclConfig_t, theirs))
SAME_PLACE(size, size);
SAME_PLACE(magic, magic);
SAME_PLACE(version, version);
SAME_PLACE(blocking, blocking);
SAME_PLACE(cga_cluster_size, cgaClusterSize);
SAME_PLACE(min_ctas, minCTAs);
SAME_PLACE(max_ctas, maxCTAs);
SAME_PLACE(net_name, netName);
SAME_PLACE(split_share, splitShare);
SAME_PLACE(traffic_class, trafficClass);
SAME_PLACE(comm_name, commName);
SAME_PLACE(collnet_enable, collnetEnable);
SAME_PLACE(cta_policy, CTAPolicy);
SAME_PLACE(shrink_share, shrinkShare);
SAME_PLACE(nvls_ctas, nvlsCTAs);
SAME_PLACE(channels_per_net_peer, nChannelsPerNetPeer);
SAME_PLACE(nvlink_centric_sched, nvlinkCentricSched);
static_assert(sizeof(ours::Config) <= sizeof(ncclConfig_t));

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 31, 0)
static_assert(offsetof(ours::CallConfig, extensions) == offsetof(ncclCollConfig_t, ext));
static_assert(offsetof(ours::CallConfig, max_ctas) == offsetof(ncclCollConfig_t, maxCTAs));
static_assert(offsetof(ours::CallConfig, algorithms) == offsetof(ncclCollConfig_t, algSelection));
static_assert(offsetof(ours::CallConfig, force_algorithms) ==
              offsetof(ncclCollConfig_t, forceAlgSelection));
static_assert(offsetof(ours::CallConfig, profiler_tag) ==
              offsetof(ncclCollConfig_t, userProfilerTag));
static_assert(sizeof(ours::CallConfig) <= sizeof(ncclCollConfig_t) + sizeof(void*));
#endif

static_assert(sizeof(ours::SimInfo) == sizeof(ncclSimInfo_t));
static_assert(offsetof(ours::SimInfo, estimated_time) == offsetof(ncclSimInfo_t, estimatedTime));

static_assert(ncclConfig_t NCCL_CONFIG_INITIALIZER.magic == ours::kConfigMagic);
