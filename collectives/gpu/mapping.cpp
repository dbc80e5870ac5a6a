// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/mapping.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "collectives/gpu/driver.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/exportable_memory.hpp"
#include "collectives/gpu/on_device.hpp"

namespace gdrx::gpu {
namespace {

/// Allocations of other processes, each opened once for each device of this one: CUDA may refuse a
/// second time, and several windows may lie in one.
class OpenedAllocations {
 public:
  using Key = std::tuple<std::uint64_t, int, std::array<std::uint8_t, 64>>;  // process, device

  static Result<void*> acquire(const Key& key) {
    const std::lock_guard lock(table().mutex);
    const auto known = table().opened.find(key);
    if (known != table().opened.end()) {
      ++known->second.users;
      return known->second.data;
    }
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, std::get<2>(key).data(), sizeof handle);
    void* data = nullptr;
    GDRX_TRY(check(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess),
                   "cudaIpcOpenMemHandle"));
    table().opened[key] = {data, 1};
    return data;
  }
  // Closed under the lock: nobody opens it anew meanwhile.
  static void release(const Key& key) noexcept {
    const std::lock_guard lock(table().mutex);
    const auto known = table().opened.find(key);
    if (known == table().opened.end() || --known->second.users > 0) return;
    const OnDevice here(std::get<int>(key));
    cudaIpcCloseMemHandle(known->second.data);
    table().opened.erase(known);
  }

 private:
  struct Opened {
    void* data = nullptr;
    int users = 0;
  };
  struct Table {
    std::mutex mutex;
    std::map<Key, Opened> opened;
  };
  // Never destroyed: the CUDA runtime may be gone before it.
  static Table& table() {
    static Table& instance = *new Table;
    return instance;
  }
};

/// A ticket says where in an allocation its bytes are; the driver, how large that is.
Result<void> check_end(const void* data, const WindowTicket& ticket) {
  const auto driver = driver_api();
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  const auto at = reinterpret_cast<CUdeviceptr>(data);
  if (!driver || (*driver)->address_range(&begin, &bytes, at) != CUDA_SUCCESS) return {};
  if (ticket.offset + ticket.bytes <= bytes) return {};
  return fail(Errc::protocol,
              fmt::format("registered memory of {} bytes from {} on, in an allocation of {}",
                          ticket.bytes, ticket.offset, bytes));
}

class IpcMapping final : public Mapping {
 public:
  static Result<std::unique_ptr<Mapping>> create(const WindowTicket& ticket) {
    int device = 0;
    GDRX_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
    OpenedAllocations::Key key{ticket.process, device, ticket.ipc};
    auto* const data = static_cast<std::uint8_t*>(GDRX_TRY(OpenedAllocations::acquire(key)));
    std::unique_ptr<Mapping> made(new IpcMapping(std::move(key), data + ticket.offset));
    GDRX_TRY(check_end(data, ticket));
    return made;
  }
  ~IpcMapping() override { OpenedAllocations::release(key_); }
  IpcMapping(const IpcMapping&) = delete;
  IpcMapping& operator=(const IpcMapping&) = delete;
  std::uint8_t* data() const noexcept override { return data_; }

 private:
  IpcMapping(OpenedAllocations::Key key, std::uint8_t* data) : key_(std::move(key)), data_(data) {}
  OpenedAllocations::Key key_;
  std::uint8_t* data_;
};

class PlainMapping final : public Mapping {
 public:
  explicit PlainMapping(std::uint64_t pointer)
      : pointer_(pointer), held_(ExportableMemory::at(pointer)) {}
  std::uint8_t* data() const noexcept override { return pointer_to(pointer_); }

 private:
  std::uint64_t pointer_;
  std::shared_ptr<const ExportableMemory> held_;  // or null: its owner takes care of it
};

/// Another process's segments side by side in addresses of this one.
class SegmentMapping final : public Mapping {
 public:
  static Result<std::unique_ptr<Mapping>> create(const WindowTicket& ticket, Deadline deadline) {
    const DriverApi& driver = *GDRX_TRY(driver_api());
    int device = 0;
    GDRX_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
    std::unique_ptr<SegmentMapping> made(new SegmentMapping(driver, ticket.offset, device));
    const auto bytes =
        std::accumulate(ticket.segments.begin(), ticket.segments.end(), std::uint64_t{0});
    GDRX_TRY(check(driver, driver.reserve(&made->base_, bytes, 0, 0, 0), "cuMemAddressReserve"));
    made->reserved_ = bytes;
    GDRX_TRY(fetch_descriptors(
        ticket.listener, ticket.segments.size(),
        [&](std::size_t index, Descriptor descriptor) {
          return made->add(descriptor, ticket.segments[index]);
        },
        deadline));
    GDRX_TRY(give_access(driver, made->base_, bytes, device));
    return made;
  }
  // Unmapped piece by piece, as they were mapped.
  ~SegmentMapping() override {
    const OnDevice here(device_);
    CUdeviceptr at = base_;
    for (const std::uint64_t bytes : mapped_) {
      driver_->unmap(at, bytes);
      at += bytes;
    }
    if (reserved_ > 0) driver_->free_addresses(base_, reserved_);
  }
  SegmentMapping(const SegmentMapping&) = delete;
  SegmentMapping& operator=(const SegmentMapping&) = delete;
  std::uint8_t* data() const noexcept override { return pointer_to(base_ + offset_); }

 private:
  SegmentMapping(const DriverApi& driver, std::uint64_t offset, int device)
      : driver_(&driver), offset_(offset), device_(device) {}

  // The mapping keeps the memory; neither descriptor nor handle is needed any more.
  Result<void> add(const Descriptor& descriptor, std::uint64_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    void* const fd = pointer_to(static_cast<std::uint64_t>(descriptor.fd()));
    GDRX_TRY(check(*driver_,
                   driver_->import_handle(&handle, fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                   "cuMemImportFromShareableHandle"));
    const CUresult status = driver_->map(base_ + filled_, bytes, 0, handle, 0);
    driver_->release(handle);
    GDRX_TRY(check(*driver_, status, "cuMemMap"));
    mapped_.push_back(bytes);
    filled_ += bytes;
    return {};
  }

  const DriverApi* driver_;
  std::uint64_t offset_;
  int device_;
  CUdeviceptr base_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t filled_ = 0;
  std::vector<std::uint64_t> mapped_;
};

}  // namespace

Result<std::unique_ptr<Mapping>> map_from_abroad(const WindowTicket& ticket, Deadline deadline) {
  switch (ticket.sharing) {
    case Sharing::ipc:
      return IpcMapping::create(ticket);
    case Sharing::descriptors:
      return SegmentMapping::create(ticket, deadline);
    case Sharing::pointer:
      break;
  }
  return fail(Errc::protocol, "memory of another process without a way to it");
}

// Memory of cudaMalloc every device reaches that has peer access. What was mapped by cuMemMap is
// given to each device.
Result<std::unique_ptr<Mapping>> map_here(const WindowTicket& ticket) {
  if (!ticket.segments.empty()) {
    const DriverApi& driver = *GDRX_TRY(driver_api());
    int device = 0;
    GDRX_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
    CUdeviceptr at = ticket.pointer - ticket.offset;
    for (const std::uint64_t bytes : ticket.segments) {
      GDRX_TRY(give_access(driver, at, bytes, device));
      at += bytes;
    }
  }
  return std::make_unique<PlainMapping>(ticket.pointer);
}

}  // namespace gdrx::gpu
