// SPDX-License-Identifier: Apache-2.0
#include "mpi/cuda.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "mpi/library.hpp"

namespace gdrx::mpi {
namespace {

using Address = unsigned long long;  // CUdeviceptr
using Context = void*;
constexpr int kMemoryType = 2;   // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kSynchronous = 6;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
constexpr int kBufferId = 7;     // CU_POINTER_ATTRIBUTE_BUFFER_ID
constexpr int kManaged = 8;      // CU_POINTER_ATTRIBUTE_IS_MANAGED
constexpr int kOrdinal = 9;      // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kHost = 1;    // CU_MEMORYTYPE_HOST
constexpr unsigned kDevice = 2;  // CU_MEMORYTYPE_DEVICE
constexpr int kMostGpus = 64;

/// A side of CUDA_MEMCPY2D, which has two.
struct Side2d {
  std::size_t x = 0;
  std::size_t y = 0;
  unsigned kind = 0;
  void* host = nullptr;
  Address gpu = 0;
  void* array = nullptr;
  std::size_t pitch = 0;
};
struct Copy2d {
  Side2d from;
  Side2d to;
  std::size_t width = 0;
  std::size_t rows = 0;
};
static_assert(sizeof(Copy2d) == 128);

struct Driver {
  int (*attribute)(void*, int, Address) = nullptr;
  int (*set_attribute)(const void*, int, Address) = nullptr;
  int (*retain)(Context*, int) = nullptr;
  int (*push)(Context) = nullptr;
  int (*pop)(Context*) = nullptr;
  int (*make_stream)(void**, unsigned) = nullptr;
  int (*query)(void*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int (*from_gpu)(void*, Address, std::size_t, void*) = nullptr;
  int (*to_gpu)(Address, const void*, std::size_t, void*) = nullptr;
  // Those below may be missing.
  int (*rows)(const Copy2d*, void*) = nullptr;
  int (*pin)(void**, std::size_t, unsigned) = nullptr;
  int (*unpin)(void*) = nullptr;
  int (*context_of)(void*, Context*) = nullptr;  // of a stream
  int (*exchange_mode)(int*) = nullptr;
  int (*is_capturing)(void*, int*) = nullptr;
};
Driver driver;
std::atomic<bool> found{false};

template <class Function>
bool find(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool load() noexcept {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  find(library, "cuMemcpy2DAsync_v2", driver.rows);
  find(library, "cuStreamGetCtx", driver.context_of);
  find(library, "cuThreadExchangeStreamCaptureMode", driver.exchange_mode);
  find(library, "cuStreamIsCapturing", driver.is_capturing);
  if (!find(library, "cuMemFreeHost", driver.unpin) ||
      !find(library, "cuMemHostAlloc", driver.pin)) {
    driver.pin = nullptr;
  }
  return find(library, "cuPointerGetAttribute", driver.attribute) &&
         find(library, "cuPointerSetAttribute", driver.set_attribute) &&
         find(library, "cuDevicePrimaryCtxRetain", driver.retain) &&
         find(library, "cuCtxPushCurrent_v2", driver.push) &&
         find(library, "cuCtxPopCurrent_v2", driver.pop) &&
         find(library, "cuStreamCreate", driver.make_stream) &&
         find(library, "cuStreamQuery", driver.query) &&
         find(library, "cuStreamSynchronize", driver.synchronize) &&
         find(library, "cuMemcpyDtoHAsync_v2", driver.from_gpu) &&
         find(library, "cuMemcpyHtoDAsync_v2", driver.to_gpu);
}

// The loader appends what it loads: as long as nothing is behind the last library, none has come.
// It is held, so that it stays.
std::mutex libraries_mutex;
std::atomic<link_map*> last{nullptr};

/// The end of the loader's list, by its name: another thread may close that library meanwhile.
struct End {
  link_map* at = nullptr;
  std::array<char, 4096> name{};
};

// The loader's, which holds its lock: nothing comes or goes.
int walk(dl_phdr_info*, std::size_t, void* found_end) {
  auto& end = *static_cast<End*>(found_end);
  while (end.at->l_next != nullptr) end.at = end.at->l_next;
  const std::size_t length = std::strlen(end.at->l_name);
  if (length < end.name.size()) std::memcpy(end.name.data(), end.at->l_name, length + 1);
  return 1;  // the first of them is enough
}

bool look_again() noexcept {
  const std::lock_guard lock(libraries_mutex);
  if (found) return true;
  End end{last.load(), {}};
  if (end.at == nullptr) {
    void* const program = dlopen(nullptr, RTLD_LAZY);
    if (program == nullptr || dlinfo(program, RTLD_DI_LINKMAP, &end.at) != 0) return false;
  }
  dl_iterate_phdr(walk, &end);
  found = load();
  // Behind `found`: who sees this end sees also what was found before it.
  if (dlopen(end.name.data(), RTLD_LAZY | RTLD_NOLOAD) == end.at) last = end.at;
  return found;
}

[[noreturn]] void die(const char* what, int code) noexcept {
  std::fprintf(stderr, "gdrx: CUDA does not %s a buffer on a GPU (error %d)\n", what, code);
  std::abort();
}

// While another thread captures a stream, CUDA refuses what may wait to who does not say that it
// minds no capture, and spoils the capture.
class BesideCaptures {
 public:
  BesideCaptures() noexcept { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() noexcept {
    if (driver.exchange_mode != nullptr) driver.exchange_mode(&mode_);
  }
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; then the thread's own
};

// A GPU's primary context, and a stream of ours in it that waits for no other: the program has
// waited for its own.
struct Gpu {
  Context context = nullptr;
  void* stream = nullptr;
};

const Gpu& gpu_of(const void* memory) noexcept {
  static std::mutex mutex;
  static std::array<Gpu, kMostGpus> gpus;
  int number = 0;
  int code = driver.attribute(&number, kOrdinal, reinterpret_cast<Address>(memory));
  if (code != 0 || number < 0 || number >= kMostGpus) die("find the GPU of", code);
  const std::lock_guard lock(mutex);
  Gpu& gpu = gpus[static_cast<std::size_t>(number)];
  if (gpu.context != nullptr) return gpu;
  Context context = nullptr;
  Context old = nullptr;
  code = driver.retain(&context, number);
  if (code == 0) code = driver.push(context);
  if (code != 0) die("open the GPU of", code);
  constexpr unsigned kWaitsForNobody = 1;  // CU_STREAM_NON_BLOCKING
  code = driver.make_stream(&gpu.stream, kWaitsForNobody);
  driver.pop(&old);
  if (code != 0) die("make a stream for", code);
  gpu.context = context;
  return gpu;
}

/// Whether a default stream has no work any more; it may be that nobody may ask.
bool is_idle(std::uintptr_t handle) noexcept {
  void* const stream = reinterpret_cast<void*>(handle);
  // To ask a default stream spoils the capture of one that waits for it; this asks whether.
  int captured = 0;
  if (driver.is_capturing != nullptr &&
      (driver.is_capturing(stream, &captured) != 0 || captured != 0)) {
    return false;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  constexpr int kNotReady = 600;  // CUDA_ERROR_NOT_READY
  while (driver.query(stream) == kNotReady) {
    if (std::chrono::steady_clock::now() >= end) return false;
  }
  return true;
}

// cudaMemcpy from pageable memory returns before its last 64 KiB are on the GPU; a copy within the
// GPU and cudaMemset return before they begin. In a stream of ours nothing waits for those. From
// here on CUDA waits in such calls, if this memory allows it (what is mapped by parts does not);
// for those of before, the default streams are waited for. Not for long: they may have other work,
// and that may wait for this program. An allocation of which nothing is under way any more is known
// by its number, which no other gets.
void settle(const void* memory) noexcept {
  static std::mutex mutex;  // another thread may have set the attribute, and not waited yet
  static std::array<std::uint64_t, 1024> settled{};
  const auto address = reinterpret_cast<Address>(memory);
  std::uint64_t id = 0;
  if (driver.attribute(&id, kBufferId, address) != 0) id = 0;
  const std::lock_guard lock(mutex);
  std::uint64_t& known = settled[id % settled.size()];
  if (id != 0 && known == id) return;
  constexpr unsigned kOn = 1;
  const bool synchronous = driver.set_attribute(&kOn, kSynchronous, address) == 0;
  constexpr std::uintptr_t kLegacy = 1;     // CU_STREAM_LEGACY
  constexpr std::uintptr_t kPerThread = 2;  // CU_STREAM_PER_THREAD, this thread's
  const bool legacy = is_idle(kLegacy);
  if (is_idle(kPerThread) && legacy && synchronous) known = id;
}

// Its context, current on this thread for a while; what the program has copied there has arrived.
class Current {
 public:
  explicit Current(const void* memory) noexcept : gpu_(gpu_of(memory)) {
    const int code = driver.push(gpu_.context);
    if (code != 0) die("use the GPU of", code);
    settle(memory);
  }
  ~Current() {
    Context old = nullptr;
    driver.pop(&old);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  void* stream() const noexcept { return gpu_.stream; }

 private:
  const BesideCaptures beside_;
  const Gpu& gpu_;
};

}  // namespace

bool has_cuda() noexcept {
  link_map* const end = last.load(std::memory_order_acquire);
  if (found.load(std::memory_order_acquire)) return true;
  return (end == nullptr || end->l_next != nullptr) && look_again();
}

bool is_on_gpu(const void* at) noexcept {
  const auto address = reinterpret_cast<Address>(at);
  unsigned type = 0;
  if (at == nullptr || driver.attribute(&type, kMemoryType, address) != 0 || type != kDevice) {
    return false;
  }
  unsigned managed = 0;
  return driver.attribute(&managed, kManaged, address) != 0 || managed == 0;
}

namespace {

bool is_set(const char* name) noexcept {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != 0 && std::strcmp(value, "0") != 0;
}

bool ask_mpi() noexcept {
  if (is_set("MPICH_GPU_SUPPORT_ENABLED") || is_set("I_MPI_OFFLOAD")) return true;
  const auto cuda = reinterpret_cast<int (*)()>(find_function("MPIX_Query_cuda_support"));
  if (cuda != nullptr && cuda() == 1) return true;
  constexpr int kCuda = 0;  // MPICH's MPIX_GPU_SUPPORT_CUDA
  int is = 0;
  const auto gpus = reinterpret_cast<int (*)(int, int*)>(find_function("MPIX_GPU_query_support"));
  return gpus != nullptr && gpus(kCuda, &is) == MPI_SUCCESS && is != 0;
}

}  // namespace

bool mpi_knows_gpus() noexcept {
  static std::atomic<int> known{-1};
  const int answer = known.load(std::memory_order_relaxed);
  if (answer >= 0) return answer == 1;
  int initialized = 0;
  if (real::Initialized(&initialized) != MPI_SUCCESS || initialized == 0) return ask_mpi();
  known = ask_mpi() ? 1 : 0;
  return known == 1;
}

namespace {

int copy_rows(const Piece& piece, bool reads, void* stream) noexcept {
  const Side2d gpu{
      .kind = kDevice, .gpu = reinterpret_cast<Address>(piece.gpu), .pitch = piece.stride};
  const Side2d host{.kind = kHost, .host = piece.host, .pitch = piece.stride};
  const Copy2d copy{reads ? gpu : host, reads ? host : gpu, piece.bytes, piece.rows};
  return driver.rows(&copy, stream);
}

int copy_row(const Piece& piece, std::size_t row, bool reads, void* stream) noexcept {
  const Address gpu = reinterpret_cast<Address>(piece.gpu) + row * piece.stride;
  std::byte* const host = static_cast<std::byte*>(piece.host) + row * piece.stride;
  return reads ? driver.from_gpu(host, gpu, piece.bytes, stream)
               : driver.to_gpu(gpu, host, piece.bytes, stream);
}

int copy(const std::vector<Piece>& pieces, bool reads) noexcept {
  if (pieces.empty()) return 0;
  const Current current(pieces.front().gpu);
  int code = 0;
  for (const Piece& piece : pieces) {
    if (code != 0) break;
    if (piece.rows > 1 && driver.rows != nullptr) {
      code = copy_rows(piece, reads, current.stream());
      continue;
    }
    for (std::size_t row = 0; code == 0 && row < piece.rows; ++row) {
      code = copy_row(piece, row, reads, current.stream());
    }
  }
  return code != 0 ? code : driver.synchronize(current.stream());
}

}  // namespace

void copy_from_gpu(const std::vector<Piece>& pieces) noexcept {
  if (const int code = copy(pieces, true)) die("read", code);
}

void copy_to_gpu(const std::vector<Piece>& pieces) noexcept {
  if (const int code = copy(pieces, false)) die("write", code);
}

// Each GPU's copies may use it.
Pinned pin(std::size_t bytes, const void* gpu) noexcept {
  if (driver.pin == nullptr) return {};
  const BesideCaptures beside;
  constexpr unsigned kPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE
  Context const context = gpu_of(gpu).context;
  Context old = nullptr;
  void* memory = nullptr;
  if (driver.push(context) != 0) return {};
  const bool has = driver.pin(&memory, bytes, kPortable) == 0;
  driver.pop(&old);
  return has ? Pinned{static_cast<std::byte*>(memory), context} : Pinned{};
}

void unpin(const Pinned& memory) noexcept {
  const BesideCaptures beside;
  Context old = nullptr;
  if (driver.push(memory.context) != 0) return;
  driver.unpin(memory.at);
  driver.pop(&old);
}

StreamContext::StreamContext(void* stream) noexcept {
  if (!has_cuda()) return;
  constexpr std::uintptr_t kLegacy = 1;  // CU_STREAM_LEGACY
  is_known_ = reinterpret_cast<std::uintptr_t>(stream) <= kLegacy;
  Context context = nullptr;
  if (is_known_ || driver.context_of == nullptr || driver.context_of(stream, &context) != 0) return;
  is_known_ = is_pushed_ = driver.push(context) == 0;
}

StreamContext::~StreamContext() {
  Context old = nullptr;
  if (is_pushed_) driver.pop(&old);
}

}  // namespace gdrx::mpi
