// SPDX-License-Identifier: Apache-2.0
// The fake driver's contexts, and streams that copy some time later. In the application's context
// it refuses what a real one may keep waiting there, for as long as the application waits for its
// GPU.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/plugin/fake_cuda.hpp"

namespace {

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): this file's own

constexpr int kNotReady = 600;
constexpr std::size_t kByComputeEngine = 32 * 1024;
constexpr auto kCopyTakes = std::chrono::microseconds(20);

struct MemoryOperation {  // a CUstreamBatchMemOpParams that writes
  int kind;
  Pointer address;
  std::uint64_t value;
  unsigned flags;
  Pointer alias;
  std::uint64_t pad;
};
constexpr int kWriteValue32 = 2;
constexpr int kWriteValue64 = 5;

struct Context {
  bool application = false;
};

// Does what it is asked for in order, some time later.
class Stream {
 public:
  std::atomic<bool> by_copy_engine = false;  // what it did last
  const int life = context_life();           // of the application's context
  void ask(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return work_.empty();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty(); });
  }
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    engine_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ended_ || !work_.empty(); });
      if (work_.empty()) return;
      const auto next = work_.front();
      lock.unlock();
      std::this_thread::sleep_for(kCopyTakes);
      next();
      lock.lock();
      work_.pop_front();
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool ended_ = false;
  std::thread engine_{[this] { run(); }};  // last: all else is there
};

Context applications{true};
std::atomic<int> contexts = 0;  // made and not destroyed
thread_local std::vector<Context*> current{&applications};

std::atomic<bool> application_waits = false;

bool on_gpu(Pointer at) {
  const std::lock_guard lock(mutex);
  return find(at) != mapped.end();
}

}  // namespace

void* fake_cuda::application() { return &applications; }
bool fake_cuda::ended(void* stream) {
  return stream != nullptr && static_cast<Stream*>(stream)->life != context_life();
}
bool fake_cuda::blocked() { return application_waits && current.back()->application; }

FAKE int cuCtxGetCurrent(void** out) {
  *out = current.back();
  return 0;
}
FAKE void fake_cuda_let_application_wait() { application_waits = true; }
FAKE int fake_cuda_contexts() { return contexts; }
FAKE int cuCtxCreate_v2(void** out, unsigned, int) {
  current.push_back(new Context);
  *out = current.back();
  ++contexts;
  return 0;
}
FAKE int cuCtxDestroy_v2(void* context) {
  delete static_cast<Context*>(context);
  --contexts;
  return 0;
}
FAKE int cuCtxPushCurrent_v2(void* context) {
  current.push_back(static_cast<Context*>(context));
  return 0;
}
FAKE int cuCtxPopCurrent_v2(void** out) {
  if (current.size() < 2) return kInvalidContext;
  *out = current.back();
  current.pop_back();
  return 0;
}
FAKE int cuMemHostAlloc(void** out, std::size_t bytes, unsigned) {
  if (blocked()) return kInvalidContext;
  *out = std::malloc(bytes);
  return 0;
}
FAKE int cuMemFreeHost(void* at) {
  std::free(at);
  return 0;
}
FAKE int cuStreamCreate(void** out, unsigned) {
  if (blocked()) return kInvalidContext;
  *out = new Stream;
  return 0;
}
FAKE int cuStreamSynchronize(void* stream) {
  // On the default stream everything is done at once.
  if (stream != nullptr) static_cast<Stream*>(stream)->wait();
  return 0;
}
FAKE int cuStreamQuery(void* stream) {
  if (blocked()) return kInvalidContext;
  return static_cast<Stream*>(stream)->idle() ? 0 : kNotReady;
}
FAKE int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return 0;
}
// Little host memory would go by the compute engine, which the application's kernel has.
FAKE int cuMemcpyAsync(Pointer to, Pointer from, std::size_t bytes, void* stream) {
  if (blocked() || (application_waits && bytes < kByComputeEngine && !on_gpu(from))) {
    return kInvalidContext;
  }
  static_cast<Stream*>(stream)->by_copy_engine = true;
  static_cast<Stream*>(stream)->ask([=] {
    const std::lock_guard lock(mutex);
    std::memcpy(visible(to), visible(from), bytes);
  });
  return 0;
}
FAKE int cuStreamWriteValue32_v2(void* stream, Pointer at, std::uint32_t value, unsigned) {
  if (blocked()) return kInvalidContext;
  static_cast<Stream*>(stream)->ask([=] {
    const std::atomic_ref word(*reinterpret_cast<std::uint32_t*>(at));
    word.store(value, std::memory_order_release);
  });
  return 0;
}
// So would a new stream's writes.
FAKE int cuStreamBatchMemOp_v2(void* stream, unsigned count, const MemoryOperation* all, unsigned) {
  const bool engine = static_cast<Stream*>(stream)->by_copy_engine;
  if (blocked() || (application_waits && !engine)) return kInvalidContext;
  for (unsigned i = 0; i < count; ++i) {
    const MemoryOperation one = all[i];
    if (one.kind == kWriteValue32) {
      cuStreamWriteValue32_v2(stream, one.address, static_cast<std::uint32_t>(one.value), 0);
    } else if (one.kind == kWriteValue64 && one.address % sizeof one.value == 0) {
      static_cast<Stream*>(stream)->ask([one] {
        const std::lock_guard lock(mutex);
        std::memcpy(visible(one.address), &one.value, sizeof one.value);
      });
    } else {
      return kInvalid;
    }
  }
  return 0;
}
