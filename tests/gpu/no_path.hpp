// SPDX-License-Identifier: Apache-2.0
// A path between GPUs that can do nothing: made-up ones override what their test is about.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "collectives/gpu/path.hpp"

namespace gdrx::gpu {

class NoPath : public Path {
 public:
  const Ticket& ticket() const noexcept override { return ticket_; }
  Result<void> connect(std::span<const Ticket>, Rank) override { return {}; }
  void all_connected() noexcept override {}
  void all_left() noexcept override {}
  Result<void> launch(const Work&, const Shape&, void*) override { return {}; }
  Result<void> move(const Moves&, int, void*) override { return {}; }
  Result<std::byte*> products() override { return cannot(); }
  Result<void> scale(const Scaling&, void*) override { return {}; }
  Result<void> exchange(const Messages&, int) override { return {}; }
  Result<void> check_buffers(const void*, const void*) const override { return {}; }
  void* own_stream() const noexcept override { return nullptr; }
  Result<bool> is_captured(void*) const override { return false; }
  Result<void> check_launch(void*) const override { return {}; }
  Result<std::uint64_t> capture_of_all(std::span<void* const>) const override { return 0; }
  Result<void> check_mark(void*) const override { return {}; }
  Result<std::unique_ptr<Event>> mark(void*) override { return cannot(); }
  Result<void> finish(Deadline) override { return {}; }
  void close() noexcept override {}
  Result<void> synchronize(void*) override { return {}; }
  Result<std::unique_ptr<ExportedMemory>> offer(void*, std::uint64_t) override { return cannot(); }
  Result<WindowId> open_window(std::span<const Blob>, Deadline) override { return cannot(); }
  void close_window(WindowId) noexcept override {}
  bool reaches(const void*, const void*, std::uint64_t) const noexcept override { return false; }
  Result<std::unique_ptr<Memory>> allocate(std::uint64_t) override { return cannot(); }
  KernelError kernel_error() const noexcept override { return {}; }
  Result<std::unique_ptr<Timer>> timer(std::uint32_t) override { return cannot(); }
  void abort() noexcept override {}
  Result<std::span<std::byte>> rail_memory(std::uint64_t) override { return cannot(); }
  Result<void> combine(const HostSum&, void*) override { return cannot(); }
  Result<void> step_flags(const FlagStep&, void*) override { return cannot(); }
  Result<bool> relay(const Work&, const Relay&, void*) override { return false; }
  Result<std::span<std::byte>> staging(std::uint64_t) override { return cannot(); }
  Result<std::span<std::byte>> pinned(std::uint64_t) override { return cannot(); }
  Result<void> stage(const Staged&) override { return cannot(); }
  Flags& flags() noexcept override { return flags_; }
  std::uint64_t memory() const noexcept override { return 0; }
  const std::string& device_name() const noexcept override { return name_; }

 protected:
  Ticket ticket_;
  Flags flags_{};

 private:
  static tl::unexpected<Error> cannot() { return fail(Errc::unsupported, "a made-up path"); }
  std::string name_ = "made up";
};

}  // namespace gdrx::gpu
