// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/region.hpp"

#include <sys/random.h>

#include <algorithm>
#include <utility>

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

Result<std::unique_ptr<Pinned>> Pinned::create(std::shared_ptr<const void> keep, const Core& core,
                                               std::span<std::byte> bytes, Buffer own) {
  LocalRegion region;
  region.bytes = region.reached = bytes;
  region.nonce = GDRX_TRY(make_nonce());
  for (const auto& rail : core.rails) {
    region.registrations.push_back(
        GDRX_TRY(rail->domain()->register_memory(bytes, region_access(core, *rail))));
  }
  return std::unique_ptr<Pinned>(
      new Pinned(std::move(keep), std::move(region), {}, std::move(own)));
}

Result<std::unique_ptr<Pinned>> Pinned::create_gpu(std::shared_ptr<const void> keep,
                                                   const Core& core, std::span<std::byte> bytes) {
  Reached reached = GDRX_TRY(reach_gpu_memory(core, bytes));
  reached.region.nonce = GDRX_TRY(make_nonce());
  return std::unique_ptr<Pinned>(
      new Pinned(std::move(keep), std::move(reached.region), std::move(reached.line), {}));
}

Result<std::unique_ptr<Pinned>> Pinned::create_exported(std::shared_ptr<const void> keep,
                                                        const Core& core,
                                                        std::span<std::byte> bytes, int fd,
                                                        Bytes offset) {
  Reached reached = GDRX_TRY(reach_exported(core, bytes, fd, offset));
  reached.region.nonce = GDRX_TRY(make_nonce());
  return std::unique_ptr<Pinned>(
      new Pinned(std::move(keep), std::move(reached.region), std::move(reached.line), {}));
}

VerbsRegion::VerbsRegion(Core& core, std::unique_ptr<Pinned> pinned)
    : core_(core), pinned_(std::move(pinned)) {
  if (!pinned_->gpu_line_.empty()) core.tell_of_gpu(pinned_->gpu_line_);
  const auto ended = std::find_if(core.regions.begin(), core.regions.end(),
                                  [](const LocalRegion& one) { return one.bytes.empty(); });
  id_ = static_cast<std::uint32_t>(ended - core.regions.begin());
  if (ended == core.regions.end()) {
    core.regions.push_back(std::move(pinned_->region_));
  } else {
    *ended = std::move(pinned_->region_);
  }
}

std::unique_ptr<Pinned> VerbsRegion::disown() noexcept {
  pinned_->region_ = std::exchange(core_.regions[id_], {});
  return std::move(pinned_);
}

VerbsRegion::~VerbsRegion() {
  if (pinned_) core_.regions[id_] = {};
}

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
