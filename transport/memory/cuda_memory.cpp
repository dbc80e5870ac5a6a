// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/cuda_memory.hpp"

#include <link.h>

#include <atomic>
#include <list>
#include <mutex>
#include <new>
#include <utility>

#include "base/system_library.hpp"
#include "gdrx/pinned_size.hpp"
#include "transport/memory/surely_host.hpp"

namespace gdrx::cuda {
namespace {

constexpr int kAttributeMemoryType = 2;
constexpr unsigned kMemoryTypeDevice = 2;

}  // namespace

const std::string& missing() { return driver().missing; }

// The linker is asked again only after it has loaded something: calls on host memory must not pay
// for GPUs that nobody uses.
bool is_loaded() noexcept {
  static std::atomic<unsigned long long> seen{0};
  static std::atomic<bool> found{false};
  if (found.load(std::memory_order_relaxed)) return true;
  unsigned long long loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &loads);
  if (loads == seen.load(std::memory_order_relaxed)) return false;
  const bool has = SystemLibrary::open({"libcuda.so.1"}, "", SystemLibrary::If::loaded).opened();
  // Not before the answer is known: another thread believes it.
  if (!has) seen.store(loads, std::memory_order_relaxed);
  if (has) found.store(true, std::memory_order_relaxed);
  return has;
}

MemoryKind kind_of(const void* pointer) noexcept {
  if (are_surely_host(pointer, nullptr)) return MemoryKind::host;
  if (!missing().empty()) return MemoryKind::host;
  // Asked for one attribute, the driver calls memory that it does not know an error, and tools such
  // as compute-sanitizer count them; asked for a list it says zero.
  unsigned type = 0;
  int attribute = kAttributeMemoryType;
  void* value = &type;
  const Status status = driver().pointer_attributes(1, &attribute, &value, address(pointer));
  return status == 0 && type == kMemoryTypeDevice ? MemoryKind::cuda : MemoryKind::host;
}

struct PinnedBuffer::Idle {
  // Never destroyed: the driver may be gone before it.
  static Idle& instance() {
    static Idle& idle = *new Idle;
    return idle;
  }
  /// Of exactly so many. Of no memory: there is none.
  PinnedBuffer take(std::size_t bytes, Context context) {
    const std::lock_guard lock(mutex);
    auto found = all.end();
    for (auto one = all.begin(); one != all.end(); ++one) {
      if (one->context_.raw() == context && one->size_ == bytes) found = one;
    }
    if (found == all.end()) return {};
    PinnedBuffer taken = std::move(*found);
    all.erase(found);
    return taken;
  }
  std::mutex mutex;
  std::list<PinnedBuffer> all;
};

Result<PinnedBuffer> PinnedBuffer::create(std::size_t bytes, const void* device_pointer) {
  PinnedBuffer buffer;
  bytes = pinned_size(bytes);
  buffer.context_ = GDRX_TRY(PrimaryContext::of(device_pointer));
  if (PinnedBuffer idle = Idle::instance().take(bytes, buffer.context_.raw()); idle.size_ > 0) {
    return idle;
  }
  const Current current(buffer.context_.raw());
  if (!current.ok()) return fail(Errc::system, "cuCtxPushCurrent");
  constexpr unsigned kPortable = 1;  // pinned for every context
  void* data = nullptr;
  const Status status = driver().allocate_host(&data, bytes, kPortable);
  if (status != 0) return failed("cuMemHostAlloc", status);
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_ = bytes;
  return buffer;
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(context_, other.context_);
  return *this;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ == nullptr) return;
  try {
    Idle& idle = Idle::instance();
    const std::lock_guard lock(idle.mutex);
    idle.all.push_back(std::move(*this));
  } catch (const std::bad_alloc&) {
    const Current current(context_.raw());
    driver().free_host(data_);
  }
}

Result<DeviceBuffer> DeviceBuffer::create(std::size_t bytes, int ordinal) {
  if (!missing().empty()) return fail(Errc::unsupported, missing());
  int count = 0;
  if (const Status status = driver().count(&count); status != 0 || count == 0) {
    return fail(Errc::unsupported, "this process sees no GPU (is CUDA_VISIBLE_DEVICES empty?)");
  }
  DeviceBuffer buffer;
  buffer.context_ = GDRX_TRY(PrimaryContext::retain(ordinal % count));
  const Current current(buffer.context_.raw());
  DevicePointer made = 0;
  if (const Status status = driver().allocate(&made, bytes); status != 0) {
    return failed("cuMemAlloc", status);
  }
  buffer.data_ = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(made));
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(context_, other.context_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ == nullptr) return;
  const Current current(context_.raw());
  driver().free(address(data_));
}

}  // namespace gdrx::cuda
