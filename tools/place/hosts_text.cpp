// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/printable.hpp"
#include "tools/perf/matrix_view.hpp"
#include "tools/place/hosts_view.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

using topo::HostMatrix;
using topo::RingRate;
using topo::SlowLink;

constexpr std::size_t kMostLines = 20;

std::string gigabits(double rate) { return fmt::format("{:.3g} Gb/s", rate); }

bool follow_each_other(const std::vector<std::size_t>& order, std::size_t a, std::size_t b) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t next = order[(i + 1) % order.size()];
    if ((order[i] == a && next == b) || (order[i] == b && next == a)) return true;
  }
  return false;
}

HostMatrix without(const HostMatrix& matrix, const std::vector<std::size_t>& hosts) {
  HostMatrix rest;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < matrix.hosts.size(); ++i) {
    if (std::find(hosts.begin(), hosts.end(), i) != hosts.end()) continue;
    kept.push_back(i);
    rest.hosts.push_back(matrix.hosts[i]);
  }
  for (const std::size_t a : kept) {
    for (const std::size_t b : kept) rest.gigabits.push_back(matrix.of(a, b));
  }
  return rest;
}

// What is slow, a line for each host that is slow as a whole and for each other pair.
class SlowLines {
 public:
  explicit SlowLines(const MeasuredHosts& hosts)
      : hosts_(hosts),
        links_(slow_links(hosts.matrix)),
        bad_(slow_hosts(hosts.matrix, links_)),
        is_slow_(hosts.matrix.gigabits.size(), false),
        is_bad_(hosts.matrix.hosts.size(), false) {
    for (const SlowLink& link : links_) is_slow_[link.from * is_bad_.size() + link.to] = true;
    for (const std::size_t host : bad_) is_bad_[host] = true;
  }

  /// As many as a person reads, and how many more there are.
  std::string text() const {
    std::string text;
    std::size_t count = 0;
    std::string rest = without_bad();
    for (const std::size_t host : bad_) {
      if (++count <= kMostLines) text += wrapped("  " + of_host(host) + rest, 4) + "\n";
    }
    for (const SlowLink& link : links_) {
      if (is_bad_[link.from] || is_bad_[link.to]) continue;
      const bool told = link.from > link.to && is_slow_[link.to * is_bad_.size() + link.from];
      if (told || ++count > kMostLines) continue;
      text += wrapped("  " + of_link(link), 4) + "\n";
    }
    if (count > kMostLines) text += fmt::format("and {} more\n", count - kMostLines);
    return text;
  }

 private:
  // What the others could have.
  std::string without_bad() const {
    if (bad_.empty()) return {};
    const auto rest = without(hosts_.matrix, bad_);
    const auto ring = ring_of_hosts(rest);
    if (!ring || rest.hosts.size() < 2) return {};
    return fmt::format("; without {} the slowest is {}", bad_.size() == 1 ? "it" : "such",
                       gigabits(ring->slowest.gigabits));
  }

  std::string of_host(std::size_t host) const {
    double most = 0;
    double usual = 0;
    for (const SlowLink& link : links_) {
      if (link.from != host && link.to != host) continue;
      most = std::max(most, link.gigabits);
      usual = std::max(usual, link.usual);
    }
    return fmt::format("{}: all its links are slow, {} at most of {}: no order helps",
                       hosts_.matrix.hosts[host], gigabits(most), gigabits(usual));
  }

  std::string of_link(const SlowLink& link) const {
    const auto& names = hosts_.matrix.hosts;
    const auto& back = hosts_.matrix.of(link.to, link.from);
    std::string text = fmt::format("{} to {}: ", names[link.from], names[link.to]);
    text += link.gigabits > 0 ? gigabits(link.gigabits) : "failed";
    text += " of " + gigabits(link.usual);
    if (back) text += fmt::format(", back {}", *back > 0 ? gigabits(*back) : "failed");
    return text + ": " + about(link);
  }

  std::string about(const SlowLink& link) const {
    if (!follow_each_other(hosts_.ring.order, link.from, link.to)) return "the ring goes around it";
    const double own = both_ways(hosts_.matrix, link.from, link.to);
    if (own > hosts_.ring.slowest.gigabits) return "in the ring, which another link slows more";
    return hosts_.ring.exact ? "in the ring, as each ring has one so slow"
                             : "in the ring, as none without was found";
  }

  const MeasuredHosts& hosts_;
  std::vector<SlowLink> links_;
  std::vector<std::size_t> bad_;
  std::vector<bool> is_slow_;
  std::vector<bool> is_bad_;
};

std::vector<std::size_t> as_listed(const MeasuredHosts& hosts) {
  std::vector<std::size_t> order(hosts.ring.order.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

std::string rate_words(const MeasuredHosts& hosts, const RingRate& rate) {
  const auto& names = hosts.matrix.hosts;
  if (rate.gigabits <= 0) {
    return fmt::format("none ({}, {})", names[rate.from], names[rate.to]);
  }
  return fmt::format("{} ({}, {})", gigabits(rate.gigabits), names[rate.from], names[rate.to]);
}

// ", 2 are slow": flows that share a slow uplink share its rate, so their number counts.
std::string slow_words(const MeasuredHosts& hosts, const std::vector<std::size_t>& order) {
  std::size_t count = 0;
  const auto slow = slow_links(hosts.matrix);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t next = order[(i + 1) % order.size()];
    count += std::any_of(slow.begin(), slow.end(), [&](const SlowLink& link) {
      return (link.from == order[i] && link.to == next) ||
             (link.from == next && link.to == order[i]);
    });
  }
  if (count == 0) return ", none is slow";
  return fmt::format(", {} {} slow", count, count == 1 ? "is" : "are");
}

std::size_t not_measured(const HostMatrix& matrix) {
  std::size_t count = 0;
  for (std::size_t a = 0; a < matrix.hosts.size(); ++a) {
    for (std::size_t b = 0; b < matrix.hosts.size(); ++b) count += a != b && !matrix.of(a, b);
  }
  return count;
}

}  // namespace

