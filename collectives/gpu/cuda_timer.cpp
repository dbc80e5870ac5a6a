// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/cuda_timer.hpp"

#include <cmath>

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/error.hpp"

namespace gdrx::gpu {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// The clocks drift apart by some 10 us a second, and cudaEventElapsedTime counts in a float of
// milliseconds: after 16 s that is a microsecond, after an hour a quarter of a millisecond.
constexpr seconds kRenewAfter{1};
// A call's launch is held up by no more than this for it; it takes some 10 us where the GPU's
// queues are free.
constexpr microseconds kRenewLimit{50};
// Before any call there is time. The first is slow: three follow.
constexpr seconds kFirstLimit{5};
constexpr int kFirstTries = 4;

/// The context for a scope. A thread that has none keeps none: cudaSetDevice() would leave it with
/// a context on the first GPU, and the mesh's thread is such a one.
class InContext {
 public:
  InContext(const DriverApi& driver, CUcontext context) noexcept
      : driver_(driver), pushed_(driver.push_context(context) == CUDA_SUCCESS) {}
  ~InContext() {
    CUcontext popped = nullptr;
    if (pushed_) driver_.pop_context(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const DriverApi& driver_;
  bool pushed_;
};

bool worked(cudaError_t status) noexcept {
  if (status != cudaSuccess) cudaGetLastError();  // not the user's next call's
  return status == cudaSuccess;
}

bool reached(const CudaEvent& event) noexcept { return worked(cudaEventQuery(event.get())); }

std::optional<Duration> between(const CudaEvent& from, const CudaEvent& to) noexcept {
  float ms = 0;
  if (!worked(cudaEventElapsedTime(&ms, from.get(), to.get()))) return std::nullopt;
  return Duration(std::llround(static_cast<double>(ms) * 1e6));
}

}  // namespace

Result<CudaEvent> CudaEvent::create() {
  cudaEvent_t event = nullptr;
  GDRX_TRY(check(cudaEventCreate(&event), "cudaEventCreate"));
  return CudaEvent(event);
}

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) cudaEventDestroy(event_);
}

Result<std::unique_ptr<Timer>> CudaTimer::create(std::uint32_t slots, cudaStream_t own,
                                                 Follow follow) {
  const DriverApi* driver = GDRX_TRY(driver_api());
  CUcontext context = nullptr;
  GDRX_TRY(check(cudaFree(nullptr), "cudaFree"));  // this thread may have had no context yet
  GDRX_TRY(check(*driver, driver->current_context(&context), "cuCtxGetCurrent"));
  std::unique_ptr<CudaTimer> timer(new CudaTimer(*driver, context, own, std::move(follow)));
  timer->slots_.reserve(slots);
  for (std::uint32_t i = 0; i < slots; ++i) {
    CudaEvent begin = GDRX_TRY(CudaEvent::create());
    CudaEvent end = GDRX_TRY(CudaEvent::create());
    timer->slots_.push_back({std::move(begin), std::move(end), nullptr});
  }
  const AnyCapture allowed;
  for (int i = 0; i < kFirstTries; ++i) {
    auto made = timer->anchored(kFirstLimit);
    if (!made) return fail(Errc::system, "the GPU reaches no event: it is busy, or has failed");
    if (!timer->anchor_ || made->precision < timer->anchor_->precision) {
      timer->anchor_ = std::move(made);
    }
  }
  timer->tried_ = timer->anchor_->at;
  timer->precision_ = timer->anchor_->precision;
  return timer;
}

CudaTimer::~CudaTimer() {
  const InContext here(driver_, context_);
  slots_.clear();
  anchor_.reset();
}

// Null: not within the limit. It asks, as waiting might wait for a kernel that shares its queue,
// and that one for a peer.
std::shared_ptr<const Anchor> CudaTimer::anchored(Duration limit) const {
  auto event = CudaEvent::create();
  if (!event) return nullptr;
  const Instant before = steady_clock().now();
  if (!worked(cudaEventRecord(event->get(), own_))) return nullptr;
  while (!reached(*event)) {
    if (steady_clock().now() - before > limit) return nullptr;
  }
  const Instant after = steady_clock().now();
  if (after - before > limit) return nullptr;  // right to more than half of it
  const Duration half = (after - before) / 2;
  return std::make_shared<const Anchor>(Anchor{std::move(*event), before + half, half});
}

void CudaTimer::renew_anchor() {
  const Instant now = steady_clock().now();
  if (now - tried_ < kRenewAfter) return;
  tried_ = now;
  if (auto renewed = anchored(kRenewLimit)) anchor_ = std::move(renewed);
}

bool CudaTimer::begin(std::uint32_t slot, void* stream) noexcept {
  const InContext here(driver_, context_);
  const AnyCapture allowed;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto capture = capture_of(on);
  if (!capture || *capture != 0 || !follow_(on)) return false;
  renew_anchor();
  slots_[slot].anchor = anchor_;
  return worked(cudaEventRecord(slots_[slot].begin.get(), on));
}

bool CudaTimer::end(std::uint32_t slot, void* stream) noexcept {
  const InContext here(driver_, context_);
  return worked(cudaEventRecord(slots_[slot].end.get(), static_cast<cudaStream_t>(stream)));
}

Timer::Times CudaTimer::read(std::uint32_t slot) noexcept {
  const Slot& timed = slots_[slot];
  const InContext here(driver_, context_);
  const AnyCapture allowed;
  Times times;
  if (!reached(timed.begin)) return times;
  const auto since = between(timed.anchor->event, timed.begin);
  if (!since) return times;
  times.begin = timed.anchor->at + *since;
  if (!reached(timed.end)) return times;
  if (const auto length = between(timed.begin, timed.end)) times.end = *times.begin + *length;
  return times;
}

}  // namespace gdrx::gpu
