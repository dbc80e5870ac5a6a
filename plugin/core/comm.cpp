// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/comm.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>

namespace gdrx::net {
namespace {

constexpr std::size_t kMaxComms = 1 << 16;
constexpr std::uint32_t kLookEvery = 4096;  // idle tests between two looks at the peer
constexpr std::uint32_t kTestsOfANap = 128;
// A peer that closes has sent everything before; what is still on the way gets this long.
constexpr Duration kGrace = std::chrono::milliseconds(500);

std::array<std::atomic<Comm*>, kMaxComms> table{};
std::array<std::atomic<const DeviceContext*>, kMaxComms> owners{};
std::mutex table_mutex;
std::size_t next_index = 1;  // 0 is no communicator

}  // namespace

Comm* find_comm(std::uint16_t index) noexcept {
  return table[index].load(std::memory_order_acquire);  // pairs with enter(): a whole object
}

Comm* find_comm_of(const DeviceContext& device_context, std::uint16_t index) noexcept {
  // The owner first: a communicator of another device context may be going away at this moment.
  if (owners[index].load(std::memory_order_acquire) != &device_context) return nullptr;
  return find_comm(index);
}

namespace {

Result<std::uint16_t> take_index(Comm* comm, const DeviceContext* device_context) {
  const std::lock_guard lock(table_mutex);
  // Round and round, so that what is late for a closed communicator finds nobody.
  for (std::size_t tried = 1; tried < kMaxComms; ++tried) {
    const std::size_t index = next_index;
    next_index = next_index + 1 == kMaxComms ? 1 : next_index + 1;
    if (table[index].load(std::memory_order_relaxed) != nullptr) continue;
    table[index].store(comm, std::memory_order_release);
    owners[index].store(device_context, std::memory_order_release);
    return static_cast<std::uint16_t>(index);
  }
  return fail(Errc::unsupported, "too many connections are open in this process: 65535 numbers");
}

void give_back(std::uint16_t index) noexcept {
  if (index == 0) return;
  owners[index].store(nullptr, std::memory_order_release);
  table[index].store(nullptr, std::memory_order_release);
}

}  // namespace

Result<void> Comm::enter() {
  index_ = GDRX_TRY(take_index(this, device_context_.get()));
  return {};
}

Result<std::uint16_t> Comm::enter_again() {
  second_index_ = GDRX_TRY(take_index(this, device_context_.get()));
  return second_index_;
}

Comm::~Comm() {
  if (counters_ != nullptr) stats::give_back(*counters_);
  give_back(index_);
  give_back(second_index_);
}

Error& Comm::break_with(Error error) {
  if (!error_) {
    device_context_->log().warn("{}", describe(error));
    dump();
    error_ = std::move(error);
  }
  return *error_;
}

void Comm::dump() const {
  device_context_->account();
  device_context_->log().info(
      "{} (peer {}, {} open requests, {} messages and {} bytes before; {}: {})", state(),
      peer_name_, open_, counters_ == nullptr ? 0 : counters_->messages.get(),
      counters_ == nullptr ? 0 : counters_->bytes.get(), device_context_->fabric(),
      device_context_->device().describe());
}

Result<void> Comm::healthy() const {
  if (error_) return tl::unexpected(*error_);
  if (endpoint_ != nullptr && endpoint_->error() != nullptr) {
    const Error& why = *endpoint_->error();  // names the peer by a number of its device context
    return fail(why.code, fmt::format("the peer {} is lost: {}", peer_name_, why.what), why.native);
  }
  return {};
}

Result<void> Comm::read_channel() {
  if (!channel_) return {};
  GDRX_TRY(channel_->push());
  while (const auto frame = GDRX_TRY(channel_->pull())) GDRX_TRY(on_frame(*frame));
  return {};
}

void Comm::tell(std::span<const std::byte> payload) {
  if (!channel_) return;
  channel_->say(FrameKind::data, payload);
  (void)channel_->push();  // a peer that is gone is noticed by look_at_peer()
}

void Comm::count_as(stats::Way way) {
  counters_ = &stats::take(way, index_, peer_name_, device_context_->device_name(),
                           device_context_->fabric() + ": " + endpoint_->describe());
}

void Comm::begun(Instant* at) noexcept {
  *at = steady_clock().now();
  device_context_->stir();
  counters_->open.set(++open_);
}

void Comm::ended(Instant at, Bytes bytes, bool small) noexcept {
  const auto took = static_cast<std::uint64_t>((steady_clock().now() - at).count());
  counters_->latency[stats::bucket_of(took)].add(1);
  counters_->open.set(--open_);
  counters_->messages.add(1);
  counters_->bytes.add(bytes);
  if (small) counters_->small.add(1);
}

Result<void> Comm::look_at_peer() {
  idle_ += device_context_->nap() ? kTestsOfANap : 1;
  if (idle_ < kLookEvery) return {};
  idle_ = 0;
  device_context_->account();
  const Instant now = steady_clock().now();
  if (!still_since_) {
    still_since_ = now;
    next_report_ = now + device_context_->config().net_stall;
  } else if (now >= next_report_) {
    next_report_ = now + 2 * (now - *still_since_);
    if (counters_ != nullptr) counters_->stalls.add(1);
    device_context_->log().warn("nothing has moved for {:.1f} s: {} (peer {}, {} over {})",
                                std::chrono::duration<double>(now - *still_since_).count(), state(),
                                peer_name_, device_context_->fabric(), endpoint_->describe());
  }
  if (!gone_since_) {
    const auto read = read_channel();
    if (!read && read.error().code == Errc::protocol) {
      return tl::unexpected(break_with(read.error()));
    }
    if (!read) gone_since_ = now;
    return {};
  }
  if (now - *gone_since_ < kGrace) return {};
  return tl::unexpected(break_with(
      Error{Errc::peer_lost, "the peer " + peer_name_ + " has closed or died with requests open"}));
}

}  // namespace gdrx::net
