// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/region.hpp"

#include <sys/random.h>

#include <algorithm>

#include "transport/verbs/gpu_region.hpp"

namespace gdrx::verbs {
namespace {

Result<std::uint32_t> make_nonce() {
  std::uint32_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) {
    return fail(Errc::system, "getrandom", errno);
  }
  return nonce;
}

}  // namespace

int region_access(const Core& core, const Rail& rail) {
  // Relaxed ordering is safe: who reads the memory has seen a completion first. Never for the words
  // that are read without one (Peer's credits).
  const bool relaxed =
      core.options.relaxed_ordering && rail.domain()->context()->verbs().relaxed_ordering;
  return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
         (relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0);
}

Result<std::unique_ptr<VerbsRegion>> VerbsRegion::create(std::shared_ptr<void> keep, Core& core,
                                                         std::span<std::byte> bytes, Buffer own) {
  LocalRegion region;
  region.bytes = region.reached = bytes;
  region.nonce = GDRX_TRY(make_nonce());
  for (const auto& rail : core.rails) {
    region.registrations.push_back(
        GDRX_TRY(rail->domain()->register_memory(bytes, region_access(core, *rail))));
  }
  return add(std::move(keep), core, std::move(region), std::move(own));
}

Result<std::unique_ptr<VerbsRegion>> VerbsRegion::create_gpu(std::shared_ptr<void> keep, Core& core,
                                                             std::span<std::byte> bytes) {
  LocalRegion region = GDRX_TRY(reach_gpu_memory(core, bytes));
  region.nonce = GDRX_TRY(make_nonce());
  return add(std::move(keep), core, std::move(region), Buffer());
}

Result<std::unique_ptr<VerbsRegion>> VerbsRegion::create_exported(std::shared_ptr<void> keep,
                                                                  Core& core,
                                                                  std::span<std::byte> bytes,
                                                                  int fd, Bytes offset) {
  LocalRegion region = GDRX_TRY(reach_exported(core, bytes, fd, offset));
  region.nonce = GDRX_TRY(make_nonce());
  return add(std::move(keep), core, std::move(region), Buffer());
}

std::unique_ptr<VerbsRegion> VerbsRegion::add(std::shared_ptr<void> keep, Core& core,
                                              LocalRegion region, Buffer own) {
  const auto ended = std::find_if(core.regions.begin(), core.regions.end(),
                                  [](const LocalRegion& one) { return one.bytes.empty(); });
  const auto id = static_cast<std::uint32_t>(ended - core.regions.begin());
  if (ended == core.regions.end()) {
    core.regions.push_back(std::move(region));
  } else {
    *ended = std::move(region);
  }
  return std::unique_ptr<VerbsRegion>(new VerbsRegion(std::move(keep), core, id, std::move(own)));
}

VerbsRegion::~VerbsRegion() { core_.regions[id_] = {}; }

Blob VerbsRegion::export_key() const {
  const LocalRegion& region = core_.regions[id_];
  RegionKey key;
  key.region = id_;
  key.nonce = region.nonce;
  key.rails = static_cast<std::uint8_t>(region.registrations.size());
  key.flags = direct() ? kNoProcessor : path() == MemoryPath::staged ? kCopied : std::uint8_t{0};
  key.far = region.far;
  key.base = reinterpret_cast<std::uintptr_t>(region.reached.data());
  key.length = region.reached.size();
  for (std::size_t i = 0; i < region.registrations.size(); ++i) {
    key.rkey[i] = region.registrations[i]->rkey();
  }
  const auto bytes = std::as_bytes(std::span(&key, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace gdrx::verbs
