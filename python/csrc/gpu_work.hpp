// SPDX-License-Identifier: Apache-2.0
// A call that a GPU runs, as PyTorch sees it.
#pragma once

#include <optional>
#include <string>

#include "device.hpp"
#include "work.hpp"

namespace gdrx_torch {

class Gpu;
class Place;

/// In the caller's stream it holds nothing and waits for nothing. In a stream of the group's it
/// keeps the tensors until somebody waits: that is a word between streams, and blocks no thread.
class GpuWork : public c10d::Work {
 public:
  GpuWork(std::shared_ptr<Gpu> gpu, int rank, Call call, std::uint64_t number);
  ~GpuWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(Milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  void abort() override;
  std::vector<at::Tensor> result() override { return call.outputs; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return number_; }

  /// All of it is in the stream.
  void begun(const Place& place);
  /// The thread that waits is blocked until it is done, as a barrier's.
  void block_host() { blocks_host_ = true; }

  Call call;  // before it is begun

 private:
  bool reached();
  void wait_here(Milliseconds timeout);
  void check_begun() const;
  void rethrow_failure();

  std::shared_ptr<Gpu> gpu_;
  const std::uint64_t number_;
  std::optional<c10::Stream> stream_;
  std::optional<c10::Event> event_;  // behind it; none in the caller's stream
  bool captured_ = false, blocks_host_ = false;
  std::atomic<bool> reached_{false};
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace gdrx_torch
