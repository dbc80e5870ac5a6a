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
  /// GPU memory; `bytes` are addresses there.
  static Result<std::unique_ptr<VerbsRegion>> create_gpu(std::shared_ptr<void> keep, Core& core,
                                                         std::span<std::byte> bytes);
  static Result<std::unique_ptr<VerbsRegion>> create_exported(std::shared_ptr<void> keep,
                                                              Core& core,
                                                              std::span<std::byte> bytes, int fd,
                                                              Bytes offset);
  ~VerbsRegion() override;
  VerbsRegion(const VerbsRegion&) = delete;
  VerbsRegion& operator=(const VerbsRegion&) = delete;
  std::span<std::byte> bytes() const noexcept override { return core_.regions[id_].bytes; }
  Blob export_key() const override;
  MemoryPath path() const noexcept override { return region().path; }
  const LocalRegion& region() const noexcept { return core_.regions[id_]; }
  /// The processor cannot read it.
  bool direct() const noexcept {
    return path() == MemoryPath::dma_buf || path() == MemoryPath::peermem;
  }
  std::uint32_t id() const noexcept { return id_; }
  std::uint32_t lkey(std::size_t rail) const noexcept {
    return core_.regions[id_].registrations[rail]->lkey();
  }

 private:
  static std::unique_ptr<VerbsRegion> add(std::shared_ptr<void> keep, Core& core,
                                          LocalRegion region, Buffer own);
  VerbsRegion(std::shared_ptr<void> keep, Core& core, std::uint32_t id, Buffer own)
      : keep_(std::move(keep)), core_(core), id_(id), own_(std::move(own)) {}
  std::shared_ptr<void> keep_;
  Core& core_;
  std::uint32_t id_;
  Buffer own_;
};

}  // namespace gdrx::verbs
