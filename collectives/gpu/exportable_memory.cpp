// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/exportable_memory.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"

namespace gdrx::gpu {
namespace {

struct Table {
  std::mutex mutex;
  std::map<CUdeviceptr, std::weak_ptr<const ExportableMemory>> alive;
};

// Never destroyed: the CUDA runtime may be gone before it.
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

}  // namespace

Result<std::shared_ptr<const ExportableMemory>> ExportableMemory::create(std::uint64_t bytes) {
  const DriverApi& driver = *GDRX_TRY(driver_api());
  const std::shared_ptr<ExportableMemory> made(new ExportableMemory(driver));
  GDRX_TRY(check(cudaGetDevice(&made->device_), "cudaGetDevice"));
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location = {CU_MEM_LOCATION_TYPE_DEVICE, made->device_};
  what.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t page = 0;
  GDRX_TRY(check(driver, driver.granularity(&page, &what, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                 "cuMemGetAllocationGranularity"));
  if (bytes == 0 || page == 0 || bytes > UINT64_MAX - page) {
    return fail(Errc::invalid_argument, fmt::format("{} bytes cannot be allocated", bytes));
  }
  GDRX_TRY(made->map(what, (bytes + page - 1) / page * page));
  const std::lock_guard lock(table().mutex);
  table().alive[made->begin_] = made;
  return made;
}

Result<void> ExportableMemory::map(const CUmemAllocationProp& what, std::uint64_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  const CUresult created = driver_->create(&handle, bytes, &what, 0);
  if (created == CUDA_ERROR_NOT_SUPPORTED) {
    return fail(Errc::unsupported,
                "this GPU has no memory that processes share by file descriptors (cuMemCreate): "
                "register memory of cudaMalloc instead");
  }
  GDRX_TRY(check(*driver_, created, fmt::format("cuMemCreate of {} bytes", bytes).c_str()));
  // The mapping keeps the memory; its handle is asked for anew when it travels.
  auto mapped = [&]() -> Result<void> {
    GDRX_TRY(check(*driver_, driver_->reserve(&begin_, bytes, 0, 0, 0), "cuMemAddressReserve"));
    reserved_ = bytes;
    return check(*driver_, driver_->map(begin_, bytes, 0, handle, 0), "cuMemMap");
  }();
  driver_->release(handle);
  GDRX_TRY(std::move(mapped));
  mapped_ = true;
  return give_access(*driver_, begin_, bytes, device_);
}

std::shared_ptr<const ExportableMemory> ExportableMemory::at(CUdeviceptr begin) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().alive.find(begin);
  return found == table().alive.end() ? nullptr : found->second.lock();
}

// Out of the table first: the next to be mapped there may be told by the same address.
ExportableMemory::~ExportableMemory() {
  if (reserved_ == 0) return;
  const OnDevice here(device_);
  {
    const std::lock_guard lock(table().mutex);
    table().alive.erase(begin_);
  }
  if (mapped_) driver_->unmap(begin_, reserved_);
  driver_->free_addresses(begin_, reserved_);
}

std::byte* ExportableMemory::data() const noexcept {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(begin_));
}

}  // namespace gdrx::gpu
