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

/// One queue pair as a source in one direction.
struct Stream {
  verbs::QueuePair* qp = nullptr;
  verbs::CompletionQueue* queue = nullptr;
  ibv_sge piece{};
  ibv_send_wr request{};
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
};

class Flood {
 public:
  Flood(const NicPerfOptions& options, std::size_t bytes)
      : options_(options), depth_(static_cast<std::uint64_t>(options.depth)) {
    // Completions cost; with a quarter of the depth for each, the queue never runs dry.
    batch_ = bytes >= (1 << 16) ? 1 : std::max<std::uint64_t>(1, depth_ / 4);
  }
  void add(Stream stream) { streams_.push_back(stream); }

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
        stream.request.sg_list = &stream.piece;
        stream.request.num_sge = 1;
        if (const int error = stream.qp->post(stream.request); error != 0) {
          return fail(Errc::system, "ibv_post_send", error);
        }
        ++stream.posted;
      }
    }
    return {};
  }
  Result<bool> poll(Stream& stream) {
    std::array<ibv_wc, 16> done{};
    const int count = stream.queue->poll(done);
    if (count < 0) return fail(Errc::system, "ibv_poll_cq failed");
    for (int i = 0; i < count; ++i) {
      const ibv_wc& one = done[static_cast<std::size_t>(i)];
      if (one.status != IBV_WC_SUCCESS) return fail(Errc::system, completion_problem(one));
      for (Stream& owner : streams_) {
        if (owner.qp->number() == one.qp_num) owner.done = one.wr_id;
      }
    }
    return count > 0;
  }
  NicPerfRow row(double seconds) const {
    std::uint64_t most = 0;
    std::uint64_t all = 0;
    for (const Stream& stream : streams_) {
      most = std::max(most, stream.done);
      all += stream.done;
    }
    const double ways = options_.both_ways ? 2 : 1;
    NicPerfRow row;
    row.iterations = all;
    row.messages = static_cast<double>(all) / ways / seconds;
    row.gigabits = row.messages * static_cast<double>(streams_[0].piece.length) * 8 / 1e9;
    return row;
  }

  const NicPerfOptions& options_;
  std::uint64_t depth_;
  std::uint64_t batch_;
  std::vector<Stream> streams_;
};

Stream stream_of(verbs::QueuePair& qp, verbs::CompletionQueue& queue, ibv_sge piece,
                 std::uint64_t remote, std::uint32_t rkey, Test test) {
  Stream stream;
  stream.qp = &qp;
  stream.queue = &queue;
  stream.piece = piece;
  stream.request.opcode = test == Test::write_bw ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  stream.request.wr.rdma.remote_addr = remote;
  stream.request.wr.rdma.rkey = rkey;
  return stream;
}

}  // namespace

Result<NicPerfRow> run_bandwidth(Session& session, const NicPerfOptions& options,
                                 std::size_t bytes) {
  Flood flood(options, bytes);
  const auto length = static_cast<std::uint32_t>(bytes);
  const std::size_t half = session.near->size() / 2;  // of both buffers
  const std::uint64_t near = session.near->address();
  const std::uint64_t far = session.far->address();
  for (const auto& pair : session.pairs) {
    flood.add(stream_of(*pair->here, *pair->here_queue, {near, length, session.near_mr->lkey()},
                        far, session.far_mr->rkey(), options.test));
    if (!options.both_ways) continue;
    flood.add(stream_of(*pair->there, *pair->there_queue,
                        {far + half, length, session.far_mr->lkey()}, near + half,
                        session.near_mr->rkey(), options.test));
  }
  const int count = options.iterations > 0 ? options.iterations : 5000;
  NicPerfRow row = GDRX_TRY(flood.run(static_cast<std::uint64_t>(count)));
  row.bytes = bytes;
  return row;
}

}  // namespace gdrx::perf
