// SPDX-License-Identifier: Apache-2.0
// Copies between the host and a GPU: behind the default stream, or aside of all others.
#include <map>
#include <mutex>

#include "transport/memory/cuda_memory.hpp"

namespace gdrx::cuda {
namespace {

constexpr int kAttributeContext = 1;
constexpr unsigned kNonBlocking = 1;
constexpr Status kInvalidContext = 201;
constexpr Status kContextDestroyed = 709;
constexpr Status kCaptureUnsupported = 900;
constexpr Status kCaptureImplicit = 906;

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

/// A stream for each context. Lives as long as the process: the driver may be gone before our
/// destructors. A context ends with its last owner, or by cudaDeviceReset, its stream with it; the
/// next one may have its address.
class Lanes {
 public:
  static Lanes& all() {
    static auto* lanes = new Lanes;
    return *lanes;
  }
  /// `owner` is current.
  Result<Stream> of(const Owner& owner) {
    unsigned long long id = 0;  // no two contexts of a process have the same
    if (driver().context_id != nullptr) driver().context_id(owner.raw(), &id);
    const std::lock_guard lock(mutex_);
    Lane& lane = by_context_[owner.raw()];
    if (lane.stream != nullptr && lane.context_id == id) return lane.stream;
    Stream stream = nullptr;
    if (const Status status = driver().create_stream(&stream, kNonBlocking); status != 0) {
      return failed("cuStreamCreate", status);
    }
    lane = {stream, id};
    return stream;
  }
  /// Of a context that has ended, where the driver is older than ids.
  void forget(const Owner& owner, Stream stream) {
    const std::lock_guard lock(mutex_);
    Lane& lane = by_context_[owner.raw()];
    if (lane.stream == stream) lane = {};
  }

 private:
  struct Lane {
    Stream stream = nullptr;
    unsigned long long context_id = 0;
  };
  std::mutex mutex_;
  std::map<Context, Lane> by_context_;
};

/// Asks for a copy in `owner`'s lane and waits for it.
template <class Ask>
Result<void> copy_in_lane(const Owner& owner, const char* call, Ask ask) {
  const Current current(owner.raw());
  for (bool again = false;; again = true) {
    Stream lane = GDRX_TRY(Lanes::all().of(owner));
    const Status status = ask(lane);
    if (!again && (status == kInvalidContext || status == kContextDestroyed)) {
      Lanes::all().forget(owner, lane);
      continue;
    }
    if (status != 0) return failed(call, status);
    if (const Status waited = driver().synchronize(lane); waited != 0) {
      return failed("cuStreamSynchronize", waited);
    }
    return {};
  }
}

// Asked before: to wait for a stream that is captured would spoil the capture.
Result<void> check_not_captured(Stream stream) {
  int capturing = 0;
  if (driver().is_capturing == nullptr) return {};
  const Status status = driver().is_capturing(stream, &capturing);
  if (status == kCaptureImplicit) {
    return fail(Errc::unsupported,
                "a stream that waits for the default one is being captured, and this call would "
                "wait for the default one: give it a stream");
  }
  if (status != 0 || capturing == 0) return {};
  return fail(Errc::unsupported,
              "the stream is being captured, and this call goes through host memory");
}

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
  const Owner owner = GDRX_TRY(Owner::of(device));
  return copy_in_lane(owner, "cuMemcpyDtoHAsync", [&](Stream lane) {
    return driver().to_host_async(host, address(device), bytes, lane);
  });
}

Result<void> copy_aside_to_device(std::byte* device, const std::byte* host, std::size_t bytes) {
  const Owner owner = GDRX_TRY(Owner::of(device));
  return copy_in_lane(owner, "cuMemcpyHtoDAsync", [&](Stream lane) {
    return driver().to_device_async(address(device), host, bytes, lane);
  });
}

Result<void> synchronize_default_stream(const void* memory) {
  const Owner owner = GDRX_TRY(Owner::of(memory));
  const Current current(owner.raw());
  return synchronize(nullptr);
}

Result<void> synchronize(void* stream) {
  if (!missing().empty()) return fail(Errc::unsupported, missing());
  const AnyCapture beside;
  GDRX_TRY(check_not_captured(stream));
  const Status status = driver().synchronize(stream);
  if (status == kCaptureUnsupported) {  // it began just now, or is_capturing is not there
    return fail(Errc::unsupported,
                "the stream is being captured, and this call goes through host memory");
  }
  if (status != 0) return failed("cuStreamSynchronize", status);
  return {};
}

}  // namespace gdrx::cuda
