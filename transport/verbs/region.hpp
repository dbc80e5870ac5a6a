// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "transport/verbs/buffer.hpp"
#include "transport/verbs/core.hpp"

namespace gdrx::verbs {

/// Registered with every rail, and not in the table of regions. Made by any thread: of a Core, only
/// what stays as it is once the device is open is read.
class Pinned final : public PinnedMemory {
 public:
  /// `keep` keeps the device, whose core it is.
  static Result<std::unique_ptr<Pinned>> create(std::shared_ptr<const void> keep, const Core& core,
                                                std::span<std::byte> bytes, Buffer own);
  /// GPU memory; `bytes` are addresses there.
  static Result<std::unique_ptr<Pinned>> create_gpu(std::shared_ptr<const void> keep,
                                                    const Core& core, std::span<std::byte> bytes);
  static Result<std::unique_ptr<Pinned>> create_exported(std::shared_ptr<const void> keep,
                                                         const Core& core,
                                                         std::span<std::byte> bytes, int fd,
                                                         Bytes offset);

 private:
  friend class VerbsRegion;
  Pinned(std::shared_ptr<const void> keep, LocalRegion region, std::string gpu_line, Buffer own)
      : keep_(std::move(keep)),
        own_(std::move(own)),
        region_(std::move(region)),
        gpu_line_(std::move(gpu_line)) {}
  std::shared_ptr<const void> keep_;
  Buffer own_;
  LocalRegion region_;
  std::string gpu_line_;  // for people; empty: of the host
};

/// Memory of the caller, or of its own, that peers may write to.
class VerbsRegion final : public MemoryRegion {
 public:
  VerbsRegion(Core& core, std::unique_ptr<Pinned> pinned);
  ~VerbsRegion() override;
  /// It is no region any more.
  std::unique_ptr<Pinned> disown() noexcept;
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
  Core& core_;
  std::unique_ptr<Pinned> pinned_;  // but for its LocalRegion, which is in the core
  std::uint32_t id_ = 0;
};

}  // namespace gdrx::verbs
