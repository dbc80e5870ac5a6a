// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/nic_perf.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/perf/nic_traffic.hpp"

namespace gdrx::perf {
namespace {

bool is_latency(Test test) { return test == Test::write_lat || test == Test::read_lat; }

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

Result<NicPerfRow> measure(Session& session, const NicPerfOptions& options, std::size_t bytes) {
  const bool read = options.test == Test::read_bw || options.test == Test::read_lat;
  const Buffer& from = read ? *session.far : *session.near;
  const Buffer& to = read ? *session.near : *session.far;
  const std::size_t half = session.near->size() / 2;
  const Check there{from, to, 0};
  const Check back{to, from, half};
  GDRX_TRY(there.fill(bytes, 1));
  if (options.both_ways) GDRX_TRY(back.fill(bytes, 2));
  const NicPerfRow row = is_latency(options.test)
                             ? GDRX_TRY(run_latency(session, options, bytes))
                             : GDRX_TRY(run_bandwidth(session, options, bytes));
  GDRX_TRY(there.compare(bytes));
  if (options.both_ways) GDRX_TRY(back.compare(bytes));
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
  for (const std::size_t bytes : options.sizes) {
    report.rows.push_back(GDRX_TRY(measure(session, options, bytes)));
  }
  return report;
}

Result<NicPerfReport> measure_nic_here(const NicPerfOptions& options) {
  return measure_nic(GDRX_TRY(verbs::load_verbs()), options);
}

}  // namespace gdrx::perf
