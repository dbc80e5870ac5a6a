// SPDX-License-Identifier: Apache-2.0
// Streams: a thread each, which does one thing after the other. Events, captures.
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "tests/emulated/cuda/state.hpp"

namespace gdrx::emulated {
namespace {

struct Streams {
  std::mutex mutex;
  std::vector<std::shared_ptr<CUstream_st>> all;
  std::map<int, CUstream_st*> null_streams;
};
Streams& streams() {
  static Streams& instance = *new Streams;  // threads outlive main()
  return instance;
}

/// Captures that forbid this thread, or every thread, what may wait.
using Captures = std::vector<std::weak_ptr<Capture>>;
thread_local Captures own_captures;
thread_local cudaStreamCaptureMode interaction = cudaStreamCaptureModeGlobal;
std::mutex global_mutex;
Captures global_captures;
Captures all_captures;  // under global_mutex, too

std::shared_ptr<CUstream_st> shared(const CUstream_st* stream) {
  const std::lock_guard lock(streams().mutex);
  for (const auto& one : streams().all) {
    if (one.get() == stream) return one;
  }
  return nullptr;
}

void serve(const std::shared_ptr<CUstream_st>& stream) {
  std::unique_lock lock(stream->mutex);
  while (true) {
    stream->changed.wait(lock, [&] { return !stream->waiting.empty() || stream->ends; });
    if (stream->waiting.empty()) break;
    const Work work = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    stream->busy = true;
    lock.unlock();
    work();
    lock.lock();
    stream->busy = false;
    stream->changed.notify_all();
  }
  lock.unlock();
  const std::lock_guard all(streams().mutex);
  std::erase(streams().all, stream);
}

CUstream_st* create(int device) {
  auto stream = std::make_shared<CUstream_st>(device);
  {
    const std::lock_guard lock(streams().mutex);
    streams().all.push_back(stream);
  }
  std::thread(serve, stream).detach();
  return stream.get();
}

/// The stream that a call means.
CUstream_st* meant(cudaStream_t stream) {
  if (stream != nullptr && stream != cudaStreamLegacy) return stream;
  const int device = current_device();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  CUstream_st*& found = streams().null_streams[device];
  if (found == nullptr) found = create(device);
  return found;
}

void finish(CUstream_st& stream) {
  std::unique_lock lock(stream.mutex);
  stream.changed.wait(lock, [&] { return stream.waiting.empty() && !stream.busy; });
}

cudaError_t invalidate(const std::shared_ptr<Capture>& capture) {
  capture->valid = false;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t invalidate_all(const Captures& captures) {
  cudaError_t status = cudaSuccess;
  for (const auto& one : captures) {
    if (const auto capture = one.lock()) status = invalidate(capture);
  }
  return status;
}

void remove(Captures& from, const std::shared_ptr<Capture>& capture) {
  std::erase_if(from, [&](const auto& one) { return one.expired() || one.lock() == capture; });
}

/// A stream's new work is not waited for by anybody; `joined`: now it is.
void set_joined(Capture& capture, const CUstream_st* stream, bool joined) {
  for (Capture::Member& member : capture.members) {
    if (member.stream.get() == stream) member.joined = joined;
  }
}

void wait_for(const std::shared_ptr<Point>& point) {
  std::unique_lock lock(point->mutex);
  point->changed.wait(lock, [&] { return point->reached; });
}

void reach(const std::shared_ptr<Point>& point) {
  const std::lock_guard lock(point->mutex);
  point->when = std::chrono::steady_clock::now();
  point->reached = true;
  point->changed.notify_all();
}

std::shared_ptr<Point> point_of(CUevent_st& event) {
  const std::lock_guard lock(event.mutex);
  return event.point;
}

}  // namespace

cudaError_t refuse_in_capture() noexcept {
  if (interaction == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  if (const auto own = invalidate_all(own_captures); own != cudaSuccess) return own;
  if (interaction == cudaStreamCaptureModeThreadLocal) return cudaSuccess;
  const std::lock_guard lock(global_mutex);
  return invalidate_all(global_captures);
}

void finish_device(int device) {
  std::vector<std::shared_ptr<CUstream_st>> its;
  {
    const std::lock_guard lock(streams().mutex);
    std::copy_if(streams().all.begin(), streams().all.end(), std::back_inserter(its),
                 [&](const auto& one) { return one->device == device; });
  }
  for (const auto& stream : its) finish(*stream);
}

cudaError_t enqueue(cudaStream_t named, Work work) {
  CUstream_st& stream = *meant(named);
  const std::lock_guard lock(stream.mutex);
  if (stream.capture) {
    if (!stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
    const std::lock_guard capture(stream.capture->mutex);
    stream.capture->nodes.push_back(std::move(work));
    set_joined(*stream.capture, &stream, false);
    return cudaSuccess;
  }
  stream.waiting.push_back(std::move(work));
  stream.changed.notify_all();
  return cudaSuccess;
}

}  // namespace gdrx::emulated

using namespace gdrx::emulated;  // NOLINT(google-build-using-namespace): CUDA's names are global

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
  if (const auto refused = refuse_in_capture(); refused != cudaSuccess) return told(refused);
  *made = create(current_device());
  return cudaSuccess;
}

// What the stream has is still done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto held = shared(stream);
  if (!held) return told(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(held->mutex);
  held->ends = true;
  held->changed.notify_all();
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CUstream_st& waited = *meant(stream);
  {
    const std::lock_guard lock(waited.mutex);
    if (waited.capture) return told(invalidate(waited.capture));
  }
  if (const auto refused = refuse_in_capture(); refused != cudaSuccess) return told(refused);
  finish(waited);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  CUstream_st& asked = *meant(stream);
  const std::lock_guard lock(asked.mutex);
  if (asked.capture) return told(invalidate(asked.capture));
  return asked.waiting.empty() && !asked.busy ? cudaSuccess : cudaErrorNotReady;
}

CUresult cuStreamQuery(CUstream stream) {
  const bool is_of_thread = stream == CU_STREAM_PER_THREAD;  // nobody puts anything there
  return is_of_thread ? CUDA_SUCCESS : static_cast<CUresult>(cudaStreamQuery(stream));
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return cuDevicePrimaryCtxRetain(context, meant(stream)->device);
}

// Beside a capture of any thread in any mode, CUDA 13.0 on an H100 does this.
cudaError_t cudaDeviceSynchronize() {
  {
    const std::lock_guard lock(global_mutex);
    if (const auto refused = invalidate_all(all_captures); refused != cudaSuccess) {
      return told(refused);
    }
  }
  finish_device(current_device());
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned) {
  *made = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* made) { return cudaEventCreateWithFlags(made, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t named) {
  CUstream_st& stream = *meant(named);
  {
    const std::scoped_lock lock(stream.mutex, event->mutex);
    event->captured = stream.capture != nullptr;
    event->in_capture = stream.capture;
    event->stream = &stream;
    if (event->captured) return cudaSuccess;
  }
  auto point = std::make_shared<Point>();
  {
    const std::lock_guard lock(event->mutex);
    event->point = point;
  }
  return told(enqueue(&stream, [point] { reach(point); }));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t named, cudaEvent_t event, unsigned) {
  CUstream_st& stream = *meant(named);
  std::shared_ptr<Point> point;
  {
    const std::scoped_lock lock(stream.mutex, event->mutex);
    if (event->captured) {
      const auto capture = event->in_capture.lock();
      if (!capture) return told(cudaErrorCapturedEvent);
      if (stream.capture && stream.capture != capture) return told(cudaErrorStreamCaptureMerge);
      const std::lock_guard members(capture->mutex);
      if (event->stream != &stream) set_joined(*capture, event->stream, true);
      // Without work of its own it may stay behind, as on an H100 (CUDA 13.0).
      if (!stream.capture) capture->members.push_back({shared(&stream), true});
      stream.capture = capture;
      return cudaSuccess;
    }
    if (stream.capture) {
      stream.capture->valid = false;
      return told(cudaErrorStreamCaptureIsolation);
    }
    point = event->point;
  }
  if (!point) return cudaSuccess;
  return told(enqueue(&stream, [point] { wait_for(point); }));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const auto refused = refuse_in_capture(); refused != cudaSuccess) return told(refused);
  {
    const std::lock_guard lock(event->mutex);
    if (event->captured) return told(cudaErrorCapturedEvent);
  }
  const auto point = point_of(*event);
  if (!point) return cudaSuccess;
  const std::lock_guard lock(point->mutex);
  return told(point->reached ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const auto refused = refuse_in_capture(); refused != cudaSuccess) return told(refused);
  if (const auto point = point_of(*event)) wait_for(point);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  const auto from = point_of(*begin);
  const auto to = point_of(*end);
  if (!from || !to) return told(cudaErrorInvalidResourceHandle);
  const std::scoped_lock lock(from->mutex, to->mutex);
  if (!from->reached || !to->reached) return told(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(to->when - from->when).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  static std::atomic<unsigned long long> ids{0};
  if (stream == nullptr) return told(cudaErrorStreamCaptureImplicit);
  auto capture = std::make_shared<Capture>();
  capture->id = ++ids;
  capture->graph = std::make_unique<CUgraph_st>();
  capture->members.push_back({shared(stream), true});
  const std::scoped_lock lock(stream->mutex, global_mutex);
  if (stream->capture) return told(cudaErrorIllegalState);
  all_captures.push_back(capture);
  if (mode != cudaStreamCaptureModeRelaxed) own_captures.push_back(capture);
  if (mode == cudaStreamCaptureModeGlobal) global_captures.push_back(capture);
  stream->capture = std::move(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  std::shared_ptr<Capture> capture;
  {
    const std::lock_guard lock(stream->mutex);
    capture = stream->capture;
  }
  if (!capture) return told(cudaErrorIllegalState);
  if (capture->members.front().stream.get() != stream) return told(cudaErrorStreamCaptureUnmatched);
  bool whole = true;
  for (const Capture::Member& member : capture->members) {
    const std::lock_guard lock(member.stream->mutex);
    member.stream->capture = nullptr;
    whole = whole && (member.joined || member.stream.get() == stream);
  }
  remove(own_captures, capture);
  const std::lock_guard lock(global_mutex);
  remove(global_captures, capture);
  remove(all_captures, capture);
  if (!capture->valid) return told(cudaErrorStreamCaptureInvalidated);
  if (!whole) return told(cudaErrorStreamCaptureUnjoined);
  capture->graph->nodes = std::move(capture->nodes);
  *graph = capture->graph.release();
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, interaction);
  return cudaSuccess;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  auto asked = static_cast<cudaStreamCaptureMode>(*mode);
  cudaThreadExchangeStreamCaptureMode(&asked);
  *mode = static_cast<CUstreamCaptureMode>(asked);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  cudaStreamCaptureStatus found{};
  cudaStreamGetCaptureInfo(stream, &found, nullptr, nullptr, nullptr, nullptr, nullptr);
  *status = static_cast<CUstreamCaptureStatus>(found);
  return CUDA_SUCCESS;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t named, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                     std::size_t*) {
  CUstream_st& stream = *meant(named);
  const std::lock_guard lock(stream.mutex);
  *status = cudaStreamCaptureStatusNone;
  if (!stream.capture) return cudaSuccess;
  *status =
      stream.capture->valid ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
  if (id != nullptr) *id = stream.capture->id;
  if (graph != nullptr) *graph = stream.capture->graph.get();
  return cudaSuccess;
}
