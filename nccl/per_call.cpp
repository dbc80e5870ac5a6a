// SPDX-License-Identifier: Apache-2.0
// Collectives with settings for one call (NCCL 2.31). What of these is only a hint has no effect: a
// communicator of gdrx has one budget of multiprocessors.
#include <algorithm>
#include <cstring>

#include "nccl/comm.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

extern "C" {
Result ncclAllReduce(const void*, void*, std::size_t, Type, Operator, ncclComm*, Stream);
Result ncclReduce(const void*, void*, std::size_t, Type, Operator, int, ncclComm*, Stream);
Result ncclReduceScatter(const void*, void*, std::size_t, Type, Operator, ncclComm*, Stream);
Result ncclBroadcast(const void*, void*, std::size_t, Type, int, ncclComm*, Stream);
Result ncclAllGather(const void*, void*, std::size_t, Type, ncclComm*, Stream);
Result ncclAlltoAll(const void*, void*, std::size_t, Type, ncclComm*, Stream);
Result ncclGather(const void*, void*, std::size_t, Type, int, ncclComm*, Stream);
Result ncclScatter(const void*, void*, std::size_t, Type, int, ncclComm*, Stream);
}

namespace {

struct Refusal {
  Result result = kSuccess;
  const char* why = nullptr;
};

/// What an older header does not have is left undefined.
CallConfig whole(const CallConfig& given) noexcept {
  CallConfig config{};
  config.min_ctas = config.max_ctas = kUndefined;
  std::memcpy(&config, &given, std::min(given.size, sizeof config));
  return config;
}

bool is_count(int value) noexcept { return value == kUndefined || value > 0; }

Refusal check(const CallConfig* given) noexcept {
  if (given == nullptr) return {};
  constexpr std::size_t kFirst = offsetof(CallConfig, max_ctas) + sizeof given->max_ctas;
  if (given->size < kFirst || given->magic != kConfigMagic) {
    return {kInvalidArgument, "config was not initialised with NCCL_COLLCONFIG_INITIALIZER"};
  }
  const CallConfig config = whole(*given);
  if (!is_count(config.min_ctas) || !is_count(config.max_ctas)) {
    return {kInvalidArgument, "config: minCTAs or maxCTAs is not positive"};
  }
  if (config.max_ctas != kUndefined && config.min_ctas > config.max_ctas) {
    return {kInvalidArgument, "config: minCTAs is more than maxCTAs"};
  }
  if (config.extensions != nullptr) {
    return {kInvalidUsage, "config: gdrx knows none of the extensions in ext"};
  }
  const bool chooses = config.algorithms != nullptr && *config.algorithms != '\0';
  if (chooses && config.force_algorithms != 0) {
    return {kInvalidUsage,
            "config: gdrx chooses by itself: leave algSelection, or forceAlgSelection=0"};
  }
  if (config.launched != nullptr) {
    return {kInvalidUsage, "config: there is no launchCompletionEvent: record one on the stream"};
  }
  return {};
}

template <class Call>
Result checked(const char* function, const CallConfig* config, Call&& call) noexcept {
  const auto [result, why] = check(config);
  return result == kSuccess ? call() : refuse(function, result, why);
}

}  // namespace

GDRX_NCCL(ncclAllReduceConfig, const void* send, void* recv, std::size_t count, Type type,
          Operator op, ncclComm* comm, Stream stream, const CallConfig* config) {
  return checked("ncclAllReduceConfig", config,
                 [&] { return ncclAllReduce(send, recv, count, type, op, comm, stream); });
}

GDRX_NCCL(ncclReduceConfig, const void* send, void* recv, std::size_t count, Type type, Operator op,
          int root, ncclComm* comm, Stream stream, const CallConfig* config) {
  return checked("ncclReduceConfig", config,
                 [&] { return ncclReduce(send, recv, count, type, op, root, comm, stream); });
}

GDRX_NCCL(ncclReduceScatterConfig, const void* send, void* recv, std::size_t count, Type type,
          Operator op, ncclComm* comm, Stream stream, const CallConfig* config) {
  return checked("ncclReduceScatterConfig", config,
                 [&] { return ncclReduceScatter(send, recv, count, type, op, comm, stream); });
}

GDRX_NCCL(ncclBroadcastConfig, const void* send, void* recv, std::size_t count, Type type, int root,
          ncclComm* comm, Stream stream, const CallConfig* config) {
  return checked("ncclBroadcastConfig", config,
                 [&] { return ncclBroadcast(send, recv, count, type, root, comm, stream); });
}

GDRX_NCCL(ncclAllGatherConfig, const void* send, void* recv, std::size_t count, Type type,
          ncclComm* comm, Stream stream, const CallConfig* config) {
  return checked("ncclAllGatherConfig", config,
                 [&] { return ncclAllGather(send, recv, count, type, comm, stream); });
}

GDRX_NCCL(ncclAlltoAllConfig, const void* send, void* recv, std::size_t count, Type type,
          ncclComm* comm, Stream stream, const CallConfig* config) {
  return checked("ncclAlltoAllConfig", config,
                 [&] { return ncclAlltoAll(send, recv, count, type, comm, stream); });
}

GDRX_NCCL(ncclGatherConfig, const void* send, void* recv, std::size_t count, Type type, int root,
          ncclComm* comm, Stream stream, const CallConfig* config) {
  return checked("ncclGatherConfig", config,
                 [&] { return ncclGather(send, recv, count, type, root, comm, stream); });
}

GDRX_NCCL(ncclScatterConfig, const void* send, void* recv, std::size_t count, Type type, int root,
          ncclComm* comm, Stream stream, const CallConfig* config) {
  return checked("ncclScatterConfig", config,
                 [&] { return ncclScatter(send, recv, count, type, root, comm, stream); });
}
