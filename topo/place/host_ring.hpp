// SPDX-License-Identifier: Apache-2.0
// Hosts in the order of a ring, by what was measured between them. Pure functions; the same figures
// give the same order everywhere.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::topo {

/// Gigabits a second from each host to each other. 0: it was tried and failed; nothing: not tried.
struct HostMatrix {
  std::vector<std::string> hosts;
  std::vector<std::optional<double>> gigabits;  // hosts x hosts, a row for each sender

  const std::optional<double>& of(std::size_t from, std::size_t to) const {
    return gigabits[from * hosts.size() + to];
  }
};

/// A process that is no host of its own name has a number behind this: the second one of a host, or
/// one whose name is no plain word.
inline constexpr char kNoHost = ':';
inline bool is_own_name(const std::string& name) { return name.find(kNoHost) == name.npos; }

/// As many hosts as an order is made for: the figures of all pairs are in memory.
inline constexpr std::size_t kMostRingHosts = 1024;

/// Both ways of a pair as one figure, as rings go either way: the slower one. A way that was not
/// tried is as the other; a pair that was not tried at all is as one that failed, 0.
double both_ways(const HostMatrix& matrix, std::size_t a, std::size_t b);

struct SlowLink {
  std::size_t from = 0;
  std::size_t to = 0;
  double gigabits = 0;
  double usual = 0;  // for this sender or this receiver
};
/// Below 0.7 of what is usual: of the upper quartile of the sender's row or of the receiver's
/// column, whichever is more. A host that is slow as a whole is slow by the columns of the others.
/// The upper quartile (of three or four figures the second best), as uplinks that a half of the
/// hosts share move the median, and one pair within a machine the best. 0.7, as two runs of one
/// link differ by less and two flows that share one by more.
std::vector<SlowLink> slow_links(const HostMatrix& matrix);

/// Hosts of which every measured link is slow, while others have good ones.
std::vector<std::size_t> slow_hosts(const HostMatrix& matrix, const std::vector<SlowLink>& slow);

struct RingRate {
  double gigabits = 0;  // of its slowest link
  std::size_t from = 0;
  std::size_t to = 0;
};
/// Of hosts that send to the next, and the last to the first.
RingRate ring_rate(const HostMatrix& matrix, const std::vector<std::size_t>& order);

struct HostRing {
  std::vector<std::size_t> order;  // host 0 is first
  RingRate slowest;
  bool exact = false;  // no ring is faster by more than 5 %
  double bound = 0;    // no ring's slowest link is faster than this
};
/// The ring whose slowest link is fastest. Within 5 % of that, which is noise, the ring of the
/// fewest steps down (of 0.7, from the fastest link). Of those the order of the matrix, if it is
/// one, else up to 16 hosts the first one in the order of the dictionary. Exact for up to 16 hosts.
/// For more a search from two starts with exchanges, which keeps the best that it has seen.
/// Error: no host, more than kMostRingHosts, or a matrix of another size.
Result<HostRing> ring_of_hosts(const HostMatrix& matrix);

}  // namespace gdrx::topo
