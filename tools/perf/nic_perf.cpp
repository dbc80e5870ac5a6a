// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/nic_perf.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/perf/nic_traffic.hpp"

namespace gdrx::perf {
namespace {

/// Memory on both sides of this host, registered, and what connects them.
struct Session {
  std::shared_ptr<NicPort> here;
  std::shared_ptr<NicPort> there;
  std::unique_ptr<Buffer> near;
  std::unique_ptr<Buffer> far;
  std::unique_ptr<verbs::Registration> near_mr;
  std::unique_ptr<verbs::Registration> far_mr;
  std::vector<std::unique_ptr<QpPair>> pairs;
};

Result<Session> open_session(const std::shared_ptr<const verbs::VerbsTable>& table,
                             const NicPerfOptions& options, std::size_t most,
                             std::shared_ptr<cuda::Device> gpu) {
  Session session;
  const PortChoice choice{options.device, options.port, options.gid_index, options.mtu};
  session.here = GDRX_TRY(NicPort::open(table, choice));
  session.there = session.here;
  if (!options.to.empty() && options.to != session.here->name()) {
    session.there = GDRX_TRY(NicPort::open(table, {options.to, 0, std::nullopt, options.mtu}));
  }
  const std::size_t half = (most + 4095) / 4096 * 4096;
  session.near = GDRX_TRY(Buffer::host(2 * half));
  session.far =
      gpu ? GDRX_TRY(Buffer::gpu(std::move(gpu), 2 * half)) : GDRX_TRY(Buffer::host(2 * half));
  const Way way = options.gpu < 0 ? Way::host : options.dmabuf ? Way::dmabuf : Way::peermem;
  session.near_mr = GDRX_TRY(session.near->register_with(*session.here, Way::host));
  session.far_mr = GDRX_TRY(session.far->register_with(*session.there, way));
  PairOptions pair;
  pair.depth = static_cast<std::uint32_t>(options.depth);
  pair.timeout = options.timeout;
  pair.service_level = options.service_level;
  pair.traffic_class = options.traffic_class;
  for (int i = 0; i < options.qps; ++i) {
    session.pairs.push_back(GDRX_TRY(QpPair::connect(*session.here, *session.there, pair)));
  }
  return session;
}

/// The source of a direction is filled before, and its target compared after.
struct Check {
  const Buffer& source;
  const Buffer& target;
  std::size_t at;

  Result<void> fill(std::size_t bytes, unsigned seed) const {
    GDRX_TRY(source.write(at, pattern(bytes, seed)));
    return target.write(at, std::vector<std::byte>(bytes));
  }
  Result<void> compare(std::size_t bytes) const {
    std::vector<std::byte> sent(bytes);
    std::vector<std::byte> seen(bytes);
    GDRX_TRY(source.read(at, sent));
    GDRX_TRY(target.read(at, seen));
    if (sent == seen) return {};
    return fail(Errc::mismatch, fmt::format("messages of {} bytes arrived changed", bytes));
  }
};

// Each side is a source of the first half of its buffer and, for the way back, a target in the
// second.
Lane forth(const Session& session, const QpPair& pair, std::size_t bytes) {
  const auto length = static_cast<std::uint32_t>(bytes);
  return {&pair.here,
          {session.near->address(), length, session.near_mr->lkey()},
          session.far->address(),
          session.far_mr->rkey()};
}
Lane back(const Session& session, const QpPair& pair, std::size_t bytes) {
  const auto length = static_cast<std::uint32_t>(bytes);
  const std::size_t half = session.near->size() / 2;
  return {&pair.there,
          {session.far->address() + half, length, session.far_mr->lkey()},
          session.near->address() + half,
          session.near_mr->rkey()};
}

/// A write there, seen by looking at the memory, and one back: half of the time of both. With GPU
/// memory, which a CPU cannot watch, and for reads: until the completion.
class Exchange {
 public:
  Exchange(const Session& session, const NicPerfOptions& options, std::size_t bytes)
      : session_(session),
        options_(options),
        bytes_(bytes),
        forth_(forth(session, *session.pairs.front(), bytes)),
        back_(back(session, *session.pairs.front(), bytes)) {}

