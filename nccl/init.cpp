// SPDX-License-Identifier: Apache-2.0
// Communicators: made by an id, of one process, out of another.
#include <atomic>
#include <bit>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "nccl/comm.hpp"
#include "nccl/config.hpp"
#include "nccl/driver.hpp"
#include "nccl/group.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

namespace {

/// What one communicator is made with. gdrx has read it when the call that it is given to returns.
struct Wish {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  int device = 0;
  bool blocking = true;

  Wish(const Chosen& chosen, int on) : device(on), blocking(chosen.blocking) {
    config.gpu_blocks = chosen.blocks;
    config.gpus = &device;
  }
  Wish(const Wish&) = delete;
  Wish& operator=(const Wish&) = delete;
};

/// What a program was given stays until the process ends, and with it the handle's number: who
/// asks too late is told so.
std::atomic<ncclComm*> newest{nullptr};

void give(std::unique_ptr<ncclComm> made, ncclComm** handle) noexcept {
  *handle = made.get();
  made->older = newest.load();
  while (!newest.compare_exchange_weak(made->older, made.get())) {
  }
  static_cast<void>(made.release());
}

std::unique_ptr<ncclComm> new_comm(const Wish& wish) {
  auto comm = std::make_unique<ncclComm>();
  comm->device = wish.device;
  comm->blocking = wish.blocking;
  return comm;
}

/// Makes `handle`'s communicator by `body`, which is given where gdrx's goes: at once, or when the
/// thread's group ends.
template <class Body>
Result make(const char* function, ncclComm** handle, const Wish& wish, Body&& body) noexcept {
  return guarded(function, [&]() -> Result {
    auto made = new_comm(wish);
    ncclComm* const comm = made.get();
    const bool grouped = group.depth > 0;
    if (grouped) {
      made_by_group(comm, handle);
      give(std::move(made), handle);
    }
    const gdrxResult_t result = body(&comm->gdrx);
    if (result != gdrxSuccess) return failed(function, result);
    if (grouped) return kSuccess;
    if (comm->gdrx == nullptr) return kSuccess;  // of a split, without this rank
    give(std::move(made), handle);
    return wish.blocking ? kSuccess : kInProgress;
  });
}

Result init(const char* function, ncclComm** handle, int ranks, const UniqueId& id, int rank,
            const Config* config) {
  if (handle == nullptr) return refuse(function, kInvalidArgument, "comm is NULL");
  *handle = nullptr;
  Chosen chosen;
  if (const char* fault = read_config(config, chosen)) {
    return refuse(function, kInvalidArgument, fault);
  }
  const int device = driver::current_device();
  if (device < 0) return refuse(function, kUnhandledCudaError, "CUDA finds no GPU");
  const Wish wish(chosen, device);
  const auto maker = wish.blocking ? gdrxCommInitRank : gdrxCommInitRankAsync;
  return make(function, handle, wish, [&](gdrxComm_t* made) {
    return maker(made, ranks, std::bit_cast<gdrxUniqueId>(id), rank, &wish.config);
  });
}

Result inherit(const char* function, const Use& use, const ncclComm* parent, ncclComm** handle,
               const Config* config, Chosen& chosen) {
  if (handle == nullptr) return refuse(function, kInvalidArgument, "newcomm is NULL");
  *handle = nullptr;
  if (use.fault() != nullptr) return refuse(function, kInvalidArgument, use.fault());
  chosen.blocking = parent->blocking;
  if (const char* fault = read_config(config, chosen)) {
    return refuse(function, kInvalidArgument, fault);
  }
  return kSuccess;
}

Result shrink(ncclComm* comm, const std::vector<int>& gone, ncclComm** handle, Chosen chosen,
              bool as_parent, bool aborts) {
  constexpr auto kName = "ncclCommShrink";
  return when_group_ends(kName, comm, [=]() -> Result {
    const Wish wish(chosen, comm->device);
    const Use use(comm);
    if (use.fault() != nullptr) return refuse(kName, kInvalidArgument, use.fault());
    if (aborts) {
      comm->revoked = true;  // its end is as asked
      gdrxCommAbort(comm->gdrx);
    }
    const Result result = make(kName, handle, wish, [&](gdrxComm_t* made) {
      return gdrxCommShrink(comm->gdrx, gone.data(), static_cast<int>(gone.size()), made,
                            as_parent ? nullptr : &wish.config);
    });
    return result == kInProgress ? kSuccess : result;  // it has been made
  });
}

Result ask(const char* function, const ncclComm* comm, int* value,
           gdrxResult_t (*question)(gdrxComm_t, int*)) noexcept {
  if (value == nullptr) return deny(function, kInvalidArgument, "there is no place for it: NULL");
  const Use use(comm);
  if (use.fault() != nullptr) return deny(function, kInvalidArgument, use.fault());
  if (question(comm->gdrx, value) == gdrxSuccess) return kSuccess;
  return deny(function, kInvalidArgument, "comm is being made, or could not be made");
}

}  // namespace

