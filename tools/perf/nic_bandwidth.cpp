// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "tools/perf/nic_traffic.hpp"

namespace gdrx::perf {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

/// A lane with requests on their way.
struct Stream {
  Lane lane;
  ibv_send_wr request{};
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
};

class Flood {
 public:
  Flood(const std::vector<Lane>& lanes, int ways, const NicPerfOptions& options)
      : options_(options), ways_(ways), depth_(static_cast<std::uint64_t>(options.depth)) {
    for (const Lane& lane : lanes) {
      streams_.push_back({lane, request_of(lane, opcode_of(options.test)), 0, 0});
    }
    // Completions cost; with a quarter of the depth for each, the queue never runs dry.
    const std::size_t bytes = lanes.front().piece.length;
    batch_ = bytes >= (1 << 16) ? 1 : std::max<std::uint64_t>(1, depth_ / 4);
  }

  Result<NicPerfRow> run(std::uint64_t iterations) {
    const auto start = SteadyClock::now();
    auto progress = start;
    bool stopping = false;
    for (;;) {
      bool idle = true;
      for (Stream& stream : streams_) {
        stopping |= options_.duration > 0 && seconds_since(start) > options_.duration;
        const bool more = !stopping && (options_.duration > 0 || stream.posted < iterations);
        if (more) GDRX_TRY(post(stream, options_.duration > 0 ? ~std::uint64_t{0} : iterations));
        if (GDRX_TRY(poll(stream))) progress = SteadyClock::now();
        idle &= stream.posted == stream.done && !more;
      }
      if (idle) break;
      if (seconds_since(progress) > options_.deadline) {
        return fail(Errc::timeout, "no completion within the deadline");
      }
    }
    return row(seconds_since(start));
  }

 private:
  Result<void> post(Stream& stream, std::uint64_t most) const {
    // Whole batches: the last request of each asks for a completion.
    while (stream.posted < most && stream.posted + batch_ <= stream.done + depth_) {
      const std::uint64_t count = std::min(batch_, most - stream.posted);
      for (std::uint64_t i = 0; i < count; ++i) {
        stream.request.send_flags = i + 1 == count ? unsigned{IBV_SEND_SIGNALED} : 0u;
        stream.request.wr_id = stream.posted + 1;
        stream.request.sg_list = &stream.lane.piece;
        if (const int error = stream.lane.end->qp->post(stream.request); error != 0) {
          return fail(Errc::system, "ibv_post_send", error);
        }
        ++stream.posted;
      }
    }
    return {};
  }
  Result<bool> poll(Stream& stream) {
    std::array<ibv_wc, 16> done{};
    const int count = stream.lane.end->queue->poll(done);
    if (count < 0) return fail(Errc::system, "ibv_poll_cq failed");
    for (int i = 0; i < count; ++i) {
      const ibv_wc& one = done[static_cast<std::size_t>(i)];
      if (one.status != IBV_WC_SUCCESS) return fail(Errc::system, completion_problem(one));
      for (Stream& owner : streams_) {
        if (owner.lane.end->qp->number() == one.qp_num) owner.done = one.wr_id;
      }
    }
    return count > 0;
  }
  NicPerfRow row(double seconds) const {
    std::uint64_t all = 0;
    for (const Stream& stream : streams_) all += stream.done;
    NicPerfRow row;
    row.bytes = streams_.front().lane.piece.length;
    row.iterations = all;
    row.messages = static_cast<double>(all) / ways_ / seconds;
    row.gigabits = row.messages * static_cast<double>(row.bytes) * 8 / 1e9;
    return row;
  }

  const NicPerfOptions& options_;
  int ways_;
  std::uint64_t depth_;
  std::uint64_t batch_;
  std::vector<Stream> streams_;
};

}  // namespace

Result<NicPerfRow> run_bandwidth(const std::vector<Lane>& lanes, int ways,
                                 const NicPerfOptions& options) {
  constexpr std::uint64_t kMessages = 5000;
  const auto wanted = static_cast<std::uint64_t>(options.iterations);
  return Flood(lanes, ways, options).run(options.iterations > 0 ? wanted : kMessages);
}

}  // namespace gdrx::perf
