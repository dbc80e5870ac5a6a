// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/swarm.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <stdexcept>

#include "tests/fabric/traffic.hpp"

namespace gdrx::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Mix {
  Fault fault;
  double probability;    // an opportunity
  double chosen = 0.35;  // that it is in a seed's mix
};
// Packet faults have thousands of opportunities in a run, those of ports and processes one a
// millisecond.
constexpr std::array<Mix, kFaults> kMix{{
    {Fault::delay, 0.02},
    {Fault::drop_packet, 0.01},
    {Fault::drop_ack, 0.02},
    {Fault::ack_blackout, 0.003},
    {Fault::hold, 0.003},
    {Fault::scatter, 0.5},
    {Fault::rnr, 0.01},
    {Fault::drop_datagram, 0.3},
    {Fault::twice_datagram, 0.3},
    {Fault::late_datagram, 0.3},
    {Fault::late_completion, 0.03},
    {Fault::link_flap, 0.1},
    {Fault::outage, 0.04},
    {Fault::blackout, 0.05},
    {Fault::dark, 0.03},
    {Fault::qp_fatal, 0.05},
    {Fault::device_fatal, 0.1},
    {Fault::unflushed, 1.0, 0.7},  // few seeds post on a QP in error
    {Fault::create_qp_fails, 0.5},
    {Fault::post_fails, 0.002},
    {Fault::gpu_hold, 0.3},
    {Fault::slow_host, 0.1},
    {Fault::stall, 0.02},
    {Fault::repeat, 0.05, 0.8},    // of soft NICs
    {Fault::verb_fails, 0, 0.25},  // not drawn: see refuse_a_verb()
}};
constexpr double kSoft = 0.3;   // some of a seed's hosts have soft-RoCE
constexpr double kOnGpu = 0.4;  // a seed's messages are in GPU memory
constexpr milliseconds kSafety{120};
constexpr milliseconds kLiveness{20'000};

class Swarm {
 public:
  explicit Swarm(std::uint64_t seed) : random_(seed * 2 + 1), seed_(seed), cluster_(shape(seed)) {
    for (const Mix& mix : kMix) {
      if (!random_.chance(mix.chosen)) continue;
      cluster_.network.set_fault(mix.fault, mix.probability);
      if (mix.fault == Fault::verb_fails) refuse_a_verb();
    }
  }

  SwarmResult run() {
    SwarmResult result;
    result.wrong = course();
    if (!result.wrong.empty() && is_named(result.wrong)) result.wrong.clear();
    result.hash = cluster_.network.trace_hash();
    for (std::size_t i = 0; i < kFaults; ++i) {
      result.fired[i] = cluster_.network.fired(static_cast<Fault>(i));
    }
    result.messages = traffic_ ? traffic_->messages() : 0;
    for (auto& host : cluster_.hosts) {
      const verbs::Counters& counters = host->device->counters();
      result.counters.messages += counters.messages;
      result.counters.stripes += counters.stripes;
      result.counters.rails_down += counters.rails_down;
      result.counters.resent += counters.resent;
      result.counters.reconciled += counters.reconciled;
      result.counters.flushes += counters.flushes;
      result.counters.staged += counters.staged;
    }
    result.shape = shape_;
    traffic_.reset();
    cluster_.hosts.clear();
    if (const std::size_t left = cluster_.network.live_objects();
        left > 0 && result.wrong.empty()) {
      result.wrong = fmt::format("{} objects of the verbs are left", left);
    }
    return result;
  }

 private:
  std::string course() {
    if (auto started = cluster_.start(); !started) return "start: " + describe(started.error());
    try {
      traffic_.emplace(cluster_, seed_, gpu_ ? &*gpu_ : nullptr);
    } catch (const std::runtime_error& error) {
      return std::string("start: ") + error.what();
    }
    std::string wrong = safety();
    cluster_.network.stop_faults();
    revivals_.clear();
    for (auto& host : cluster_.hosts) host->slow = false;
    return wrong.empty() ? liveness() : wrong;
  }

  // One failure of one host: at its first calls as often as far into the traffic, once or for good.
  void refuse_a_verb() {
    constexpr std::array<int, 7> kErrors{ENOMEM, EINVAL, EPERM, EOPNOTSUPP, EIO, ETIMEDOUT, EAGAIN};
    VerbFailure failure;
    failure.verb = static_cast<Verb>(random_.below(kVerbs));
    failure.nth = random_.between(1, 1ULL << random_.between(0, 11));
    failure.times = random_.chance(0.5) ? 1 : ~std::uint64_t{0};
    failure.error = kErrors.at(random_.below(kErrors.size()));
    const int host = static_cast<int>(random_.below(2));
    cluster_.network.fail_verb(host, failure);
    refused_ = {host, failure.verb};
    shape_ += fmt::format(", {} of host {} refused at call {}{}", to_string(failure.verb), host,
                          failure.nth, failure.times > 1 ? " and from then on" : "");
  }

  /// A verb was refused, and what ended by it says so: in the error, or in the log of the host
  /// where it was, when it is another one that lost its peer.
  bool is_named(const std::string& wrong) const {
    if (!refused_ || cluster_.network.fired(Fault::verb_fails) == 0) return false;
    const auto& [host, verb] = *refused_;
    const std::string_view name = to_string(verb);
    if (wrong.find(name) != std::string::npos) return true;
    if (wrong.find(fmt::format("rank {} is lost", host)) == std::string::npos &&
        wrong.find(fmt::format("rank {}: ", host)) == std::string::npos) {
      return false;
    }
    const auto& log = cluster_.hosts[static_cast<std::size_t>(host)]->log;
    return std::any_of(log.begin(), log.end(), [&](const std::string& line) {
      return line.find(name) != std::string::npos;
    });
  }

  ClusterSettings shape(std::uint64_t seed) {
    ClusterSettings settings;
    settings.start = false;
    settings.seed = seed;
    settings.hosts = static_cast<int>(random_.between(2, 3));
    settings.qps = static_cast<int>(random_.between(1, 2));
    shape_ = fmt::format("{} hosts, {} QPs a rail, NICs", settings.hosts, settings.qps);
    for (int i = 0; i < settings.hosts; ++i) {
      settings.nics_of.push_back(static_cast<int>(random_.between(1, 3)));
      shape_ += fmt::format(" {}", settings.nics_of.back());
    }
    crossed_ = random_.chance(0.3);
    for (int i = 0; crossed_ && i < settings.hosts; ++i) {
      settings.first_subnet.push_back(static_cast<int>(random_.below(3)));
    }
    settings.receive_ring = Traffic::receive_ring_bytes(settings.hosts);
    settings.adaptive_routing = random_.chance(0.3) ? 1 : 0;
    for (int i = 0; i < settings.hosts; ++i) {
      settings.ece.push_back(static_cast<std::uint32_t>(random_.below(4)));
    }
    if (random_.chance(kOnGpu)) {
      gpu_.emplace(Traffic::gpu_bytes(settings.hosts));
      settings.gpu = &gpu_->calls();
      settings.dma_buf = random_.chance(0.6);
      settings.peermem = random_.chance(0.5);
      shape_ += !settings.dma_buf && !settings.peermem ? ", GPU memory staged" : ", GPU memory";
    }
    if (random_.chance(0.3)) settings.max_message = 64 * 1024;  // the longest messages need more
    if (random_.chance(kSoft)) {
      for (int i = 0; i < settings.hosts; ++i) settings.soft.push_back(random_.chance(0.7));
      shape_ += ", soft-RoCE";
    }
    settings.timeout = 7;  // 0.5 ms: 4 ms until a QP gives up
    settings.peer_timeout = milliseconds(5000);
    return settings;
  }

  std::string round() {
    cluster_.network.run_for(microseconds(random_.between(1, 40)));
    cluster_.poll_all();
    return traffic_->round();
  }

  std::string safety() {
    const Instant end = cluster_.network.now() + kSafety;
    Instant next = cluster_.network.now();
    while (cluster_.network.now() < end) {
      if (cluster_.network.now() >= next) {
        next += milliseconds(1);
        hurt();
      }
      heal(cluster_.network.now());
      if (auto wrong = round(); !wrong.empty()) return "safety: " + wrong;
    }
    return {};
  }

  std::string liveness() {
    traffic_->stop();
    const Instant end = cluster_.network.now() + kLiveness;
    const auto busy = [&] {
      return std::any_of(cluster_.hosts.begin(), cluster_.hosts.end(),
                         [](const auto& host) { return host->device->busy(); });
    };
    while (!traffic_->finished() || busy()) {
      if (cluster_.network.now() >= end) {
        std::string text = "liveness: not all ended" + traffic_->unfinished();
        for (auto& host : cluster_.hosts) text += "\n    " + host->device->state();
        return text;
      }
      if (auto wrong = round(); !wrong.empty()) return "liveness: " + wrong;
    }
    return {};
  }

  // Faults of ports and processes, one opportunity each in a millisecond.
  void hurt() {
    Network& network = cluster_.network;
    const int host = static_cast<int>(random_.below(cluster_.hosts.size()));
    const int nic = static_cast<int>(random_.below(static_cast<std::uint64_t>(network.nics(host))));
    if (network.draw(Fault::link_flap)) down(host, nic, random_.between(50, 2'000));
    if (network.draw(Fault::outage)) down(host, nic, random_.between(5'000, 60'000));
    if (network.draw(Fault::qp_fatal)) network.break_qps(host, nic);
    if (network.draw(Fault::blackout)) {
      const std::uint64_t time = random_.between(500, 10'000);
      for (int i = 0; i < network.nics(host); ++i) down(host, i, time);
    }
    if (network.draw(Fault::dark)) {
      for (int at = 0; at < network.hosts(); ++at) {
        for (int i = 0; i < network.nics(at); ++i) down(at, i, random_.between(500, 60'000));
      }
    }
    // The first NIC of each host lives, so that a path remains: where first NICs are joined, and
    // none was left out because a verb of its opening was refused.
    if (nic > 0 && !crossed_ && !refused_ && network.draw(Fault::device_fatal)) {
      network.kill_nic(host, nic);
    }
    if (network.draw(Fault::slow_host)) stop(host, random_.between(100, 15'000));
    if (network.draw(Fault::stall)) stop(host, random_.between(25'000, 110'000));
  }

  void stop(int host, std::uint64_t micros) {
    cluster_[host].slow = true;
    revivals_.push_back({cluster_.network.now() + microseconds(micros), host, -1});
  }

  void down(int host, int nic, std::uint64_t micros) {
    cluster_.network.set_port(host, nic, false);
    revivals_.push_back({cluster_.network.now() + microseconds(micros), host, nic});
  }

  void heal(Instant now) {
    std::erase_if(revivals_, [&](const Revival& revival) {
      if (revival.at > now) return false;
      if (revival.nic < 0) {
        cluster_[revival.host].slow = false;
      } else {
        cluster_.network.set_port(revival.host, revival.nic, true);
      }
      return true;
    });
  }

  struct Revival {
    Instant at;
    int host;
    int nic;
  };
  std::string shape_;
  bool crossed_ = false;  // hosts number their NICs in another order
  Random random_;
  std::optional<FakeGpu> gpu_;
  std::uint64_t seed_;
  Cluster cluster_;
  std::optional<Traffic> traffic_;
  std::optional<std::pair<int, Verb>> refused_;  // of which host
  std::vector<Revival> revivals_;
};

}  // namespace

SwarmResult run_swarm(std::uint64_t seed) { return Swarm(seed).run(); }

}  // namespace gdrx::sim
