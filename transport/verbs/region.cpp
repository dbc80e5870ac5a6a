// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/region.hpp"

#include <sys/random.h>

namespace gdrx::verbs {

Result<std::unique_ptr<VerbsRegion>> VerbsRegion::create(std::shared_ptr<void> keep, Core& core,
                                                         std::span<std::byte> bytes, Buffer own) {
  LocalRegion region;
  region.bytes = bytes;
  if (getrandom(&region.nonce, sizeof region.nonce, 0) != sizeof region.nonce) {
    return fail(Errc::system, "getrandom", errno);
  }
  for (const auto& rail : core.rails) {
    // Relaxed ordering is safe: who reads the memory has seen a completion first.
    const int access =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
        (rail->domain()->context()->verbs().relaxed_ordering ? IBV_ACCESS_RELAXED_ORDERING : 0);
    region.registrations.push_back(GDRX_TRY(rail->domain()->register_memory(bytes, access)));
  }
  core.regions.push_back(std::move(region));
  const auto id = static_cast<std::uint32_t>(core.regions.size() - 1);
  return std::unique_ptr<VerbsRegion>(new VerbsRegion(std::move(keep), core, id, std::move(own)));
}

VerbsRegion::~VerbsRegion() { core_.regions[id_] = {}; }

Blob VerbsRegion::export_key() const {
  const LocalRegion& region = core_.regions[id_];
  RegionKey key;
  key.region = id_;
  key.nonce = region.nonce;
  key.rails = static_cast<std::uint32_t>(region.registrations.size());
  key.base = reinterpret_cast<std::uintptr_t>(region.bytes.data());
  key.length = region.bytes.size();
  for (std::size_t i = 0; i < region.registrations.size(); ++i) {
    key.rkey[i] = region.registrations[i]->rkey();
  }
  const auto bytes = std::as_bytes(std::span(&key, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace gdrx::verbs