Result<MeasuredHosts> measured_hosts(HostMatrix matrix, int hosts, const std::string& source) {
  MeasuredHosts all;
  const auto wanted = static_cast<std::size_t>(hosts);
  if (matrix.hosts.size() < wanted) {
    return fail(Errc::invalid_argument, fmt::format("{} has {} hosts, the cluster {}",
                                                    printable(source), matrix.hosts.size(), hosts));
  }
  std::vector<std::size_t> beyond;
  for (std::size_t i = wanted; hosts > 0 && i < matrix.hosts.size(); ++i) {
    beyond.push_back(i);
    all.left_out.push_back(matrix.hosts[i]);
  }
  all.matrix = beyond.empty() ? std::move(matrix) : without(matrix, beyond);
  all.ring = GDRX_TRY(ring_of_hosts(all.matrix));
  return all;
}

std::vector<std::string> names_in_order(const MeasuredHosts& hosts) {
  std::vector<std::string> names;
  for (const std::size_t host : hosts.ring.order) names.push_back(hosts.matrix.hosts[host]);
  return names;
}

std::string hosts_text(const MeasuredHosts& hosts, const std::string& source) {
  std::string text =
      fmt::format("\nhosts in the order of the ring, as {} has their links\n", printable(source));
  text += wrapped(fmt::format("  {}", fmt::join(names_in_order(hosts), " ")), 4) + "\n";
  text += perf::shared_hosts_text(hosts.matrix.hosts);
  if (hosts.matrix.hosts.size() < 2) return text;
  const RingRate listed = ring_rate(hosts.matrix, as_listed(hosts));
  const RingRate& slowest = hosts.ring.slowest;
  text +=
      wrapped("  slowest link: " + rate_words(hosts, slowest) + slow_words(hosts, hosts.ring.order),
              4) +
      "\n";
  if (hosts.ring.order != as_listed(hosts)) {
    // The ring may be slower within noise, for fewer slow links.
    const double less =
        slowest.gigabits > 0 ? std::max(0.0, 100 * (1 - listed.gigabits / slowest.gigabits)) : 0;
    text += wrapped(fmt::format("  as listed: {}{}; {:.0f} % less", rate_words(hosts, listed),
                                slow_words(hosts, as_listed(hosts)), less),
                    4) +
            "\n";
  }
  if (!hosts.ring.exact) {
    text += fmt::format("of so many hosts not all orders are tried: none has more than {}\n",
                        gigabits(hosts.ring.bound));
  }
  text += SlowLines(hosts).text();
  if (const std::size_t lacking = not_measured(hosts.matrix); lacking > 0) {
    text += fmt::format("{} ways were not measured: as the other way, or as none\n", lacking);
  }
  if (!hosts.left_out.empty()) {
    text += wrapped(fmt::format("  more than the cluster has, left out: {}",
                                fmt::join(hosts.left_out, " ")),
                    4) +
            "\n";
  }
  return text;
}

void add_hosts_json(nlohmann::ordered_json& json, const MeasuredHosts& hosts) {
  auto slow = nlohmann::ordered_json::array();
  for (const SlowLink& link : slow_links(hosts.matrix)) {
    slow.push_back({{"from", hosts.matrix.hosts[link.from]},
                    {"to", hosts.matrix.hosts[link.to]},
                    {"gigabits", link.gigabits},
                    {"usual_gigabits", link.usual}});
  }
  json["host_names"] = names_in_order(hosts);
  json["host_ring"] = {{"slowest_gigabits", hosts.ring.slowest.gigabits},
                       {"as_listed_gigabits", ring_rate(hosts.matrix, as_listed(hosts)).gigabits},
                       {"bound_gigabits", hosts.ring.bound},
                       {"exact", hosts.ring.exact},
                       {"slow", std::move(slow)},
                       {"left_out", hosts.left_out}};
}

Result<std::string> place_hostfile(const topo::Placement& placement) {
  if (placement.host_names.empty()) {
    return fail(Errc::invalid_argument, "--format hostfile needs the names of --matrix");
  }
  std::vector<std::size_t> ranks(placement.host_names.size(), 0);
  for (const topo::RankPlace& rank : placement.ranks) ++ranks[static_cast<std::size_t>(rank.host)];
  std::string text;
  for (std::size_t host = 0; host < ranks.size(); ++host) {
    const std::string& name = placement.host_names[host];
    if (!topo::is_own_name(name)) {
      return fail(Errc::invalid_argument,
                  name +
                      " is no host's name: several processes of the matrix ran on one host, or "
                      "its name is no plain word");
    }
    if (ranks[host] > 0) text += fmt::format("{} slots={}\n", name, ranks[host]);
  }
  return text;
}

}  // namespace gdrx::tools
