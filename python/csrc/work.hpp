// SPDX-License-Identifier: Apache-2.0
// A call in flight, as PyTorch sees it.
#pragma once

#include <gdrx/gdrx.h>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gdrx_torch {

class Engine;

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// What a call is, before it is posted.
struct Call {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = "gdrx:unknown";
  std::vector<at::Tensor> shown;    // whose shapes a profiler tells
  std::vector<at::Tensor> inputs;   // these and the outputs are kept until the call has ended
  std::vector<at::Tensor> outputs;  // the value of its future
  Milliseconds timeout{0};          // 0: the group's
  bool async = true;
  std::function<void()> after;  // copies results to where they belong; no lock is held
};

/// How often a call was made, and the bytes of this rank's tensors.
struct Counted {
  std::uint64_t count = 0, bytes = 0;
  double seconds = 0;  // from its start to its end, of those that have ended; a GPU's are not known
  void add(const Call& call);
  void add(const Counted& others) {
    count += others.count, bytes += others.bytes, seconds += others.seconds;
  }
};

class Work;
/// Where a call goes: a communicator, with a request of the work's, or a stream and no request.
struct Target {
  gdrxComm_t comm = nullptr;
  gdrxStream_t stream = gdrxStreamNone;
  Work* work = nullptr;
  bool on_gpu() const { return work == nullptr; }
  /// For the next of the call's parts.
  gdrxRequest_t* request() const;
};
/// Makes a call of gdrx, or its parts.
using Poster = std::function<void(const Target&)>;

/// dist.* may have registered the call for compiled graphs: who waits for it takes it out again.
void leave_registry(c10d::Work& work);

/// Everything but the few members marked so is used with the engine's lock held, or by the one
/// thread that found the end.
class Work : public c10d::Work {
 public:
  Work(std::shared_ptr<Engine> engine, int rank, Call call, std::uint64_t sequence);
  ~Work() override = default;

  // c10d's, for any thread.
  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(Milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  void abort() override;
  int sourceRank() const override { return source; }
  std::vector<at::Tensor> result() override { return call.outputs; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  float getDuration() const override;
  std::uint64_t getSequencenumber() const override { return sequence; }

  bool done() const { return done_.load(std::memory_order_acquire); }  // any thread
  double age(Clock::time_point now) const;                             // seconds
  /// By the thread that found the end, once, without the lock.
  void complete();

  Call call;
  std::vector<gdrxRequest_t> requests;
  std::size_t tested = 0;  // how many of them have ended
  std::string error;       // empty: none
  Clock::time_point deadline;
  std::uint64_t sequence;
  std::uint64_t recorded = 0;  // its number in the record
  Milliseconds extended{0};    // of its time limit, for this once
  int source = -1;

 private:
  void rethrow();

  std::shared_ptr<Engine> engine_;
  std::atomic<bool> done_{false};
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  Clock::time_point begun_ = Clock::now(), ended_;
};

using WorkPtr = c10::intrusive_ptr<Work>;

/// Several calls as one: what a coalescing bracket gives.
class AllWork : public c10d::Work {
 public:
  AllWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works);
  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(Milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

}  // namespace gdrx_torch
