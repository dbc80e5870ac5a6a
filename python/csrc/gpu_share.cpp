// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of a group map, so that calls on it read and write it without copies.
#include <c10/util/Exception.h>

#include <array>

#include "engine.hpp"
#include "gpu.hpp"

namespace gdrx_torch {
namespace {

// What a rank brings, in words that ranks can compare.
using Brought = std::array<std::uint64_t, 3>;  // segments, bytes, a digest of their sizes

Brought brought(const std::vector<Segment>& segments) {
  Brought all{segments.size(), 0, 14695981039346656037U};  // FNV-1a
  for (const Segment& segment : segments) {
    all[1] += segment.bytes;
    all[2] = (all[2] ^ segment.bytes) * 1099511628211U;
  }
  return all;
}

// Every rank finds the same. Registering one by one would leave a rank with fewer behind.
void check_alike(gdrxComm_t comm, int ranks, const std::vector<Segment>& segments) {
  const Brought own = brought(segments);
  std::vector<Brought> all(static_cast<std::size_t>(ranks));
  check(
      gdrxAllGather(own.data(), all.data(), own.size(), gdrxUint64, comm, gdrxStreamNone, nullptr),
      comm, "register_mem_pool");
  for (int rank = 1; rank < ranks; ++rank) {
    const Brought& other = all[static_cast<std::size_t>(rank)];
    TORCH_CHECK_VALUE(other == all[0], "gdrx: register_mem_pool: rank ", rank, " has ", other[0],
                      " segments of ", other[1], " bytes in all, rank 0 ", all[0][0], " of ",
                      all[0][1], (other[1] == all[0][1] ? ", of other sizes" : ""),
                      ": register a pool when every rank has allocated alike from it");
  }
}

}  // namespace

void Gpu::share(PoolId pool, const std::vector<Segment>& segments, c10::Device device,
                Milliseconds timeout) {
  check_process("register_mem_pool");
  stream_of(device);
  const std::lock_guard launching(launching_);
  TORCH_CHECK(!left_, "gdrx: register_mem_pool: the group was shut down");
  TORCH_CHECK_VALUE(!shared_.contains(pool),
                    "gdrx: register_mem_pool: the pool is registered: "
                    "deregister it first, to add what it got since");
  gdrxComm_t const comm = comm_of(kAll, timeout).handle;
  check_alike(comm, meeting_.size, segments);
  std::vector<gdrxRegistration_t> shared;
  for (const Segment& segment : segments) {
    gdrxRegistration_t one = nullptr;
    const auto result =
        gdrxRegister(comm, reinterpret_cast<void*>(segment.address), segment.bytes, &one);
    if (result != gdrxSuccess) {  // on every rank
      const std::string why = gdrxGetLastError(comm);
      for (auto* before : shared) gdrxDeregister(comm, before);
      C10_THROW_ERROR(DistBackendError, "gdrx: register_mem_pool: " + why);
    }
    shared.push_back(one);
  }
  shared_.emplace(pool, std::move(shared));
}

void Gpu::unshare(PoolId pool) {
  check_process("deregister_mem_pool");
  const std::lock_guard launching(launching_);
  const auto shared = shared_.extract(pool);
  TORCH_CHECK_VALUE(!shared.empty(),
                    "gdrx: deregister_mem_pool: the pool is not registered with this group");
  const auto all = comms_.find(kAll);
  if (left_ || all == comms_.end()) return;  // the communicator has let go of all
  for (auto* one : shared.mapped()) {
    check(gdrxDeregister(all->second.handle, one), all->second.handle, "deregister_mem_pool");
  }
}

}  // namespace gdrx_torch
