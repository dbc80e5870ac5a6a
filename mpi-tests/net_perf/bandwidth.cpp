// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "mpi-tests/net_perf/measure.hpp"

namespace gdrx::net_perf {
namespace {

constexpr std::chrono::milliseconds kLook{100};  // between looks for Options::until
constexpr std::uint64_t kArea = 32U << 20;

// A message's bytes follow from its number: what came late, twice or elsewhere is seen.
void fill(std::span<std::byte> bytes, std::uint64_t number) {
  std::uint64_t word = number * 0x9e3779b97f4a7c15 + 1;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8, word += 0x0101010101010101) {
    std::memcpy(&bytes[at], &word, 8);
  }
  std::memcpy(bytes.data() + at, &word, bytes.size() - at);
}

// Both directions of a row, by this rank's share of them.
class Stream {
 public:
  Stream(Pair& pair, const Options& options, std::uint64_t bytes)
      : pair_(pair),
        bytes_(bytes),
        slots_(slots_of(options, bytes)),
        verify_(options.verify),
        until_(options.until),
        sends_(pair.rank() == 0 || options.bidirectional),
        receives_(pair.rank() == 1 || options.bidirectional),
        busy_(slots_, false),
        expected_(options.verify ? bytes : 0),
        start_sent_(pair.peer_received()),
        sent_(start_sent_) {}

  Result<Bandwidth> run(std::uint64_t messages, double seconds, std::uint64_t received_before) {
    start_received_ = received_ = told_ = received_before;
    const Instant begin = steady_clock().now();
    Instant acknowledged = begin;
    while (!finished()) {
      if (GDRX_TRY(step())) {
        pair_.moved();
      } else if (auto waited = pair_.idle(); !waited) {
        return fail(waited.error().code,
                    fmt::format("{}: {} messages sent, {} of them there, {} unfinished here; {} "
                                "received of {}, {} told",
                                waited.error().what, sent_, pair_.peer_received(), unfinished_,
                                received_, pair_.peer_total(), told_));
      }
      const bool enough = seconds > 0 ? is_over(begin, seconds) : sent_ >= start_sent_ + messages;
      if (sends_ && enough && !stopped_) stopped_ = true;
      if (stopped_ && pair_.peer_received() == sent_ && acknowledged == begin) {
        acknowledged = steady_clock().now();
      }
    }
    Bandwidth row;
    row.messages = sent_ - start_sent_;
    row.seconds = std::chrono::duration<double>(acknowledged - begin).count();
    row.received = received_ - start_received_;
    row.wrong = wrong_;
    return row;
  }
  std::uint64_t received() const noexcept { return received_; }

 private:
  bool is_over(Instant begin, double seconds) {
    const Instant now = steady_clock().now();
    if (std::chrono::duration<double>(now - begin).count() >= seconds) return true;
    if (until_.empty() || now < next_look_) return false;
    next_look_ = now + kLook;
    return access(until_.c_str(), F_OK) == 0;
  }
  bool finished() const noexcept {
    const bool sent = !sends_ || (announced_ && pair_.peer_received() == sent_ && all_free());
    const bool received = !receives_ || (pair_.peer_total() > start_received_ &&
                                         received_ == pair_.peer_total() && told_ == received_);
    return sent && received;
  }
  bool all_free() const noexcept { return unfinished_ == 0; }

  // True if anything moved.
  Result<bool> step() {
    bool any = false;
    if (sends_) any = GDRX_TRY(send()) || any;
    for (const Completion& done : GDRX_TRY(pair_.poll())) {
      any = true;
      if (done.kind == CompletionKind::immediate) {
        GDRX_TRY(take(done.immediate));
      } else if (done.cookie < slots_) {
        busy_[done.cookie] = false;
        --unfinished_;
      }
    }
    if (receives_) any = GDRX_TRY(tell()) || any;
    return any;
  }

  Result<bool> send() {
    bool any = false;
    while (!stopped_ && sent_ - pair_.peer_received() < slots_ && !busy_[sent_ % slots_]) {
      const std::uint64_t slot = sent_ % slots_;
      if (verify_) fill(pair_.source().subspan(slot * bytes_, bytes_), sent_);
      if (GDRX_TRY(pair_.send(slot * bytes_, bytes_, static_cast<std::uint16_t>(sent_), slot)) ==
          Progress::pending) {
        return any;
      }
      busy_[slot] = true;
      ++unfinished_;
      ++sent_;
      any = true;
      break;  // completions between two messages
    }
    if (stopped_ && !announced_) {
      announced_ = GDRX_TRY(pair_.tell(&Words::total, sent_)) == Progress::done;
      any = any || announced_;
    }
    return any;
  }

  Result<void> take(std::uint32_t immediate) {
    if (immediate != static_cast<std::uint16_t>(received_)) {
      return fail(Errc::protocol, "a message came out of turn");
    }
    if (verify_) {
      const auto place = pair_.target().subspan(received_ % slots_ * bytes_, bytes_);
      fill(expected_, received_);
      if (std::memcmp(place.data(), expected_.data(), bytes_) != 0) ++wrong_;
    }
    ++received_;
    return {};
  }

  Result<bool> tell() {
    const bool last = pair_.peer_total() == received_;
    const std::uint64_t due = last ? 1 : std::max<std::uint64_t>(1, slots_ / 4);
    if (received_ - told_ < due) return false;
    const std::uint64_t now = received_;
    if (GDRX_TRY(pair_.tell(&Words::received, now)) == Progress::pending) return false;
    told_ = now;
    return true;
  }

  Pair& pair_;
  std::uint64_t bytes_;
  std::uint64_t slots_;
  bool verify_;
  std::string until_;
  Instant next_look_{};
  bool sends_;
  bool receives_;
  std::vector<char> busy_;  // sources that the NIC may still read
  std::vector<std::byte> expected_;
  std::uint64_t unfinished_ = 0;
  std::uint64_t start_sent_;
  std::uint64_t sent_;
  std::uint64_t start_received_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t told_ = 0;
  std::uint64_t wrong_ = 0;
  bool stopped_ = false;
  bool announced_ = false;
};

}  // namespace

std::uint64_t slots_of(const Options& options, std::uint64_t bytes) noexcept {
  return std::clamp<std::uint64_t>(kArea / bytes, 1, options.depth);
}

Result<Bandwidth> measure_bandwidth(Pair& pair, const Options& options, std::uint64_t bytes,
                                    std::uint64_t messages, double seconds) {
  GDRX_TRY(pair.barrier());
  Stream stream(pair, options, bytes);
  const Bandwidth row = GDRX_TRY(stream.run(messages, seconds, pair.received()));
  pair.set_received(stream.received());
  GDRX_TRY(pair.barrier());
  return row;
}

}  // namespace gdrx::net_perf
