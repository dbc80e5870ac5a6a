// SPDX-License-Identifier: Apache-2.0
// How what a GPU runs ends: memory that nobody waited for, errors, the end of the group.
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "engine.hpp"
#include "gpu.hpp"

namespace gdrx_torch {
namespace {

constexpr std::chrono::microseconds kLookAtEnd{100};

}  // namespace

void Gpu::shelve(c10::Event event, std::vector<at::Tensor> tensors, bool captured) noexcept {
  const std::lock_guard lock(lock_);
  shelf_.push_back({std::move(event), std::move(tensors), captured});
}

// No thread of ours looks at events: whoever calls next does. A graph that is recorded now may
// still need what its calls left here.
void Gpu::free_shelf(const c10::Stream& stream) {
  std::vector<Shelved> done;  // goes without a lock: a tensor may be the last of its kind
  const std::lock_guard lock(lock_);
  if (shelf_.empty() || is_captured(stream)) return;
  const BesideCaptures relaxed;
  while (!shelf_.empty() && (shelf_.front().captured || shelf_.front().event.query())) {
    done.push_back(std::move(shelf_.front()));
    shelf_.pop_front();
  }
}

std::string Gpu::failure() {
  gdrxComm_t failed = nullptr;
  gdrxResult_t result = gdrxSuccess;
  {
    const std::lock_guard lock(lock_);
    if (!failure_.empty()) return failure_;
    for (const auto& [peer, comm] : comms_) {
      gdrxResult_t error = gdrxSuccess;
      gdrxCommGetAsyncError(comm.handle, &error);
      if (error != gdrxSuccess) std::tie(failed, result) = std::pair(comm.handle, error);
    }
    if (failed == nullptr) return {};
  }
  const std::lock_guard launching(launching_);
  const std::lock_guard lock(lock_);
  if (failure_.empty() && !left_) failure_ = why(result, failed);
  return failure_;
}

Waits Gpu::waits() {
  const std::lock_guard looking(looking_);
  std::map<int, gdrxComm_t> handles;
  {
    const std::lock_guard lock(lock_);
    if (!failure_.empty()) return {};
    for (const auto& [peer, comm] : comms_) handles.emplace(peer, comm.handle);
  }
  Waits all;
  for (const auto& [peer, handle] : handles) {
    Waits waits = waits_of(handle, peer == kAll ? meeting_.size : 2);
    if (peer != kAll && !waits.late.empty()) {
      waits.late = {peer};
      waits.text = "messages: a kernel on the GPU waits for rank " + std::to_string(peer);
    }
    all.add(waits);
  }
  return all;
}

void Gpu::abort() {
  const std::lock_guard lock(lock_);
  for (const auto& [peer, comm] : comms_) gdrxCommAbort(comm.handle);
}

// The calls of a communicator are in order, so all are before what the last one's stream has now.
bool Gpu::settle(Clock::time_point until) {
  try {
    const BesideCaptures relaxed;
    const c10::DeviceGuard guard(*device_);
    c10::Event all(device_->type());
    all.record(*last_);
    while (!all.query()) {
      for (const auto& [peer, comm] : comms_) {
        gdrxResult_t error = gdrxSuccess;
        gdrxCommGetAsyncError(comm.handle, &error);
        if (error != gdrxSuccess) return true;  // it has an end already
      }
      if (Clock::now() >= until) return false;
      std::this_thread::sleep_for(kLookAtEnd);
    }
  } catch (const c10::Error&) {  // the GPU itself is of no more use
    return false;
  }
  return true;
}

void Gpu::shutdown(Milliseconds grace) {
  if (getpid() != process_) return;
  if (grace.count() == 0) abort();
  std::map<int, Comm> ending;
  {
    const std::lock_guard launching(launching_);
    if (std::exchange(left_, true)) return;
    if (last_ && grace.count() > 0 && !settle(Clock::now() + grace)) abort();
    const std::lock_guard lock(lock_);
    ending.swap(comms_);
  }
  {
    const std::lock_guard looking(looking_);
    for (const auto& [peer, comm] : ending) gdrxCommDestroy(comm.handle);
  }
  std::deque<Shelved> shelf;
  const std::lock_guard lock(lock_);
  shelf.swap(shelf_);
}

}  // namespace gdrx_torch
