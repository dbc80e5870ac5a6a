// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/gpu/device_wait.hpp"
#include "collectives/gpu/driver.hpp"
#include "collectives/gpu/early_starts.hpp"
#include "collectives/gpu/held.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx::gpu {

class CudaPath final : public Path {
 public:
  static Result<std::unique_ptr<Path>> create(int device, std::uint64_t timeout_ns);
  ~CudaPath() override;

  const Ticket& ticket() const noexcept override { return ticket_; }
  Result<void> connect(std::span<const Ticket> tickets, Rank self) override;
  void all_connected() noexcept override { held_->met = true; }
  void all_left() noexcept override { held_->together = true; }
  Result<void> launch(const Work& what, const Shape& shape, void* stream) override;
  Result<void> move(const Moves& what, int blocks, void* stream) override;
  Result<std::byte*> products() override;
  Result<void> scale(const Scaling& what, void* stream) override;
  Result<void> exchange(const Messages& what, int blocks) override;
  Result<void> check_buffers(const void* input, const void* output) const override;
  void* own_stream() const noexcept override { return held_->own_stream; }
  Result<bool> is_captured(void* stream) const override;
  Result<void> check_launch(void* stream) const override;
  Result<std::uint64_t> capture_of_all(std::span<void* const> streams) const override;
  Result<void> check_mark(void* stream) const override;
  Result<std::unique_ptr<Event>> mark(void* stream) override;
  Result<void> finish(Deadline deadline) override;
  void close() noexcept override { held_->close(); }
  Result<void> synchronize(void* stream) override;
  Result<std::unique_ptr<ExportedMemory>> offer(void* memory, std::uint64_t bytes) override;
  Result<WindowId> open_window(std::span<const Blob> tickets, Deadline deadline) override;
  void close_window(WindowId window) noexcept override;
  bool reaches(const void* input, const void* output, std::uint64_t bytes) const noexcept override;
  Result<std::unique_ptr<Memory>> allocate(std::uint64_t bytes) override;
  KernelError kernel_error() const noexcept override;
  KernelWaits kernel_waits() const noexcept override;
  Result<std::unique_ptr<Timer>> timer(std::uint32_t slots) override;
  void abort() noexcept override;
  Result<std::span<std::byte>> rail_memory(std::uint64_t bytes) override;
  Result<void> combine(const HostSum& what, void* stream) override;
  Result<void> step_flags(const FlagStep& step, void* stream) override;
  Result<bool> relay(const Work& what, const Relay& between, void* stream) override;
  Result<std::span<std::byte>> staging(std::uint64_t bytes) override;
  Result<std::span<std::byte>> pinned(std::uint64_t bytes) override;
  Result<void> stage(const Staged& what) override;
  Flags& flags() noexcept override { return *held_->flags; }
  std::uint64_t memory() const noexcept override {
    return kArenaBytes + (has_products_ ? kProductBytes : 0);
  }
  const std::string& device_name() const noexcept override { return gpu_.name; }
  std::string pci_folder() const override { return gpu_.pci_folder; }

 private:
  CudaPath() = default;
  /// The stream of a call, and the capture in which it was made; 0: none.
  struct Last {
    cudaStream_t stream = nullptr;
    unsigned long long capture = 0;
    bool launched = false;
    EarlyStarts starts{};
    std::weak_ptr<GpuShare::Kept> kept{};  // by the graph that comes of it
  };
  Result<Last*> follow(cudaStream_t stream);  // the launch's own, as the next
  Result<Last*> follow(cudaStream_t stream, unsigned long long capture);
  /// The launch that one into `stream` has to wait for by an event; null: none.
  Result<const Last*> ahead_of(cudaStream_t stream, unsigned long long capture) const;
  Result<void> watch(cudaStream_t stream, unsigned long long capture);
  Result<void> join(cudaStream_t from, cudaStream_t to);
  static Result<unsigned long long> together(std::span<void* const> streams);
  Result<Last*> join_all(std::span<void* const> streams, unsigned long long capture);
  Result<void> leave_all(std::span<void* const> streams);
  Result<void> await_staged(Deadline deadline, const std::function<bool()>& gives_up);
  Result<void> launch_exchange(const Messages& what, int blocks, Last& last);
  Result<void> launch_in_slots(const MoveCall& call, bool adds, int blocks, Last& last);
  void join_gpu(std::span<const Ticket> tickets);
  /// Blocks of the GPU that carry a kernel of so many.
  struct Taken {
    int blocks = 1;
    bool crowded = false;  // nothing may be set up early
  };
  /// `least`: fewer cannot carry it.
  Taken take_share(int blocks, int least, Last& last);
  void keep(int blocks, bool crowded, Last& last);
  bool has_graphs() const noexcept;
  Result<void> copy(const void* input, void* output, std::uint64_t bytes, const Last& place);
  std::uint64_t timeout_of(const std::optional<std::chrono::milliseconds>& timeout) const noexcept;
  Result<void> check_capture() const;
  Result<void> check_buffer(const DriverApi& driver, const void* buffer) const;

  int device_ = 0;
  struct {
    std::string name;
    std::string pci_folder;
  } gpu_;
  Ticket ticket_;
  std::uint64_t timeout_ns_ = 0;  // of what has none of its own
  DirectCall call_;               // what no call changes is set by connect()
  std::unique_ptr<Held> held_;
  Last eager_, captured_;
  int sharing_ = 1;             // ranks of the communicator on this GPU
  std::uint64_t launches_ = 0;  // not into captures
  std::uint64_t staged_ = 0;    // of them, those before the last mark of stage()'s
  std::shared_ptr<std::atomic<std::uint64_t>> ended_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);  // of them, as far as a Event has told
  bool whole_device_ = false;     // more may run: of several captures, or what memory is for
  std::span<std::byte> staging_;  // the largest that there is
  std::atomic<bool> has_products_ = false;
  DeviceWait wait_;
};

}  // namespace gdrx::gpu
