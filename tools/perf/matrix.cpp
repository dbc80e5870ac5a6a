// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "tools/perf/matrix_side.hpp"
#include "tools/perf/nic_port.hpp"
#include "tools/perf/two_hosts.hpp"
#include "transport/bootstrap/interface.hpp"

namespace gdrx::perf {
namespace {

constexpr std::chrono::seconds kComeLimit{20};  // longer than a connection is tried
constexpr std::chrono::seconds kSayLimit{5};
constexpr std::size_t kLatencyBytes = 8;

// Of "10.0.0.1:80" or "[fe80::1]:80".
std::string ip_of(const std::string& address) {
  std::string ip = address.substr(0, address.rfind(':'));
  if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
  return ip;
}

// Of "mlx5_0 port 1".
std::string device_of(const std::string& port) { return port.substr(0, port.find(' ')); }

class Rounds {
 public:
  Rounds(const MatrixSide& side, const Gather& gather, const MatrixOptions& options)
      : side_(side), gather_(gather), options_(options) {}

  Result<MatrixReport> run() {
    GDRX_TRY(meet());
    report_.bytes = options_.nic.sizes.front();
    report_.of_gpus = options_.nic.gpu >= 0;
    report_.nics = GDRX_TRY(nics());
    report_.hosts = distinct_names(hosts_);
    for (const std::string& nic : report_.nics) {
      for (std::size_t round = 0; round < rounds_of(hosts_.size()); ++round) {
        GDRX_TRY(one_round(nic, round));
      }
    }
    const auto place = [this](const MatrixPair& pair) {
      const auto& nics = report_.nics;
      return std::tuple(std::find(nics.begin(), nics.end(), pair.nic), pair.from, pair.to);
    };
    std::sort(report_.pairs.begin(), report_.pairs.end(),
              [&](const MatrixPair& a, const MatrixPair& b) { return place(a) < place(b); });
    return std::move(report_);
  }

 private:
  // Who cannot take part says so and goes on: the others wait for each gathering.
  std::string own_key() const {
    const auto key = Key::random();
    if (side_.secret.given() || !key) return "none";
    return std::string(reinterpret_cast<const char*>(key->bytes().data()), key->bytes().size());
  }
  Result<Secret> agree_on_secret(const std::vector<std::string>& keys) const {
    if (side_.secret.given()) return side_.secret;
    if (keys.empty() || keys[0].size() != Key::kBytes) {
      return fail(Errc::protocol, "the first process has GDRX_SECRET_FILE, this one has not");
    }
    return Secret::of(std::as_bytes(std::span(keys[0])));
  }

  // Where everybody listens, behind the key that rank 0 made if there is no secret.
  Result<void> meet() {
    MatrixHost mine;
    mine.name = side_.host;
    mine.problem = side_.problem;
    const auto secret = agree_on_secret(GDRX_TRY(gather_(own_key())));
    if (secret) secret_ = *secret;
    if (!secret && mine.problem.empty()) mine.problem = describe(secret.error());
    if (mine.problem.empty()) {
      if (auto listener = Listener::open(side_.at, secret_, side_.ports)) {
        listener_ = std::make_unique<Listener>(*std::move(listener));
        const std::string where = to_string(listener_->address());
        mine.ip = ip_of(where);
        mine.port = listener_->port();
        for (const PortChoice& choice : ports_up(side_.table)) mine.nics.push_back(choice.device);
        mine.nics.erase(std::unique(mine.nics.begin(), mine.nics.end()), mine.nics.end());
      } else {
        mine.problem = describe(listener.error());
      }
    }
    const auto texts = GDRX_TRY(gather_(host_words(mine, plan_words(options_))));
    if (texts.size() < 2) {
      return fail(Errc::invalid_argument,
                  "one process: start one on each host with the mpirun of this MPI");
    }
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      GDRX_TRY(check_plan(texts[rank], texts[0], rank));
      hosts_.push_back(GDRX_TRY(read_matrix_host(texts[rank])));
    }
    return {};
  }

  // A host without any cannot take one from the others.
  Result<std::vector<std::string>> nics() const {
    if (!options_.rails) return std::vector<std::string>{options_.nic.device};
    std::vector<std::string> common;
    bool first = true;
    for (const MatrixHost& host : hosts_) {
      if (!host.problem.empty()) continue;
      if (first) common = host.nics;
      first = false;
      std::erase_if(common, [&](const std::string& nic) {
        return std::find(host.nics.begin(), host.nics.end(), nic) == host.nics.end();
      });
    }
    if (common.empty())
      return fail(Errc::invalid_argument, "no NIC is up on all hosts by one name");
    return common;
  }

