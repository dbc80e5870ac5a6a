// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/p2p_gpu.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "tools/perf/p2p_kernels.hpp"

namespace gdrx::perf {
namespace {

constexpr std::size_t kFlagBytes = 4096;
constexpr int kThreads = 512;
constexpr unsigned kNonBlocking = 1;
constexpr std::chrono::seconds kGpuDeadline{30};

/// A stream and the two events around what is timed on it.
class GpuLane {
 public:
  static Result<std::unique_ptr<GpuLane>> create(const cuda::Device& device) {
    std::unique_ptr<GpuLane> lane(new GpuLane(device));
    const cuda::Current current(device);
    const cuda::Driver& cuda = device.cuda();
    int status = cuda.stream_create(&lane->stream, kNonBlocking);
    if (status == 0) status = cuda.event_create(&lane->begin, 0);
    if (status == 0) status = cuda.event_create(&lane->end, 0);
    if (status != 0) return cuda::failed(cuda, "a stream with events", status);
    return lane;
  }
  ~GpuLane() {
    const cuda::Current current(device_);
    const cuda::Driver& cuda = device_.cuda();
    if (begin != nullptr) cuda.event_destroy(begin);
    if (end != nullptr) cuda.event_destroy(end);
    if (stream != nullptr) cuda.stream_destroy(stream);
  }
  GpuLane(const GpuLane&) = delete;
  GpuLane& operator=(const GpuLane&) = delete;
  void* stream = nullptr;
  void* begin = nullptr;
  void* end = nullptr;

 private:
  explicit GpuLane(const cuda::Device& device) : device_(device) {}
  const cuda::Device& device_;
};
using Lanes = std::vector<std::unique_ptr<GpuLane>>;

Result<void> record(const Job& job, const GpuLane& lane, void* event) {
  const cuda::Current current(job.gpu->device());
  const cuda::Driver& cuda = job.gpu->device().cuda();
  const int status = cuda.event_record(event, lane.stream);
  if (status != 0) return cuda::failed(cuda, "cuEventRecord", status);
  return {};
}

Result<void> wait(std::span<const Job> jobs, const Lanes& lanes) {
  constexpr int kNotReady = 600;
  const auto until = std::chrono::steady_clock::now() + kGpuDeadline;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const cuda::Driver& cuda = jobs[i].gpu->device().cuda();
    for (;;) {
      const cuda::Current current(jobs[i].gpu->device());
      const int status = cuda.event_query(lanes[i]->end);
      if (status == 0) break;
      if (status != kNotReady) return cuda::failed(cuda, "work on the GPU", status);
      if (std::chrono::steady_clock::now() > until) {
        return fail(Errc::timeout, "a GPU did not finish within 30 s");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return {};
}

Result<void> start(std::span<const Job> jobs, const Lanes& lanes, int iterations) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    GDRX_TRY(record(jobs[i], *lanes[i], lanes[i]->begin));
  }
  for (int round = 0; round < iterations; ++round) {  // interleaved: all begin together
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const int status = jobs[i].start(lanes[i]->stream);
      if (status != 0) return cuda::failed(jobs[i].gpu->device().cuda(), "starting work", status);
    }
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    GDRX_TRY(record(jobs[i], *lanes[i], lanes[i]->end));
  }
  return wait(jobs, lanes);
}

}  // namespace

Result<double> run_jobs(std::span<const Job> jobs, int iterations, bool warm_up) {
  Lanes lanes;
  for (const Job& job : jobs) lanes.push_back(GDRX_TRY(GpuLane::create(job.gpu->device())));
  if (warm_up) GDRX_TRY(start(jobs, lanes, 1));
  GDRX_TRY(start(jobs, lanes, iterations));
  double slowest = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const cuda::Current current(jobs[i].gpu->device());
    const cuda::Driver& cuda = jobs[i].gpu->device().cuda();
    float milliseconds = 0;
    const int status = cuda.event_elapsed(&milliseconds, lanes[i]->begin, lanes[i]->end);
    if (status != 0) return cuda::failed(cuda, "cuEventElapsedTime", status);
    slowest = std::max(slowest, static_cast<double>(milliseconds) / 1000);
  }
  return slowest;
}

