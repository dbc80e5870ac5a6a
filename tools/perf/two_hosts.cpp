// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/two_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/perf/far_port.hpp"
#include "tools/perf/nic_traffic.hpp"
#include "tools/perf/protocol.hpp"
#include "transport/bootstrap/interface.hpp"

namespace gdrx::perf {
namespace {

constexpr std::chrono::seconds kHelloLimit{10};
constexpr std::uint8_t kStop = 255;  // rounds are 1 to 250

class Side {
 public:
  Side(const Channel& channel, NicPerfOptions options, bool leads)
      : channel_(channel), options_(std::move(options)), leads_(leads) {}

  Result<NicPerfReport> run(const std::shared_ptr<const verbs::VerbsTable>& table,
                            const Judge& judge) {
    const auto told = open(table).and_then(
        [&]() -> Result<std::string> { return words(judge ? judge(report_) : std::nullopt); });
    far_ = GDRX_TRY(read_far(GDRX_TRY(agree(told)), static_cast<std::size_t>(options_.qps)));
    GDRX_TRY(agree(connect()));  // nobody writes before the other side can receive
    report_.to = far_.port.name;
    report_.far_memory = far_.memory;
    report_.far_limit = far_.limit;
    if (report_.far_limit) report_.far_limit->why.insert(0, "there: ");
    report_.mtu = 128 << std::min(port_->mtu(), far_.port.mtu);
    report_.ping_pong =
        options_.test == Test::write_lat && far_.host_memory && memory_->host_data() != nullptr;
    for (const std::size_t bytes : options_.sizes) report_.rows.push_back(GDRX_TRY(measure(bytes)));
    return std::move(report_);
  }

 private:
  Result<std::string> agree(const Result<std::string>& mine) const {
    const std::chrono::duration<double> patience(options_.patience);
    return channel_.agree(
        mine, Deadline::after(steady_clock(),
                              std::chrono::duration_cast<std::chrono::milliseconds>(patience)));
  }
  Result<void> agree(const Result<void>& mine) const {
    GDRX_TRY(agree(mine.map([] { return std::string(); })));
    return {};
  }

  Result<void> open(const std::shared_ptr<const verbs::VerbsTable>& table) {
    port_ = GDRX_TRY(
        NicPort::open(table, {options_.device, options_.port, options_.gid_index, options_.mtu}));
    const std::size_t most = *std::max_element(options_.sizes.begin(), options_.sizes.end());
    half_ = (most + 4095) / 4096 * 4096;
    if (options_.gpu >= 0) {
      auto gpu = GDRX_TRY(cuda::Device::open(options_.gpu));
      report_.gpu_bus = gpu->bus();
      memory_ = GDRX_TRY(Buffer::gpu(std::move(gpu), 2 * half_));
    } else {
      memory_ = GDRX_TRY(Buffer::host(2 * half_));
    }
    const Way way = options_.gpu < 0 ? Way::host : options_.dmabuf ? Way::dmabuf : Way::peermem;
    mr_ = GDRX_TRY(memory_->register_with(*port_, way));
    pair_.depth = static_cast<std::uint32_t>(options_.depth);
    pair_.timeout = options_.timeout;
    pair_.service_level = options_.service_level;
    pair_.traffic_class = options_.traffic_class;
    for (int i = 0; i < options_.qps; ++i) {
      ends_.push_back(GDRX_TRY(QpEnd::open(*port_, pair_)));
    }
    report_.options = options_;
    report_.host = channel_.peer();
    report_.from = far_port(*port_).name;
    report_.gid = port_->gid();
    if (options_.gpu >= 0) {
      report_.near_memory = fmt::format("GPU {} by {}", report_.gpu_bus, to_string(way));
    }
    return {};
  }

  std::string words(const std::optional<Expectation>& limit) const {
    Far mine{far_port(*port_),
             memory_->address(),
             mr_->rkey(),
             memory_->host_data() != nullptr,
             {},
             report_.near_memory,
             limit};
    for (const QpEnd& end : ends_) mine.qps.push_back(end.qp->number());
    return far_words(mine);
  }

