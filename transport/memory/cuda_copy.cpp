// SPDX-License-Identifier: Apache-2.0
// Copies between the host and a GPU: behind the default stream, or aside of all others.
#include <map>
#include <mutex>

#include "transport/memory/cuda_memory.hpp"

namespace gdrx::cuda {
namespace {

constexpr int kAttributeContext = 1;
constexpr unsigned kNonBlocking = 1;
constexpr Status kCaptureUnsupported = 900;

struct Lane {
  PrimaryContext context;
  Stream stream = nullptr;
};

/// Lives as long as the process: the driver may be gone before our destructors.
class Lanes {
 public:
  static Lanes& all() {
    static auto* lanes = new Lanes;
    return *lanes;
  }
  Result<const Lane*> of(const void* device_pointer) {
    const int ordinal = GDRX_TRY(ordinal_of(device_pointer));
    const std::lock_guard lock(mutex_);
    const auto found = by_device_.find(ordinal);
    if (found != by_device_.end()) return &found->second;
    Lane made{GDRX_TRY(PrimaryContext::retain(ordinal)), nullptr};
    const Current current(made.context.raw());
    if (const Status status = driver().create_stream(&made.stream, kNonBlocking); status != 0) {
      return failed("cuStreamCreate", status);
    }
    return &by_device_.emplace(ordinal, std::move(made)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, Lane> by_device_;
};

// The context that the memory was allocated in, or its device's primary one: memory of cuMemCreate
// has none.
class Owner {
 public:
  static Result<Owner> of(const void* pointer) {
    if (!missing().empty()) return fail(Errc::unsupported, missing());
    Owner owner;
    const Status status =
        driver().pointer_attribute(&owner.context_, kAttributeContext, address(pointer));
    if (status != 0 || owner.context_ == nullptr) {
      owner.held_ = GDRX_TRY(PrimaryContext::of(pointer));
      owner.context_ = owner.held_.raw();
    }
    return owner;
  }
  Context raw() const noexcept { return context_; }

 private:
  PrimaryContext held_;
  Context context_ = nullptr;
};

}  // namespace

Result<void> copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) {
  const Owner owner = GDRX_TRY(Owner::of(device));
  const Current current(owner.raw());
  const Status status = driver().to_host(host, address(device), bytes);
  if (status != 0) return failed("cuMemcpyDtoH", status);
  return {};
}

Result<void> copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) {
  const Owner owner = GDRX_TRY(Owner::of(device));
  const Current current(owner.raw());
  const Status status = driver().to_device(address(device), host, bytes);
  if (status != 0) return failed("cuMemcpyHtoD", status);
  // From pageable memory the copy may still be under way, and non-blocking streams would not wait.
  return synchronize(nullptr);
}

Result<void> copy_aside_to_host(std::byte* host, const std::byte* device, std::size_t bytes) {
  const Lane* lane = GDRX_TRY(Lanes::all().of(device));
  const Current current(lane->context.raw());
  if (const Status status = driver().to_host_async(host, address(device), bytes, lane->stream);
      status != 0) {
    return failed("cuMemcpyDtoHAsync", status);
  }
  if (const Status status = driver().synchronize(lane->stream); status != 0) {
    return failed("cuStreamSynchronize", status);
  }
  return {};
}

Result<void> copy_aside_to_device(std::byte* device, const std::byte* host, std::size_t bytes) {
  const Lane* lane = GDRX_TRY(Lanes::all().of(device));
  const Current current(lane->context.raw());
  if (const Status status = driver().to_device_async(address(device), host, bytes, lane->stream);
      status != 0) {
    return failed("cuMemcpyHtoDAsync", status);
  }
  if (const Status status = driver().synchronize(lane->stream); status != 0) {
    return failed("cuStreamSynchronize", status);
  }
  return {};
}

Result<void> synchronize(void* stream) {
  if (!missing().empty()) return fail(Errc::unsupported, missing());
  const Status status = driver().synchronize(stream);
  if (status == kCaptureUnsupported) {
    return fail(Errc::unsupported,
                "the stream is being captured, and this call goes through host memory");
  }
  if (status != 0) return failed("cuStreamSynchronize", status);
  return {};
}

}  // namespace gdrx::cuda
