// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/gpu_region.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "transport/verbs/pci_place.hpp"

namespace gdrx::verbs {
namespace {

using Registrations = std::vector<std::unique_ptr<Registration>>;

// A flush reads through the NIC.
int gpu_access(const Core& core, const Rail& rail) {
  return region_access(core, rail) | IBV_ACCESS_REMOTE_READ;
}

Result<Registrations> by_exported(const Core& core, std::span<std::byte> memory, int fd,
                                  Bytes offset) {
  Registrations made;
  for (const auto& rail : core.rails) {
    made.push_back(
        GDRX_TRY(rail->domain()->register_dma_buf(fd, offset, memory, gpu_access(core, *rail))));
  }
  return made;
}

Result<Registrations> by_dma_buf(const Core& core, const cuda::GpuFacts& gpu,
                                 std::span<std::byte> memory) {
  if (!core.options.dma_buf) return fail(Errc::unsupported, "NCCL_DMABUF_ENABLE is 0");
  if (!gpu.dma_buf) return fail(Errc::unsupported, "its driver exports no dma-buf");
  const cuda::DmaBuf exported = GDRX_TRY(core.gpu->export_dma_buf(memory));
  return by_exported(core, memory, exported.fd(), exported.offset());
}

Result<Registrations> by_peermem(const Core& core, const cuda::GpuFacts& gpu,
                                 std::span<std::byte> memory) {
  if (!gpu.rdma) return fail(Errc::unsupported, "its driver allows no GPUDirect RDMA");
  Registrations made;
  for (const auto& rail : core.rails) {
    auto one = rail->domain()->register_memory(memory, gpu_access(core, *rail));
    if (!one) {
      return fail(one.error().code, one.error().what + " (nvidia-peermem is not loaded?)",
                  one.error().native);
    }
    made.push_back(std::move(*one));
  }
  return made;
}

Result<Registrations> by_copy(const Core& core, std::span<std::byte> memory, LocalRegion& region) {
  region.copy = GDRX_TRY(core.gpu->allocate_host(memory.size(), memory.data()));
  region.reached = region.copy.bytes;
  Registrations made;
  for (const auto& rail : core.rails) {
    made.push_back(
        GDRX_TRY(rail->domain()->register_memory(region.reached, region_access(core, *rail))));
  }
  return made;
}

/// Rails that lead a longer way to the GPU than others do. PCIe carries most between a GPU and NICs
/// below one bridge, and a far NIC's share slows all of them (NCCL issue 2310).
std::uint16_t far_rails(const Core& core, const cuda::GpuFacts& gpu) {
  std::array<PciDistance, kMaxRails> distance{};
  PciDistance nearest = PciDistance::unknown;
  for (std::size_t i = 0; i < core.rails.size(); ++i) {
    distance[i] = pci_distance(core.rails[i]->pci_folder(), gpu.pci_folder);
    if (distance[i] == PciDistance::unknown) return 0;
    nearest = std::min(nearest, distance[i]);
  }
  unsigned far = 0;
  for (std::size_t i = 0; i < core.rails.size(); ++i) {
    if (distance[i] > nearest) far |= 1U << i;
  }
  return static_cast<std::uint16_t>(far);
}

std::string names_of_near(const Core& core, std::uint16_t far) {
  std::string names;
  for (std::size_t i = 0; i < core.rails.size(); ++i) {
    if ((far >> i & 1) == 0)
      names += (names.empty() ? "" : ", ") + std::string(core.rails[i]->name());
  }
  return names;
}

std::string line_of(const Core& core, const cuda::GpuFacts& gpu, const LocalRegion& region,
                    const std::string& reason) {
  std::string line = fmt::format("GPU {} ({}): {}", gpu.ordinal, gpu.name, to_string(region.path));
  if (region.flush) line += ", flushed by reads";
  if (region.far != 0) line += ", over the nearest NICs (" + names_of_near(core, region.far) + ")";
  if (!reason.empty()) line += "; " + reason;
  return line;
}

void reached_directly(const Core& core, const cuda::GpuFacts& gpu, LocalRegion& region) {
  // Refused for memory of cuMemCreate, which has no synchronous copies to keep in order.
  (void)core.gpu->keep_in_order(region.bytes.data());
  region.flush = !gpu.ordered || core.options.gpu_flush;
  region.far = far_rails(core, gpu);
}

}  // namespace

Result<Reached> reach_exported(const Core& core, std::span<std::byte> memory, int fd,
                               Bytes offset) {
  const cuda::GpuFacts gpu = GDRX_TRY(core.gpu->facts_of(memory.data()));
  LocalRegion region;
  region.bytes = region.reached = memory;
  region.registrations = GDRX_TRY(by_exported(core, memory, fd, offset));
  region.path = MemoryPath::dma_buf;
  reached_directly(core, gpu, region);
  std::string line = line_of(core, gpu, region, {});
  return Reached{std::move(region), std::move(line)};
}

Result<Reached> reach_gpu_memory(const Core& core, std::span<std::byte> memory) {
  const cuda::GpuFacts gpu = GDRX_TRY(core.gpu->facts_of(memory.data()));
  const GpuDirect wanted = core.options.gpu_direct;
  LocalRegion region;
  region.bytes = region.reached = memory;
  std::string reason;
  const auto take = [&](GpuDirect way, MemoryPath path, auto&& make) {
    if (wanted != GpuDirect::automatic && wanted != way) return false;
    Result<Registrations> made = make();
    if (!made) {
      reason += fmt::format("{}{}: {}", reason.empty() ? "" : "; ", to_string(path),
                            describe(made.error()));
      return false;
    }
    region.registrations = std::move(*made);
    region.path = path;
    return true;
  };
  const bool direct =
      take(GpuDirect::dma_buf, MemoryPath::dma_buf,
           [&] { return by_dma_buf(core, gpu, memory); }) ||
      take(GpuDirect::peermem, MemoryPath::peermem, [&] { return by_peermem(core, gpu, memory); });
  if (direct) {
    reached_directly(core, gpu, region);
  } else if (!take(GpuDirect::staged, MemoryPath::staged,
                   [&] { return by_copy(core, memory, region); })) {
    return fail(Errc::unsupported, fmt::format("memory of GPU {} ({}) cannot be registered: {}",
                                               gpu.ordinal, gpu.name, reason));
  }
  std::string line = line_of(core, gpu, region, reason);
  return Reached{std::move(region), std::move(line)};
}

}  // namespace gdrx::verbs
