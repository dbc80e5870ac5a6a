// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <numeric>

#include "tools/perf/nic_traffic.hpp"

namespace gdrx::perf {
namespace {

using SteadyClock = std::chrono::steady_clock;

class Exchange {
 public:
  Exchange(Session& session, const NicPerfOptions& options, std::size_t bytes)
      : session_(session), options_(options), bytes_(bytes) {}

  /// Microseconds of one: there, or there and back and halved.
  Result<double> once(std::uint8_t round) {
    const auto start = SteadyClock::now();
    if (options_.test == Test::read_lat) {
      GDRX_TRY(post(true, IBV_WR_RDMA_READ));
      GDRX_TRY(completion(true, start));
      return micros(start);
    }
    if (session_.far->host_data() == nullptr) {
      GDRX_TRY(post(true, IBV_WR_RDMA_WRITE));
      GDRX_TRY(completion(true, start));
      return micros(start);
    }
    const std::size_t half = session_.near->size() / 2;
    session_.near->host_data()[bytes_ - 1] = std::byte{round};
    GDRX_TRY(post(true, IBV_WR_RDMA_WRITE));
    GDRX_TRY(arrival(session_.far->host_data() + bytes_ - 1, round, start));
    session_.far->host_data()[half + bytes_ - 1] = std::byte{round};
    GDRX_TRY(post(false, IBV_WR_RDMA_WRITE));
    GDRX_TRY(arrival(session_.near->host_data() + half + bytes_ - 1, round, start));
    const double both = micros(start);
    GDRX_TRY(completion(true, start));  // not part of the time: perftest has it so
    GDRX_TRY(completion(false, start));
    return both / 2;
  }

 private:
  static double micros(SteadyClock::time_point start) {
    return std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count();
  }
  bool late(SteadyClock::time_point start) const { return micros(start) > options_.deadline * 1e6; }

  Result<void> post(bool forward, ibv_wr_opcode opcode) {
    const std::size_t half = session_.near->size() / 2;
    QpPair& pair = *session_.pairs.front();
    ibv_sge piece{forward ? session_.near->address() : session_.far->address() + half,
                  static_cast<std::uint32_t>(bytes_),
                  forward ? session_.near_mr->lkey() : session_.far_mr->lkey()};
    ibv_send_wr request{};
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr =
        forward ? session_.far->address() : session_.near->address() + half;
    request.wr.rdma.rkey = forward ? session_.far_mr->rkey() : session_.near_mr->rkey();
    verbs::QueuePair& qp = forward ? *pair.here : *pair.there;
    if (const int error = qp.post(request); error != 0) {
      return fail(Errc::system, "ibv_post_send", error);
    }
    return {};
  }
  Result<void> completion(bool forward, SteadyClock::time_point start) {
    QpPair& pair = *session_.pairs.front();
    verbs::CompletionQueue& queue = forward ? *pair.here_queue : *pair.there_queue;
    for (;;) {
      ibv_wc done{};
      const int count = queue.poll({&done, 1});
      if (count < 0) return fail(Errc::system, "ibv_poll_cq failed");
      if (count > 0 && done.status == IBV_WC_SUCCESS) return {};
      if (count > 0) return fail(Errc::system, completion_problem(done));
      if (late(start)) return fail(Errc::timeout, "no completion within the deadline");
    }
  }
  /// The last byte of a message lands last: what perftest relies on too.
  Result<void> arrival(const std::byte* at, std::uint8_t round, SteadyClock::time_point start) {
    auto* seen = reinterpret_cast<const std::atomic<std::uint8_t>*>(at);
    while (seen->load(std::memory_order_acquire) != round) {
      // A completion with an error would never let it come.
      if (late(start)) return fail(Errc::timeout, "a write did not arrive within the deadline");
      // A driver in software moves packets when it is polled or when the CPU is free.
    }
    return {};
  }

  Session& session_;
  const NicPerfOptions& options_;
  std::size_t bytes_;
};

}  // namespace

Result<NicPerfRow> run_latency(Session& session, const NicPerfOptions& options, std::size_t bytes) {
  Exchange exchange(session, options, bytes);
  const auto count = static_cast<std::size_t>(options.iterations > 0 ? options.iterations : 1000);
  std::vector<double> times;
  times.reserve(count);
  const auto start = SteadyClock::now();
  const std::size_t warm_up = std::min<std::size_t>(count / 10 + 1, 100);
  for (std::size_t i = 0; i < count + warm_up; ++i) {
    const double time = GDRX_TRY(exchange.once(static_cast<std::uint8_t>(i % 250 + 1)));
    if (i >= warm_up) times.push_back(time);
    const double passed = std::chrono::duration<double>(SteadyClock::now() - start).count();
    if (options.duration > 0 && passed > options.duration && !times.empty()) break;
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  NicPerfRow row;
  row.bytes = bytes;
  row.iterations = times.size();
  row.least = times.front();
  row.typical = at(0.5);
  row.mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  row.p99 = at(0.99);
  row.p999 = at(0.999);
  row.most = times.back();
  return row;
}

}  // namespace gdrx::perf
