// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/bench/bench.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "net-conformance/bench/pump.hpp"
#include "net-conformance/driver/link.hpp"
#include "net-conformance/driver/region.hpp"

namespace gdrx::conformance {

namespace {

using Microseconds = std::chrono::duration<double, std::micro>;
constexpr std::chrono::microseconds kPoll{0};

/// One direction each, and the leader's word that goes before a measurement.
struct Pair {
  Comm send, recv;
};

Result<Pair> open(Session& session, Channel& channel, bool leads) {
  Handle mine, theirs;
  const Comm listener = GDRX_TRY(listen(session, mine));
  GDRX_TRY(channel.send(mine.bytes));
  theirs.bytes = GDRX_TRY(channel.receive<decltype(theirs.bytes)>(g_patience));
  Pair pair;
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  while (!pair.send || !pair.recv) {
    if (!pair.send) pair.send = GDRX_TRY(try_connect(session, theirs));
    if (!pair.recv) pair.recv = GDRX_TRY(try_accept(session, listener));
    if (deadline.passed(steady_clock().now())) {
      return fail(Errc::timeout, leads ? "the leader does not connect" : "does not connect");
    }
  }
  return pair;
}

double cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

std::size_t scaled(std::size_t bytes, std::size_t size, std::size_t least, std::size_t most,
                   double scale) {
  const std::size_t count = std::clamp(bytes / std::max<std::size_t>(size, 1), least, most);
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(count) * scale));
}

Result<void> meet(Channel& channel) {
  GDRX_TRY(channel.send('.'));
  GDRX_TRY(channel.receive<char>(std::chrono::minutes(2)));
  return {};
}

/// Round trips; half of each in us.
Result<std::vector<double>> ping_pong(const End& send, const End& recv, bool leads,
                                      std::size_t size, std::size_t count) {
  std::vector<double> halves;
  halves.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Instant start = steady_clock().now();
    GDRX_TRY(pump(leads ? send : recv, size, 1, 1, kPoll));
    GDRX_TRY(pump(leads ? recv : send, size, 1, 1, kPoll));
    halves.push_back(Microseconds(steady_clock().now() - start).count() / 2);
  }
  return halves;
}

double quantile(std::vector<double>& values, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
  return values[at];
}

struct Flow {
  double us;
  double cpu_us;
};

/// One way, from the leader; ended by a message the other way.
Result<Flow> one_way(const End& send, const End& recv, bool leads, std::size_t size,
                     std::size_t count, const BenchOptions& options) {
  const double cpu = cpu_us();
  const Instant start = steady_clock().now();
  GDRX_TRY(pump(leads ? send : recv, size, count, options.window, options.nap));
  GDRX_TRY(pump(leads ? recv : send, 1, 1, 1, options.nap));
  return Flow{Microseconds(steady_clock().now() - start).count(), cpu_us() - cpu};
}

Result<Point> measure(const End& send, const End& recv, Channel& channel, bool leads,
                      std::size_t size, const BenchOptions& options) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  const std::size_t trips = scaled(kBytes / 4, size, 20, 2000, options.scale);
  const std::size_t count = scaled(kBytes, size, 40, 20'000, options.scale);
  const std::size_t warm = std::min<std::size_t>(20, count / 4 + 1);
  std::vector<double> halves = {0};
  if (options.latency) {
    GDRX_TRY(ping_pong(send, recv, leads, size, warm));
    GDRX_TRY(meet(channel));
    halves = GDRX_TRY(ping_pong(send, recv, leads, size, trips));
  }
  GDRX_TRY(one_way(send, recv, leads, size, warm, options));
  GDRX_TRY(meet(channel));
  const Flow flow = GDRX_TRY(one_way(send, recv, leads, size, count, options));
  GDRX_TRY(channel.send(flow.cpu_us));
  const double other_cpu = GDRX_TRY(channel.receive<double>(std::chrono::minutes(2)));
  const auto messages = static_cast<double>(count);
  Point point;
  point.size = size;
  point.latency_us = quantile(halves, 0.5);
  point.latency_p99 = quantile(halves, 0.99);
  point.gigabytes_s = static_cast<double>(size) * messages / flow.us / 1e3;
  point.messages_s = messages / flow.us * 1e6;
  point.send_cpu_us = flow.cpu_us / messages;
  point.recv_cpu_us = other_cpu / messages;
  return point;
}

}  // namespace

Result<void> bench(Session& session, Channel& channel, bool leads, const BenchOptions& options,
                   const std::function<void(const Point&)>& report) {
  GDRX_TRY(session.init());
  const Pair pair = GDRX_TRY(open(session, channel, leads));
  const std::size_t largest = *std::ranges::max_element(options.sizes);
  const std::size_t room = (largest / 4096 + 1) * 4096 * options.window;
  const Region from = GDRX_TRY(Region::make(session, pair.send.get(), room));
  const Region to = GDRX_TRY(Region::make(session, pair.recv.get(), room));
  const End send{&session, pair.send.get(), &from, true, options.same_buffer};
  const End recv{&session, pair.recv.get(), &to, false, options.same_buffer};
  for (const std::size_t size : options.sizes) {
    const Point point = GDRX_TRY(measure(send, recv, channel, leads, size, options));
    if (leads) {
      report(point);
    }
  }
  return meet(channel);
}

}  // namespace gdrx::conformance
