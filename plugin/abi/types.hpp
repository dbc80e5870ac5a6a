// SPDX-License-Identifier: Apache-2.0
// NCCL's net plugin ABI: the constants and the types that all of its versions share. Written from
// facts about NCCL 2.20 to 2.30 (LP64). Names are ours; layouts are NCCL's and frozen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gdrx::nccl {

/// ncclResult_t.
enum class NetResult : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
  timeout = 8,
};
static_assert(sizeof(NetResult) == sizeof(int));

/// Bits of ptr_support, and the `type` of reg_mr.
inline constexpr int kPtrHost = 0x1;
inline constexpr int kPtrCuda = 0x2;
inline constexpr int kPtrDmaBuf = 0x4;

inline constexpr std::size_t kHandleMaxSize = 128;  // of listen and connect
inline constexpr int kMaxRequests = 32;             // under way on a communicator; times max_recvs
inline constexpr int kMaxDevicesPerNicV9 = 4;       // v9, v10, v11
inline constexpr int kMaxDevicesPerNicV12 = 8;
inline constexpr std::size_t kMaxNetSize = std::size_t{1} << 40;  // most that max_p2p_bytes may be
inline constexpr std::size_t kMaxNetSizeV8 = std::size_t{1} << 30;  // what NCCL takes it for, v8
inline constexpr int kUndefined = -1;  // traffic class, net attribute, rail id, plane id

/// What *request of irecv() may hold on entry (v9 and later): the receive need not be reported
/// before its data is there to be seen. It has to be overwritten in any case.
inline constexpr std::uintptr_t kOptionalRecvCompletion = 0x1;

enum class LogLevel : int { none = 0, version = 1, warn = 2, info = 3, abort = 4, trace = 5 };

/// Subsystem bits of NCCL_DEBUG_SUBSYS.
inline constexpr unsigned long kLogInit = 0x1;
inline constexpr unsigned long kLogNet = 0x10;
inline constexpr unsigned long kLogEnv = 0x80;

/// NCCL's logger: level, subsystems, file, line, printf's format.
using LogFunction = void (*)(LogLevel, unsigned long, const char*, int, const char*, ...);

/// The profiler's callback (v10 and later): event handle, kind of call, parent, id, data.
using ProfilerFunction = NetResult (*)(void**, int, void*, std::int64_t, void*);

inline constexpr int kDeviceHost = 0;  // net_device_type of a plugin without device code
inline constexpr int kDeviceUnpack = 1;
inline constexpr int kDeviceVersionInvalid = 0;

/// Filled by connect() and accept() of plugins that run code on the GPU.
struct NetDeviceHandle {
  int type;
  int version;
  void* handle;
  std::size_t size;
  int needs_proxy_progress;
};
static_assert(std::is_trivially_copyable_v<NetDeviceHandle> &&
              std::is_standard_layout_v<NetDeviceHandle>);
static_assert(sizeof(NetDeviceHandle) == 32 && offsetof(NetDeviceHandle, type) == 0 &&
              offsetof(NetDeviceHandle, version) == 4 && offsetof(NetDeviceHandle, handle) == 8 &&
              offsetof(NetDeviceHandle, size) == 16 &&
              offsetof(NetDeviceHandle, needs_proxy_progress) == 24);

/// Per-communicator settings (v10 and later).
struct CommConfig {
  int traffic_class;  // kUndefined: none asked for
};
static_assert(sizeof(CommConfig) == 4 && std::is_standard_layout_v<CommConfig>);

struct CommAttributes {
  std::int32_t max_concurrent_peers;
  std::int32_t min_concurrent_peers;
  std::int32_t max_flows_per_peer;
  std::int32_t min_flows_per_peer;
};
static_assert(sizeof(CommAttributes) == 16 && offsetof(CommAttributes, max_concurrent_peers) == 0 &&
              offsetof(CommAttributes, min_concurrent_peers) == 4 &&
              offsetof(CommAttributes, max_flows_per_peer) == 8 &&
              offsetof(CommAttributes, min_flows_per_peer) == 12);

/// Hints about the traffic to come (v11 and later). Bits are 1 << (NCCL's number of a function, an
/// algorithm, a protocol).
struct NetAttributes {
  CommAttributes send;
  CommAttributes recv;
  std::uint32_t op;
  std::uint32_t algo;
  std::uint32_t proto;
};
static_assert(std::is_trivially_copyable_v<NetAttributes>);
static_assert(sizeof(NetAttributes) == 44 && offsetof(NetAttributes, send) == 0 &&
              offsetof(NetAttributes, recv) == 16 && offsetof(NetAttributes, op) == 32 &&
              offsetof(NetAttributes, algo) == 36 && offsetof(NetAttributes, proto) == 40);

/// Bit numbers of NetAttributes::op.
enum class NetFunction : int {
  broadcast = 0,
  reduce = 1,
  all_gather = 2,
  reduce_scatter = 3,
  all_reduce = 4,
  send_recv = 5,
  send = 6,
  recv = 7,
  all_to_all = 8,
  scatter = 9,
  gather = 10,
};

}  // namespace gdrx::nccl
