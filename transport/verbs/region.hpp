// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "transport/verbs/buffer.hpp"
#include "transport/verbs/core.hpp"

namespace gdrx::verbs {

/// Memory of the caller, or of `own`, registered with every rail.
class VerbsRegion final : public MemoryRegion {
 public:
  /// `keep` keeps the device, whose core it is.
  static Result<std::unique_ptr<VerbsRegion>> create(std::shared_ptr<void> keep, Core& core,
                                                     std::span<std::byte> bytes, Buffer own);
  ~VerbsRegion() override;
  VerbsRegion(const VerbsRegion&) = delete;
  VerbsRegion& operator=(const VerbsRegion&) = delete;
  std::span<std::byte> bytes() const noexcept override { return core_.regions[id_].bytes; }
  Blob export_key() const override;
  std::uint32_t lkey(std::size_t rail) const noexcept {
    return core_.regions[id_].registrations[rail]->lkey();
  }

 private:
  VerbsRegion(std::shared_ptr<void> keep, Core& core, std::uint32_t id, Buffer own)
      : keep_(std::move(keep)), core_(core), id_(id), own_(std::move(own)) {}
  std::shared_ptr<void> keep_;
  Core& core_;
  std::uint32_t id_;
  Buffer own_;
};

}  // namespace gdrx::verbs
