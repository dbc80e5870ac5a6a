// SPDX-License-Identifier: Apache-2.0
// This rank's end of one connected endpoint: its memory, the words that the peer writes into it,
// and waiting with a deadline.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "gdrx/clock.hpp"
#include "gdrx/transport.hpp"
#include "mpi-tests/net_perf/options.hpp"

namespace gdrx::net_perf {

/// Of a write whose completion says nothing to anybody.
inline constexpr std::uint64_t kNoCookie = ~std::uint64_t{0};

/// What the peer's NIC writes at the start of our memory. Counts since the pair was made.
struct Words {
  std::uint64_t received = 0;  // of our messages, by the peer
  std::uint64_t total = 0;     // messages of the peer when it has sent its last one of a row
};

class Pair {
 public:
  /// Two ranks of MPI_COMM_WORLD, at the same time. `area` bytes to send from and as many to
  /// receive into.
  static Result<std::unique_ptr<Pair>> open(const Options& options, int rank, std::uint64_t area);

  int rank() const noexcept { return rank_; }
  std::span<std::byte> source() noexcept { return region_->bytes().subspan(kWords, area_); }
  std::span<std::byte> target() noexcept { return region_->bytes().subspan(kWords + area_, area_); }
  std::uint64_t peer_received() const noexcept { return load(&Words::received); }
  std::uint64_t peer_total() const noexcept { return load(&Words::total); }
  /// Messages of bandwidth rows that came, in all.
  std::uint64_t received() const noexcept { return received_; }
  void set_received(std::uint64_t count) noexcept { received_ = count; }
  std::string describe() const { return endpoint_->describe(); }

  /// Writes source()[at, at + bytes) to the same place of the peer's target().
  Result<Progress> send(std::uint64_t at, std::uint64_t bytes, std::uint16_t immediate,
                        std::uint64_t cookie);
  /// Writes our word into the peer's memory. Pending: try again.
  Result<Progress> tell(std::uint64_t Words::*word, std::uint64_t value);
  /// What completed since the last call; valid until the next.
  Result<std::span<const Completion>> poll();
  bool busy() const noexcept { return device_->busy(); }
  /// MPI_Barrier that keeps the endpoint moving. What completes meanwhile is poll()'s afterwards.
  Result<void> barrier();

  /// Called when something moved, and when nothing did: Errc::timeout after Options::timeout.
  void moved() noexcept { idle_ = 0; }
  Result<void> idle();

 private:
  static constexpr std::size_t kWords = 4096;
  Pair(int rank, std::uint64_t area, Duration limit) : rank_(rank), area_(area), limit_(limit) {}
  std::uint64_t load(std::uint64_t Words::*word) const noexcept;
  Result<void> connect(const Options& options);

  int rank_;
  std::uint64_t area_;
  Duration limit_;
  std::shared_ptr<Fabric> fabric_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<Endpoint> endpoint_;
  RemoteRegionId remote_{};
  std::array<Completion, 64> completions_{};
  std::vector<Completion> early_;  // taken by a barrier
  std::uint64_t received_ = 0;
  std::uint64_t idle_ = 0;
  Instant idle_since_{};
};

}  // namespace gdrx::net_perf
