// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/gpu_calls.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "transport/memory/cuda_memory.hpp"

namespace gdrx::cuda {
namespace {

// CUdevice_attribute, CUpointer_attribute and others of cuda.h.
constexpr int kPciBus = 33;
constexpr int kPciDevice = 34;
constexpr int kPciDomain = 50;
constexpr int kRdmaSupported = 116;
constexpr int kFlushOptions = 117;
constexpr int kWritesOrdering = 118;
constexpr int kDmaBufSupported = 124;
constexpr int kSyncMemops = 6;
constexpr int kHandleDmaBuf = 1;
constexpr int kOrderedForOwner = 100;
constexpr int kFlushByHost = 1;
constexpr int kCurrentContext = 0;
constexpr int kToOwner = 100;

int attribute_of(int device, int attribute) {
  int value = 0;
  return driver().device_attribute(&value, attribute, device) == 0 ? value : 0;
}

std::string pci_folder_of(int device) {
  const std::string link =
      fmt::format("/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.0", attribute_of(device, kPciDomain),
                  attribute_of(device, kPciBus), attribute_of(device, kPciDevice));
  std::error_code error;
  return std::filesystem::canonical(link, error).string();
}

Result<GpuFacts> facts_of(const void* pointer) {
  const int ordinal = GDRX_TRY(ordinal_of(pointer));
  int device = 0;
  if (const Status status = driver().device(&device, ordinal); status != 0) {
    return failed("cuDeviceGet", status);
  }
  std::array<char, 128> name{};
  if (driver().device_name(name.data(), static_cast<int>(name.size()) - 1, device) != 0) {
    name[0] = '?';
  }
  GpuFacts facts;
  facts.ordinal = ordinal;
  facts.name = name.data();
  facts.pci_folder = pci_folder_of(device);
  facts.rdma = attribute_of(device, kRdmaSupported) != 0;
  facts.dma_buf = attribute_of(device, kDmaBufSupported) != 0 && driver().range_handle != nullptr;
  facts.ordered = attribute_of(device, kWritesOrdering) >= kOrderedForOwner;
  return facts;
}

Result<DmaBuf> export_range(DevicePointer begin, DevicePointer end, DevicePointer memory) {
  int fd = -1;
  const Status status =
      driver().range_handle(&fd, begin, static_cast<std::size_t>(end - begin), kHandleDmaBuf, 0);
  if (status != 0) return failed("cuMemGetHandleForAddressRange", status);
  return DmaBuf(fd, memory - begin);
}

// The driver exports whole pages of the host's: those that the memory touches, or else all of its
// allocation.
Result<DmaBuf> export_dma_buf(std::span<std::byte> memory) {
  const PrimaryContext context = GDRX_TRY(PrimaryContext::of(memory.data()));
  if (driver().range_handle == nullptr) {
    return fail(Errc::unsupported, "the driver is older than CUDA 11.7");
  }
  const Current current(context.raw());
  const auto page = static_cast<DevicePointer>(sysconf(_SC_PAGESIZE));
  const DevicePointer first = address(memory.data());
  const DevicePointer begin = first / page * page;
  const DevicePointer end = (first + memory.size() + page - 1) / page * page;
  auto exported = export_range(begin, end, first);
  if (exported) return exported;
  DevicePointer base = 0;
  std::size_t bytes = 0;
  if (driver().address_range(&base, &bytes, first) != 0 || first + memory.size() > base + bytes) {
    return exported;
  }
  return export_range(base / page * page, (base + bytes + page - 1) / page * page, first);
}

Result<void> keep_in_order(const void* device) {
  const PrimaryContext context = GDRX_TRY(PrimaryContext::of(device));
  const Current current(context.raw());
  const unsigned on = 1;
  const Status status = driver().set_pointer_attribute(&on, kSyncMemops, address(device));
  if (status != 0) return failed("cuPointerSetAttribute", status);
  return {};
}

Result<HostMemory> allocate_host(std::size_t bytes, const void* device) {
  auto pinned = std::make_shared<PinnedBuffer>(GDRX_TRY(PinnedBuffer::create(bytes, device)));
  return HostMemory{{pinned->data(), bytes}, pinned};
}

Result<void> flush_writes(const void* pointer) {
  const PrimaryContext context = GDRX_TRY(PrimaryContext::of(pointer));
  if (driver().flush_writes == nullptr ||
      (attribute_of(context.device(), kFlushOptions) & kFlushByHost) == 0) {
    return fail(Errc::unsupported, "this GPU cannot flush a NIC's writes on the host's behalf");
  }
  const Current current(context.raw());
  const Status status = driver().flush_writes(kCurrentContext, kToOwner);
  if (status != 0) return failed("cuFlushGPUDirectRDMAWrites", status);
  return {};
}

}  // namespace

const GpuCalls& gpu_calls() {
  static const GpuCalls kCalls{
      kind_of,       facts_of,           export_dma_buf,       keep_in_order,
      allocate_host, copy_aside_to_host, copy_aside_to_device, flush_writes};
  return kCalls;
}

}  // namespace gdrx::cuda