  Result<void> connect() const {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      GDRX_TRY(ends_[i].qp->connect(GDRX_TRY(route(*port_, far_.port, far_.qps[i], pair_))));
    }
    return {};
  }

  // The leader's requests are about the first half of both memories, the follower's about the
  // second.
  bool follower_acts() const { return options_.both_ways || report_.ping_pong; }
  bool acts() const { return leads_ || follower_acts(); }
  std::size_t offset(bool leaders) const { return leaders ? 0 : half_; }
  Lane lane(const QpEnd& end, std::size_t bytes) const {
    const std::size_t at = offset(leads_);
    return {&end,
            {memory_->address() + at, static_cast<std::uint32_t>(bytes), mr_->lkey()},
            far_.address + at,
            far_.rkey};
  }

  // Who posts writes is the source, who posts reads the target.
  bool is_source(bool leaders) const { return (leads_ == leaders) != is_read(options_.test); }
  static unsigned seed(bool leaders) { return leaders ? 1 : 2; }
  Result<void> fill(bool leaders, std::size_t bytes) const {
    return memory_->write(offset(leaders), is_source(leaders) ? pattern(bytes, seed(leaders))
                                                              : std::vector<std::byte>(bytes));
  }
  Result<void> compare(bool leaders, std::size_t bytes) const {
    if (is_source(leaders)) return {};
    std::vector<std::byte> seen(bytes);
    GDRX_TRY(memory_->read(offset(leaders), seen));
    // In ping-pong the last byte is the round, which was seen each time.
    const auto compared = static_cast<std::ptrdiff_t>(report_.ping_pong ? bytes - 1 : bytes);
    const auto sent = pattern(bytes, seed(leaders));
    if (std::equal(sent.begin(), sent.begin() + compared, seen.begin())) return {};
    return fail(Errc::mismatch, fmt::format("messages of {} bytes arrived changed", bytes));
  }

  Result<void> fill(std::size_t bytes) const {
    GDRX_TRY(fill(true, bytes));
    return follower_acts() ? fill(false, bytes) : Result<void>();
  }
  Result<void> compare(std::size_t bytes) const {
    GDRX_TRY(compare(true, bytes));
    return follower_acts() ? compare(false, bytes) : Result<void>();
  }

  Result<NicPerfRow> measure(std::size_t bytes) {
    GDRX_TRY(agree(fill(bytes)));
    const Result<NicPerfRow> mine = acts() ? traffic(bytes) : NicPerfRow();
    NicPerfRow row = mine.value_or(NicPerfRow());
    const NicPerfRow other = GDRX_TRY(read_row(GDRX_TRY(agree(mine.map(row_words)))));
    GDRX_TRY(agree(compare(bytes)));
    row.bytes = bytes;
    if (!options_.both_ways) return row;
    row.iterations += other.iterations;
    row.gigabits = (row.gigabits + other.gigabits) / 2;  // figures are of one direction
    row.messages = (row.messages + other.messages) / 2;
    return row;
  }

  Result<NicPerfRow> traffic(std::size_t bytes) {
    if (!is_latency(options_.test)) {
      std::vector<Lane> lanes;
      for (const QpEnd& end : ends_) lanes.push_back(lane(end, bytes));
      return run_bandwidth(lanes, 1, options_);
    }
    const Lane only = lane(ends_.front(), bytes);
    if (!report_.ping_pong) {
      return run_latency(options_, [&](std::uint8_t) { return until_completed(only); });
    }
    return leads_ ? ping(only, bytes) : pong(only, bytes);
  }

  Result<double> until_completed(const Lane& lane) const {
    const auto start = std::chrono::steady_clock::now();
    GDRX_TRY(post(lane, opcode_of(options_.test)));
    GDRX_TRY(completion(lane, give_up_after(options_.deadline)));
    return micros_since(start);
  }