  Result<void> one_round(const std::string& nic, std::size_t round) {
    const std::size_t other = partner_in(round, side_.rank, hosts_.size());
    std::string mine;
    if (other != side_.rank) mine = pair_words(measure(nic, other));
    const auto texts = GDRX_TRY(gather_(mine));
    std::size_t measured = 0;
    std::size_t failed = 0;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      if (texts[rank].empty()) continue;
      MatrixPair pair = GDRX_TRY(read_pair(texts[rank], rank, hosts_.size()));
      if (pair.to != partner_in(round, rank, hosts_.size())) {
        return fail(Errc::protocol, fmt::format("process {} is in another round", rank));
      }
      pair.nic = nic;
      ++(pair.problem.empty() ? measured : failed);
      report_.pairs.push_back(std::move(pair));
    }
    if (options_.progress) {
      options_.progress(fmt::format("{}round {} of {}: {} ways measured{}",
                                    nic.empty() ? "" : nic + ", ", round + 1,
                                    rounds_of(hosts_.size()), measured,
                                    failed == 0 ? "" : fmt::format(", {} failed", failed)));
    }
    return {};
  }

  // Both sides of a pair go through the same steps over one connection, so they stay in step where
  // one fails: the lower rank leads first, then the other.
  MatrixPair measure(const std::string& nic, std::size_t other) {
    MatrixPair mine{side_.rank, other, nic, 0, 0, {}};
    for (const auto& [rank, whose] : {std::pair(side_.rank, ""), std::pair(other, "there: ")}) {
      if (hosts_[rank].problem.empty()) continue;
      mine.problem = whose + hosts_[rank].problem;
      return mine;
    }
    const bool first = side_.rank < other;
    const auto channel = meet_other(other);
    if (!channel) {
      mine.problem = describe(channel.error());
      return mine;
    }
    for (const bool leads : {first, !first}) {
      auto wide = step(*channel, bandwidth(nic), leads);
      const auto late = wide ? step(*channel, latency(nic), leads) : wide;
      if (!leads) continue;
      if (!late) mine.problem = describe(late.error());
      if (!late) continue;
      mine.gigabits = wide->rows.front().gigabits;
      mine.micros = late->rows.front().typical;
      mine.from_nic = device_of(wide->from);
      mine.to_nic = device_of(wide->to);
    }
    return mine;
  }

  // A connection of a pair that was too late may still be there: each side says who it is.
  // How many pairs were told before is the same for all processes of a round.
  Result<Channel> meet_other(std::size_t other) {
    const auto pair = fmt::format("{} and {} after {}", std::min(side_.rank, other),
                                  std::max(side_.rank, other), report_.pairs.size());
    const auto is_it = [&](const Channel& channel, std::chrono::seconds limit) -> Result<void> {
      const auto theirs = channel.agree(pair, Deadline::after(steady_clock(), limit));
      if (theirs && *theirs != pair) return fail(Errc::protocol, "it is of another pair");
      return theirs.map([](const std::string&) {});
    };
    if (side_.rank < other) {
      Channel channel = GDRX_TRY(Channel::connect(hosts_[other].ip, hosts_[other].port, secret_));
      GDRX_TRY(is_it(channel, kComeLimit));
      return channel;
    }
    for (const Deadline deadline = Deadline::after(steady_clock(), kComeLimit);;) {
      Channel channel = GDRX_TRY(listener_->accept(deadline));
      if (is_it(channel, kSayLimit)) return channel;
    }
  }

  Result<NicPerfReport> step(const Channel& channel, const NicPerfOptions& options, bool leads) {
    if (leads) return lead(channel, side_.table, options);
    return follow(channel, side_.table, GDRX_TRY(greet(channel, options)), {});
  }

  NicPerfOptions bandwidth(const std::string& nic) const {
    NicPerfOptions options = options_.nic;
    options.device = nic;
    return options;
  }
  NicPerfOptions latency(const std::string& nic) const {
    NicPerfOptions options = bandwidth(nic);
    options.test = Test::write_lat;
    options.sizes = {kLatencyBytes};
    options.iterations = options_.pings;
    options.duration = 0;
    options.both_ways = false;
    options.qps = 1;
    return options;
  }

  const MatrixSide& side_;
  const Gather& gather_;
  const MatrixOptions& options_;
  Secret secret_;
  std::unique_ptr<Listener> listener_;
  std::vector<MatrixHost> hosts_;
  MatrixReport report_;
};

}  // namespace

Result<MatrixReport> measure_matrix(MatrixSide side, const Gather& gather,
                                    const MatrixOptions& options) {
  if (options.nic.sizes.size() != 1) return fail(Errc::invalid_argument, "a matrix is of one size");
  if (!side.table && side.problem.empty()) side.problem = "no libibverbs";
  return Rounds(side, gather, options).run();
}

Result<MatrixReport> measure_matrix_here(std::size_t rank, const std::string& host,
                                         const Gather& gather, const MatrixOptions& options,
                                         const Config& config) {
  MatrixSide side;
  side.rank = rank;
  side.host = host;
  const auto secret = Secret::load(config.secret_file);
  side.ports = config.port_range;
  const auto table = verbs::load_verbs();
  const auto own = choose_interface(list_interfaces(), config.socket_ifname);
  if (table) side.table = *table;
  if (own) side.at = own->address;
  if (!own) side.problem = describe(own.error());
  if (secret) side.secret = *secret;
  if (!table) side.problem = describe(table.error());
  if (!secret) side.problem = describe(secret.error());
  return measure_matrix(std::move(side), gather, options);
}

}  // namespace gdrx::perf