Result<std::unique_ptr<PeerGpu>> PeerGpu::create(std::shared_ptr<cuda::Device> device,
                                                 std::size_t bytes) {
  std::unique_ptr<PeerGpu> gpu(new PeerGpu(device));
  gpu->source_ = GDRX_TRY(cuda::Memory::create(device, bytes));
  gpu->target_ = GDRX_TRY(cuda::Memory::create(device, bytes));
  gpu->flags_ = GDRX_TRY(cuda::Memory::create(device, kFlagBytes));
  const cuda::Driver& cuda = device->cuda();
  const cuda::Current current(*device);
  int status = cuda.module_load(&gpu->module_, kP2pKernels);
  if (status != 0) return cuda::failed(cuda, "cuModuleLoadData of the kernels", status);
  for (const auto& [into, name] :
       {std::pair{&gpu->store_, "gdrx_store"}, std::pair{&gpu->load_, "gdrx_load"},
        std::pair{&gpu->ping_, "gdrx_ping"}}) {
    status = cuda.module_function(into, gpu->module_, name);
    if (status != 0) return cuda::failed(cuda, name, status);
  }
  return gpu;
}

PeerGpu::~PeerGpu() {
  const cuda::Current current(*device_);
  if (module_ != nullptr) device_->cuda().module_unload(module_);
}

Result<void> PeerGpu::fill_source(unsigned value) const {
  const cuda::Current current(*device_);
  const cuda::Driver& cuda = device_->cuda();
  int status = cuda.fill32(source(), value, source_->size() / 4);
  if (status == 0) status = cuda.synchronize();
  if (status != 0) return cuda::failed(cuda, "cuMemsetD32", status);
  return {};
}

Result<void> PeerGpu::clear_target() const {
  const cuda::Current current(*device_);
  const cuda::Driver& cuda = device_->cuda();
  int status = cuda.fill32(target(), 0, target_->size() / 4);
  if (status == 0) status = cuda.fill32(flags(), 0, kFlagBytes / 4);
  if (status == 0) status = cuda.synchronize();
  if (status != 0) return cuda::failed(cuda, "cuMemsetD32", status);
  return {};
}

Result<bool> PeerGpu::target_holds(unsigned value, std::size_t bytes) const {
  std::vector<unsigned> seen(std::min<std::size_t>(bytes, 64 << 10) / 4);
  const std::span<std::byte> raw = std::as_writable_bytes(std::span(seen));
  for (const std::size_t at : {std::size_t{0}, bytes / 2 / 4096 * 4096, bytes - raw.size()}) {
    const std::size_t offset = std::min(at, bytes - raw.size());
    GDRX_TRY(target_->read(offset, raw));
    const bool same = std::all_of(seen.begin(), seen.end(), [&](unsigned x) { return x == value; });
    if (!same) return false;
  }
  return true;
}

int PeerGpu::launch(void* function, int blocks, int threads, void* stream, void** arguments) const {
  const cuda::Current current(*device_);
  return device_->cuda().launch(function, static_cast<unsigned>(blocks), 1, 1,
                                static_cast<unsigned>(threads), 1, 1, 0, stream, arguments,
                                nullptr);
}

int PeerGpu::store(cuda::Address to, std::size_t bytes, unsigned value, int blocks,
                   void* stream) const {
  cuda::Address vectors = bytes / 16;
  std::array<void*, 3> arguments{&to, &vectors, &value};
  return launch(store_, blocks, kThreads, stream, arguments.data());
}

int PeerGpu::load(cuda::Address from, std::size_t bytes, int blocks, void* stream) const {
  cuda::Address vectors = bytes / 16;
  cuda::Address sink = flags() + kVerdictAt;
  std::array<void*, 3> arguments{&from, &vectors, &sink};
  return launch(load_, blocks, kThreads, stream, arguments.data());
}

int PeerGpu::ping(cuda::Address theirs, unsigned rounds, bool first, void* stream) const {
  cuda::Address mine = flags();
  unsigned begins = first ? 1 : 0;
  cuda::Address verdict = flags() + kVerdictAt;
  std::array<void*, 5> arguments{&mine, &theirs, &rounds, &begins, &verdict};
  return launch(ping_, 1, 1, stream, arguments.data());
}

}  // namespace gdrx::perf
