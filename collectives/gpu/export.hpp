// SPDX-License-Identifier: Apache-2.0
// Memory of this process, made ready for others to map.
#pragma once

#include <memory>
#include <vector>

#include "collectives/gpu/driver.hpp"
#include "collectives/gpu/window_ticket.hpp"

namespace gdrx::gpu {

/// A mapped piece of memory made by cuMemCreate: held, so that its handle can be exported.
class HeldSegment {
 public:
  /// The piece that `at` lies in.
  static Result<HeldSegment> at(const DriverApi& driver, CUdeviceptr address);
  HeldSegment(HeldSegment&& other) noexcept
      : driver_(other.driver_),
        begin_(other.begin_),
        bytes_(other.bytes_),
        handle_(std::exchange(other.handle_, 0)) {}
  HeldSegment& operator=(HeldSegment&&) = delete;
  ~HeldSegment();
  CUdeviceptr begin() const noexcept { return begin_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Whether other processes may have it; else why not, and what to do.
  Result<void> check_exportable() const;
  Result<Descriptor> export_descriptor() const;

 private:
  explicit HeldSegment(const DriverApi& driver) : driver_(&driver) {}
  const DriverApi* driver_;
  CUdeviceptr begin_ = 0;
  std::uint64_t bytes_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
};

/// What a ticket says of memory, and the server of its descriptors while it lives.
class Export {
 public:
  /// Of memory on the current device. `abroad`: there are peers in other processes. Fills what the
  /// memory decides of a ticket.
  static Result<Export> create(void* memory, std::uint64_t bytes, bool abroad);
  const WindowTicket& ticket() const noexcept { return ticket_; }

 private:
  Export() = default;
  Result<void> describe_allocation(const DriverApi& driver, bool abroad);
  Result<void> describe_segments(const DriverApi& driver, bool abroad);

  WindowTicket ticket_;
  std::shared_ptr<std::vector<HeldSegment>> segments_;
  std::unique_ptr<DescriptorServer> server_;
};

}  // namespace gdrx::gpu
