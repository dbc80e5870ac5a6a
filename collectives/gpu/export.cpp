// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/export.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "collectives/gpu/error.hpp"

namespace gdrx::gpu {
namespace {

Result<int> device_of(const void* memory) {
  cudaPointerAttributes attributes{};
  GDRX_TRY(check(cudaPointerGetAttributes(&attributes, memory), "cudaPointerGetAttributes"));
  if (attributes.type == cudaMemoryTypeDevice) return attributes.device;
  return fail(Errc::unsupported, attributes.type == cudaMemoryTypeManaged
                                     ? "managed memory cannot be registered: use cudaMalloc"
                                     : "this is not memory of a GPU");
}

bool is_of_cuda_malloc(const DriverApi& driver, CUdeviceptr memory) {
  int capable = 0;
  const CUresult status =
      driver.pointer_attribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory);
  return status == CUDA_SUCCESS && capable != 0;
}

bool is_of_a_pool(const DriverApi& driver, CUdeviceptr memory) {
  CUmemoryPool pool = nullptr;
  const CUresult status =
      driver.pointer_attribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory);
  return status == CUDA_SUCCESS && pool != nullptr;
}

tl::unexpected<Error> not_for_peers() {
  return fail(Errc::unsupported,
              "this memory is neither from cudaMalloc nor from cuMemCreate (cudaMallocAsync, say): "
              "it cannot be registered, and works without");
}

}  // namespace

Result<HeldSegment> HeldSegment::at(const DriverApi& driver, CUdeviceptr address) {
  HeldSegment segment(driver);
  std::size_t bytes = 0;
  GDRX_TRY(check(driver, driver.address_range(&segment.begin_, &bytes, address),
                 "cuMemGetAddressRange"));
  segment.bytes_ = bytes;
  if (driver.retain(&segment.handle_, pointer_to(segment.begin_)) != CUDA_SUCCESS) {
    segment.handle_ = 0;
    return not_for_peers();
  }
  return segment;
}

HeldSegment::~HeldSegment() {
  if (handle_ != 0) driver_->release(handle_);
}

Result<void> HeldSegment::check_exportable() const {
  CUmemAllocationProp made{};
  GDRX_TRY(check(*driver_, driver_->properties(&made, handle_),
                 "cuMemGetAllocationPropertiesFromHandle"));
  if ((made.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) return {};
  return fail(Errc::unsupported,
              "this memory was not made for other processes: make it by cuMemCreate with "
              "requestedHandleTypes CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, or by cudaMalloc "
              "(PyTorch: expandable_segments:False)");
}

Result<Descriptor> HeldSegment::export_descriptor() const {
  int fd = -1;
  GDRX_TRY(check(*driver_,
                 driver_->export_handle(&fd, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                 "cuMemExportToShareableHandle"));
  return Descriptor(fd);
}

Result<Export> Export::create(void* memory, std::uint64_t bytes, bool abroad) {
  const DriverApi& driver = *GDRX_TRY(driver_api());
  int device = 0;
  GDRX_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
  const int its = GDRX_TRY(device_of(memory));
  if (its != device) {
    return fail(Errc::invalid_argument,
                fmt::format("this memory is on GPU {}, the communicator on GPU {}", its, device));
  }
  Export made;
  made.ticket_.pointer = reinterpret_cast<std::uintptr_t>(memory);
  made.ticket_.bytes = bytes;
  if (is_of_cuda_malloc(driver, made.ticket_.pointer)) {
    GDRX_TRY(made.describe_allocation(driver, abroad));
  } else if (is_of_a_pool(driver, made.ticket_.pointer)) {
    return not_for_peers();
  } else {
    GDRX_TRY(made.describe_segments(driver, abroad));
  }
  return made;
}

Result<void> Export::describe_allocation(const DriverApi& driver, bool abroad) {
  CUdeviceptr base = 0;
  std::size_t size = 0;
  GDRX_TRY(
      check(driver, driver.address_range(&base, &size, ticket_.pointer), "cuMemGetAddressRange"));
  ticket_.offset = ticket_.pointer - base;
  if (ticket_.bytes > size - ticket_.offset) {
    return fail(Errc::invalid_argument,
                fmt::format("{} bytes are not within one allocation: it has {} from there on",
                            ticket_.bytes, size - ticket_.offset));
  }
  if (!abroad) return {};
  ticket_.sharing = Sharing::ipc;
  cudaIpcMemHandle_t handle{};
  GDRX_TRY(check(cudaIpcGetMemHandle(&handle, pointer_to(base)), "cudaIpcGetMemHandle"));
  static_assert(sizeof handle == sizeof ticket_.ipc);
  std::memcpy(ticket_.ipc.data(), &handle, sizeof handle);
  return {};
}

// PyTorch's expandable segments map many handles side by side: each is passed on its own.
Result<void> Export::describe_segments(const DriverApi& driver, bool abroad) {
  segments_ = std::make_shared<std::vector<HeldSegment>>();
  const std::uint64_t end = ticket_.pointer + ticket_.bytes;
  for (std::uint64_t at = ticket_.pointer; at < end;) {
    auto segment = HeldSegment::at(driver, at);
    if (!segment && at > ticket_.pointer && segment.error().code == Errc::system) {
      return fail(Errc::invalid_argument, fmt::format("{} bytes are not all mapped: {} are",
                                                      ticket_.bytes, at - ticket_.pointer));
    }
    if (!segment) return tl::unexpected(std::move(segment).error());
    if (segment->bytes() == 0 || segment->begin() + segment->bytes() <= at) {
      return fail(Errc::system, "cuMemGetAddressRange gave no range");
    }
    if (abroad) GDRX_TRY(segment->check_exportable());
    at = segment->begin() + segment->bytes();
    ticket_.segments.push_back(segment->bytes());
    segments_->push_back(std::move(*segment));
  }
  if (ticket_.segments.size() > kMaxSegments) {
    return fail(Errc::unsupported, fmt::format("over {} segments", kMaxSegments));
  }
  ticket_.offset = ticket_.pointer - segments_->front().begin();
  if (!abroad) return {};
  ticket_.sharing = Sharing::descriptors;
  int device = 0;
  GDRX_TRY(check(cudaGetDevice(&device), "cudaGetDevice"));
  const auto source = [segments = segments_, device](std::size_t index) -> Result<Descriptor> {
    GDRX_TRY(check(cudaSetDevice(device), "cudaSetDevice"));  // the server's thread has none yet
    return (*segments)[index].export_descriptor();
  };
  server_ = GDRX_TRY(DescriptorServer::start(segments_->size(), source));
  ticket_.listener = server_->address();
  return {};
}

}  // namespace gdrx::gpu