GDRX_NCCL(ncclGetUniqueId, UniqueId* id) {
  if (id == nullptr) return deny("ncclGetUniqueId", kInvalidArgument, "uniqueId is NULL");
  static_assert(sizeof(UniqueId) == sizeof(gdrxUniqueId));
  gdrxUniqueId made{};
  const gdrxResult_t result = gdrxGetUniqueId(&made);
  if (result != gdrxSuccess) {
    return deny("ncclGetUniqueId", result_of(result), gdrxGetLastError(nullptr));
  }
  *id = std::bit_cast<UniqueId>(made);
  return kSuccess;
}

GDRX_NCCL(ncclCommInitRank, ncclComm** comm, int ranks, UniqueId id, int rank) {
  return init("ncclCommInitRank", comm, ranks, id, rank, nullptr);
}

GDRX_NCCL(ncclCommInitRankConfig, ncclComm** comm, int ranks, UniqueId id, int rank,
          Config* config) {
  return init("ncclCommInitRankConfig", comm, ranks, id, rank, config);
}

/// All ranks have the same list, and one id is enough to meet by.
GDRX_NCCL(ncclCommInitRankScalable, ncclComm** comm, int ranks, int rank, int id_count,
          UniqueId* ids, Config* config) {
  constexpr auto kName = "ncclCommInitRankScalable";
  if (ids == nullptr || id_count < 1) {
    return refuse(kName, kInvalidArgument, "commIds is NULL or nId is not positive");
  }
  return init(kName, comm, ranks, ids[0], rank, config);
}

GDRX_NCCL(ncclCommInitAll, ncclComm** comms, int count, const int* devices) {
  constexpr auto kName = "ncclCommInitAll";
  if (comms == nullptr || count < 1) {
    return refuse(kName, kInvalidArgument, "comm is NULL or ndev is not positive");
  }
  return guarded(kName, [&]() -> Result {
    std::vector<int> list(static_cast<std::size_t>(count));
    std::iota(list.begin(), list.end(), 0);
    if (devices != nullptr) list.assign(devices, devices + count);
    std::vector<std::unique_ptr<ncclComm>> made;
    made.reserve(list.size());
    for (const int device : list) made.push_back(new_comm(Wish(Chosen{}, device)));
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    config.gpus = list.data();
    std::vector<gdrxComm_t> inner(list.size());
    const gdrxResult_t result = gdrxCommInitAll(inner.data(), count, &config);
    if (result != gdrxSuccess) return failed(kName, result);
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i]->gdrx = inner[i];
      give(std::move(made[i]), &comms[i]);
    }
    return kSuccess;
  });
}

GDRX_NCCL(ncclCommSplit, ncclComm* comm, int color, int key, ncclComm** newcomm, Config* config) {
  constexpr auto kName = "ncclCommSplit";
  Chosen chosen;
  const Use use(comm);
  const Result checked = inherit(kName, use, comm, newcomm, config, chosen);
  if (checked != kSuccess) return checked;
  const Wish wish(chosen, comm->device);
  if (!join_group(comm)) return refuse(kName, kSystemError, kNoMemory);
  const Result result = make(kName, newcomm, wish, [&](gdrxComm_t* made) {
    return gdrxCommSplit(comm->gdrx, color, key, made, config != nullptr ? &wish.config : nullptr);
  });
  return result == kInProgress ? kSuccess : result;  // it has been made
}

GDRX_NCCL(ncclCommShrink, ncclComm* comm, int* exclude, int count, ncclComm** newcomm,
          Config* config, int flags) {
  constexpr auto kName = "ncclCommShrink";
  Chosen chosen;
  const Use use(comm);
  const Result checked = inherit(kName, use, comm, newcomm, config, chosen);
  if (checked != kSuccess) return checked;
  if (flags != 0 && flags != kShrinkAbort) {
    return refuse(kName, kInvalidArgument, "shrinkFlags is none of NCCL_SHRINK_*");
  }
  if (count < 0 || (count > 0 && exclude == nullptr)) {
    return refuse(kName, kInvalidArgument, "excludeRanksList is NULL or its count is negative");
  }
  return guarded(kName, [&] {
    return shrink(comm, std::vector<int>(exclude, exclude + count), newcomm, chosen,
                  config == nullptr, flags == kShrinkAbort);
  });
}

GDRX_NCCL(ncclCommGetUniqueId, ncclComm* comm, UniqueId* id) {
  const Use use(comm);
  if (use.fault() != nullptr) return deny("ncclCommGetUniqueId", kInvalidArgument, use.fault());
  return ncclGetUniqueId(id);
}

GDRX_NCCL(ncclCommCount, const ncclComm* comm, int* count) {
  return ask("ncclCommCount", comm, count, gdrxCommCount);
}

GDRX_NCCL(ncclCommUserRank, const ncclComm* comm, int* rank) {
  return ask("ncclCommUserRank", comm, rank, gdrxCommUserRank);
}

GDRX_NCCL(ncclCommCuDevice, const ncclComm* comm, int* device) {
  constexpr auto kName = "ncclCommCuDevice";
  if (device == nullptr) return deny(kName, kInvalidArgument, "device is NULL");
  const Use use(comm);
  if (use.fault() != nullptr) return deny(kName, kInvalidArgument, use.fault());
  *device = comm->device;
  return kSuccess;
}