  Result<double> once(std::uint8_t round) {
    const auto start = std::chrono::steady_clock::now();
    const GiveUp end = give_up_after(options_.deadline);
    std::byte* near = session_.near->host_data();
    std::byte* far = session_.far->host_data();
    if (options_.test == Test::read_lat || far == nullptr) {
      GDRX_TRY(post(forth_, opcode_of(options_.test)));
      GDRX_TRY(completion(forth_, end));
      return micros_since(start);
    }
    const std::size_t last = bytes_ - 1;
    const std::size_t half = session_.near->size() / 2;
    near[last] = std::byte{round};
    GDRX_TRY(post(forth_, IBV_WR_RDMA_WRITE));
    GDRX_TRY(arrival(far + last, before_, end));
    far[half + last] = std::byte{round};
    GDRX_TRY(post(back_, IBV_WR_RDMA_WRITE));
    GDRX_TRY(arrival(near + half + last, before_, end));
    const double both = micros_since(start);
    GDRX_TRY(completion(forth_, end));  // not part of the time: perftest has it so
    GDRX_TRY(completion(back_, end));
    before_ = round;
    return both / 2;
  }

 private:
  const Session& session_;
  const NicPerfOptions& options_;
  std::size_t bytes_;
  Lane forth_;
  Lane back_;
  std::uint8_t before_ = 0;
};

Result<NicPerfRow> run(const Session& session, const NicPerfOptions& options, std::size_t bytes) {
  if (is_latency(options.test)) {
    Exchange exchange(session, options, bytes);
    return run_latency(options, [&](std::uint8_t round) { return exchange.once(round); });
  }
  std::vector<Lane> lanes;
  for (const auto& pair : session.pairs) {
    lanes.push_back(forth(session, *pair, bytes));
    if (options.both_ways) lanes.push_back(back(session, *pair, bytes));
  }
  return run_bandwidth(lanes, options.both_ways ? 2 : 1, options);
}

Result<NicPerfRow> measure(const Session& session, const NicPerfOptions& options,
                           std::size_t bytes) {
  const Buffer& from = is_read(options.test) ? *session.far : *session.near;
  const Buffer& to = is_read(options.test) ? *session.near : *session.far;
  const std::size_t half = session.near->size() / 2;
  const bool returns = options.both_ways || options.test == Test::write_lat;
  const Check forwards{from, to, 0};
  const Check backwards{to, from, half};
  GDRX_TRY(forwards.fill(bytes, 1));
  if (returns) GDRX_TRY(backwards.fill(bytes, 2));
  NicPerfRow row = GDRX_TRY(run(session, options, bytes));
  row.bytes = bytes;
  GDRX_TRY(forwards.compare(bytes));
  if (options.both_ways) GDRX_TRY(backwards.compare(bytes));
  return row;
}

}  // namespace

Result<NicPerfReport> measure_nic(const std::shared_ptr<const verbs::VerbsTable>& table,
                                  const NicPerfOptions& options) {
  if (options.sizes.empty()) return fail(Errc::invalid_argument, "no size");
  const std::size_t most = *std::max_element(options.sizes.begin(), options.sizes.end());
  std::shared_ptr<cuda::Device> gpu;
  if (options.gpu >= 0) gpu = GDRX_TRY(cuda::Device::open(options.gpu));
  Session session = GDRX_TRY(open_session(table, options, most, gpu));
  NicPerfReport report;
  report.options = options;
  report.from = fmt::format("{} port {}", session.here->name(), session.here->port());
  report.to = fmt::format("{} port {}", session.there->name(), session.there->port());
  report.gid = session.here->gid();
  report.mtu = 128 << std::min(session.here->mtu(), session.there->mtu());
  report.far_memory = "host memory";
  if (gpu) {
    report.gpu_bus = gpu->bus();
    report.far_memory = fmt::format("GPU {} by {}", gpu->bus(),
                                    to_string(options.dmabuf ? Way::dmabuf : Way::peermem));
  }
  report.ping_pong = options.test == Test::write_lat && !gpu;
  for (const std::size_t bytes : options.sizes) {
    report.rows.push_back(GDRX_TRY(measure(session, options, bytes)));
  }
  return report;
}

Result<NicPerfReport> measure_nic_here(const NicPerfOptions& options) {
  return measure_nic(GDRX_TRY(verbs::load_verbs()), options);
}

}  // namespace gdrx::perf
