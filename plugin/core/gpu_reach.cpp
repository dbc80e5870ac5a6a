// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/gpu_reach.hpp"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <utility>

#include "gdrx/transport.hpp"
#include "plugin/gpu/driver.hpp"

namespace gdrx::net {
namespace {

constexpr std::size_t kTried = 64 * 1024;  // bytes; a GPU's page
constexpr Bytes kStaging = 1 << 20;        // nothing is sent

/// Memory of the calling thread's GPU. Not in a context of our own: that costs hundreds of MiB.
class Scratch {
 public:
  static Result<Scratch> allocate() {
    gpu::Context context = nullptr;
    GDRX_TRY(gpu::check(gpu::driver().current(&context), "cuCtxGetCurrent"));
    if (context == nullptr) return fail(Errc::unsupported, "the calling thread uses no GPU");
    gpu::Pointer at = 0;
    GDRX_TRY(gpu::check(gpu::driver().allocate(&at, kTried), "cuMemAlloc"));
    return Scratch(at);
  }
  Scratch(Scratch&& other) noexcept : at_(std::exchange(other.at_, 0)) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (at_ != 0) gpu::driver().free(at_);
  }
  std::span<std::byte> bytes() const noexcept {
    return {reinterpret_cast<std::byte*>(at_), kTried};  // NOLINT(performance-no-int-to-ptr)
  }

 private:
  explicit Scratch(gpu::Pointer at) : at_(at) {}
  gpu::Pointer at_;
};

struct Reach {
  MemoryPath path{};
  bool flush = false;
};

Result<Reach> reach_of(const std::string& fabric, const Config& config, const Log& log) {
  if (const auto& missing = gpu::driver().missing_to_reach; !missing.empty()) {
    return fail(Errc::unsupported, missing);
  }
  if (config.gpu_direct == GpuDirect::staged) {
    return fail(Errc::unsupported, "GDRX_GPU_DIRECT is staged");
  }
  const Scratch memory = GDRX_TRY(Scratch::allocate());
  const auto opened = GDRX_TRY(open_fabric(fabric, config, log));
  const auto device = GDRX_TRY(opened->open_device(Rank{0}, config, log));
  const auto region = GDRX_TRY(device->register_memory(memory.bytes(), MemoryKind::cuda));
  const bool flush = GDRX_TRY(device->flush(*region, 0)) != Flush::not_needed;
  return Reach{region->path(), flush};
}

}  // namespace

void find_gpu_reach(const std::string& fabric, const Config& config, const Log& log,
                    NetDevice& device) {
  Config own = config;
  own.verbs_staging = kStaging;
  if (!device.hca.empty()) own.hca = device.hca;
  const auto reach = reach_of(fabric, own, log);
  if (!reach) {
    device.memory = fmt::format("host memory (of GPUs none: {})", describe(reach.error()));
    return;
  }
  switch (reach->path) {
    case MemoryPath::dma_buf:
      device.pointers |= nccl::kPtrCuda | nccl::kPtrDmaBuf;
      break;
    case MemoryPath::peermem:
      device.pointers |= nccl::kPtrCuda;
      break;
    case MemoryPath::staged:
    case MemoryPath::host:
      device.memory = "host memory (of GPUs none: the NIC does not reach it, see above)";
      return;
  }
  device.force_flush = reach->flush;
  device.memory = fmt::format("host and GPU memory ({}{})", to_string(reach->path),
                              reach->flush ? ", flushed" : "");
}

}  // namespace gdrx::net