  Result<NicPerfRow> ping(const Lane& lane, std::size_t bytes) const {
    std::byte* mine = memory_->host_data() + bytes - 1;
    const std::byte* theirs = mine + half_;
    std::uint8_t before = 0;
    NicPerfRow row = GDRX_TRY(run_latency(options_, [&](std::uint8_t round) -> Result<double> {
      const auto start = std::chrono::steady_clock::now();
      const GiveUp end = give_up_after(options_.deadline);
      *mine = std::byte{round};
      GDRX_TRY(post(lane, IBV_WR_RDMA_WRITE));
      before = GDRX_TRY(arrival(theirs, before, end));
      const double both = micros_since(start);
      GDRX_TRY(completion(lane, end));  // not part of the time: perftest has it so
      if (before == round) return both / 2;
      return fail(Errc::mismatch, "another round came back than the one that was sent");
    }));
    *mine = std::byte{kStop};
    GDRX_TRY(post(lane, IBV_WR_RDMA_WRITE));
    GDRX_TRY(completion(lane, give_up_after(options_.deadline)));
    return row;
  }

  Result<NicPerfRow> pong(const Lane& lane, std::size_t bytes) const {
    std::byte* mine = memory_->host_data() + half_ + bytes - 1;
    const std::byte* theirs = memory_->host_data() + bytes - 1;
    NicPerfRow row;
    for (std::uint8_t before = 0;; ++row.iterations) {
      const GiveUp end = give_up_after(options_.deadline);
      before = GDRX_TRY(arrival(theirs, before, end));
      if (before == kStop) return row;
      *mine = std::byte{before};
      GDRX_TRY(post(lane, IBV_WR_RDMA_WRITE));
      GDRX_TRY(completion(lane, end));
    }
  }

  const Channel& channel_;
  NicPerfOptions options_;
  bool leads_;
  // Closed in the other order: queue pairs, the registration, then what it is of.
  std::shared_ptr<NicPort> port_;
  std::unique_ptr<Buffer> memory_;
  std::unique_ptr<verbs::Registration> mr_;
  std::vector<QpEnd> ends_;
  std::size_t half_ = 0;
  PairOptions pair_;
  Far far_;
  NicPerfReport report_;
};

}  // namespace

Result<NicPerfReport> lead(const Channel& channel,
                           const std::shared_ptr<const verbs::VerbsTable>& table,
                           const NicPerfOptions& options) {
  const Deadline soon = Deadline::after(steady_clock(), kHelloLimit);
  GDRX_TRY(channel.agree(plan_words(options), soon));
  return Side(channel, options, true).run(table, {});
}

Result<NicPerfOptions> greet(const Channel& channel, const NicPerfOptions& own) {
  const Deadline soon = Deadline::after(steady_clock(), kHelloLimit);
  return read_plan(GDRX_TRY(channel.agree(std::string("ready"), soon)), own);
}

Result<NicPerfReport> follow(const Channel& channel,
                             const std::shared_ptr<const verbs::VerbsTable>& table,
                             const NicPerfOptions& plan, const Judge& judge) {
  return Side(channel, plan, false).run(table, judge);
}

Result<NicPerfReport> measure_with_here(const std::string& host, std::uint16_t port,
                                        const NicPerfOptions& options, const Config& config) {
  if (options.sizes.empty()) return fail(Errc::invalid_argument, "no size");
  const Secret secret = GDRX_TRY(Secret::load(config.secret_file));
  const auto table = GDRX_TRY(verbs::load_verbs());
  const Channel channel = GDRX_TRY(Channel::connect(host, port, secret));
  return lead(channel, table, options);
}

Result<NicPerfReport> serve_here(std::uint16_t port, const NicPerfOptions& options,
                                 const Judge& judge, const Config& config,
                                 const Listening& listening) {
  const Secret secret = GDRX_TRY(Secret::load(config.secret_file));
  const auto table = GDRX_TRY(verbs::load_verbs());
  SocketAddress at = GDRX_TRY(choose_interface(list_interfaces(), config.socket_ifname)).address;
  at.port = port;
  Listener listener = GDRX_TRY(Listener::open(at, secret, config.port_range));
  const std::string where = to_string(listener.address());
  listening(where.substr(0, where.rfind(':')), listener.port());
  for (;;) {
    const Channel channel = GDRX_TRY(listener.accept());
    const auto plan = greet(channel, options);
    if (plan) return follow(channel, table, *plan, judge);
    // Somebody else who tries ports does not end the service.
  }
}

}  // namespace gdrx::perf
