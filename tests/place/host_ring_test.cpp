// SPDX-License-Identifier: Apache-2.0
// Orders of hosts by what was measured between them, against all orders where there are few.
#include "topo/place/host_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace gdrx::topo {
namespace {

HostMatrix matrix_of(std::size_t hosts, double rate) {
  HostMatrix matrix;
  for (std::size_t i = 0; i < hosts; ++i) matrix.hosts.push_back("h" + std::to_string(i));
  matrix.gigabits.assign(hosts * hosts, rate);
  return matrix;
}

void set(HostMatrix& matrix, std::size_t a, std::size_t b, std::optional<double> rate) {
  matrix.gigabits[a * matrix.hosts.size() + b] = rate;
}
void set_both(HostMatrix& matrix, std::size_t a, std::size_t b, std::optional<double> rate) {
  set(matrix, a, b, rate);
  set(matrix, b, a, rate);
}

HostRing ring_of(const HostMatrix& matrix) {
  auto ring = ring_of_hosts(matrix);
  EXPECT_TRUE(ring) << ring.error().what;
  std::vector<std::size_t> all = ring->order;
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);  // each host once
  EXPECT_EQ(all.size(), matrix.hosts.size());
  return *ring;
}

std::vector<std::size_t> as_it_is(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

HostMatrix random_matrix(std::size_t hosts, std::mt19937_64& random) {
  HostMatrix matrix = matrix_of(hosts, 0);
  for (auto& rate : matrix.gigabits) rate = static_cast<double>(random() % 100);
  return matrix;
}

TEST(RingOfHosts, StaysAsItIsWhereAllLinksAreEqual) {
  for (const std::size_t hosts : {1u, 2u, 3u, 8u, 16u, 17u, 40u}) {
    EXPECT_EQ(ring_of(matrix_of(hosts, 100)).order, as_it_is(hosts)) << hosts;
  }
}

TEST(RingOfHosts, StaysAsItIsWhereLinksDifferByNoise) {
  std::mt19937_64 random(3);
  HostMatrix matrix = matrix_of(8, 0);
  for (auto& rate : matrix.gigabits) rate = 97 + static_cast<double>(random() % 100) / 50;
  EXPECT_EQ(ring_of(matrix).order, as_it_is(8));
}

TEST(RingOfHosts, GoesAroundASlowCable) {
  HostMatrix matrix = matrix_of(8, 100);
  set_both(matrix, 3, 4, 10);
  const HostRing ring = ring_of(matrix);
  EXPECT_DOUBLE_EQ(ring.slowest.gigabits, 100);
  EXPECT_DOUBLE_EQ(ring_rate(matrix, as_it_is(8)).gigabits, 10);
  EXPECT_TRUE(ring.exact);
}

TEST(RingOfHosts, GoesAroundACableThatIsSlowOneWay) {
  HostMatrix matrix = matrix_of(5, 100);
  set(matrix, 2, 1, 10);
  EXPECT_DOUBLE_EQ(ring_of(matrix).slowest.gigabits, 100);
}

TEST(RingOfHosts, CrossesSlowUplinksTwiceAndNoMore) {
  for (const std::size_t hosts : {8u, 24u}) {  // even ones on one switch, odd ones on the other
    HostMatrix matrix = matrix_of(hosts, 100);
    for (std::size_t a = 0; a < hosts; ++a) {
      for (std::size_t b = 0; b < hosts; ++b) {
        if (a % 2 != b % 2) set(matrix, a, b, 40);
      }
    }
    const HostRing ring = ring_of(matrix);
    int crossed = 0;
    for (std::size_t i = 0; i < hosts; ++i) {
      crossed += ring.order[i] % 2 != ring.order[(i + 1) % hosts] % 2;
    }
    EXPECT_EQ(crossed, 2) << hosts;
    EXPECT_DOUBLE_EQ(ring.bound, 40);
  }
}

TEST(RingOfHosts, IsTheBestOfAllWhereThereAreFew) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t hosts = 3 + static_cast<std::size_t>(random() % 5);
    const HostMatrix matrix = random_matrix(hosts, random);
    double best = 0;
    for (auto order = as_it_is(hosts); order[0] == 0;) {
      best = std::max(best, ring_rate(matrix, order).gigabits);
      if (!std::next_permutation(order.begin(), order.end())) break;
    }
    const HostRing ring = ring_of(matrix);
    EXPECT_DOUBLE_EQ(ring.bound, best);
    EXPECT_GE(ring.slowest.gigabits, 0.95 * best);
  }
}

TEST(RingOfHosts, OfManyIsWithinItsBoundAndNoWorseThanTheOrderAsItIs) {
  std::mt19937_64 random(11);
  for (const std::size_t hosts : {17u, 30u, 64u}) {
    const HostMatrix matrix = random_matrix(hosts, random);
    const HostRing ring = ring_of(matrix);
    EXPECT_FALSE(ring.exact);
    EXPECT_LE(ring.slowest.gigabits, ring.bound);
    EXPECT_GE(ring.slowest.gigabits, ring_rate(matrix, as_it_is(hosts)).gigabits);
    EXPECT_EQ(ring_of(matrix).order, ring.order);  // the same each time
  }
}

TEST(RingOfHosts, OfManyFindsTheRingThatIsThere) {
  HostMatrix matrix = matrix_of(40, 10);
  for (std::size_t i = 0; i < 40; ++i) set_both(matrix, i * 7 % 40, (i + 1) * 7 % 40, 100);
  const HostRing ring = ring_of(matrix);
  EXPECT_DOUBLE_EQ(ring.bound, 100);
  EXPECT_DOUBLE_EQ(ring.slowest.gigabits, 100);
}

// A ring of 60 Gb/s hidden among slower and faster links, so that a search may lose it again: in
// each of these one did, when only the rate of the ring it had held was kept.
TEST(RingOfHosts, OfManyKeepsTheBestRingThatItHeld) {
  for (const auto& [hosts, seed] : std::vector<std::pair<std::size_t, unsigned>>{
           {17, 23}, {17, 275}, {20, 54}, {20, 146}, {24, 11}, {24, 69}, {48, 34}, {48, 137}}) {
    std::mt19937_64 random(seed);
    HostMatrix matrix = matrix_of(hosts, 0);
    std::vector<std::size_t> hidden = as_it_is(hosts);
    for (std::size_t i = hosts; i-- > 1;) std::swap(hidden[i], hidden[random() % (i + 1)]);
    for (std::size_t a = 0; a < hosts; ++a) {
      for (std::size_t b = a + 1; b < hosts; ++b) {
        const bool fast = random() % 8 == 0;
        set_both(matrix, a, b, fast ? 60 + random() % 40 : random() % 58);
      }
    }
    for (std::size_t i = 0; i < hosts; ++i) {
      set_both(matrix, hidden[i], hidden[(i + 1) % hosts], 60 + random() % 3);
    }
    const double held = ring_rate(matrix, hidden).gigabits;
    EXPECT_GE(ring_of(matrix).slowest.gigabits, 0.95 * held) << hosts << " " << seed;
  }
}

TEST(RingOfHosts, LeavesAPairThatFailedOrWasNotTried) {
  HostMatrix matrix = matrix_of(5, 100);
  set_both(matrix, 0, 1, 0);
  set_both(matrix, 2, 3, std::nullopt);
  set(matrix, 3, 4, std::nullopt);  // the other way tells
  EXPECT_DOUBLE_EQ(ring_of(matrix).slowest.gigabits, 100);
}

TEST(RingOfHosts, WhereNoRingHoldsIsOneAllTheSame) {
  HostMatrix matrix = matrix_of(4, 100);
  for (std::size_t b = 0; b < 4; ++b) set_both(matrix, 2, b, 0);
  EXPECT_DOUBLE_EQ(ring_of(matrix).slowest.gigabits, 0);
  EXPECT_DOUBLE_EQ(ring_of(matrix_of(20, 0)).slowest.gigabits, 0);
}

TEST(RingOfHosts, OfAnotherSizeIsRefused) {
  HostMatrix matrix = matrix_of(4, 1);
  matrix.gigabits.pop_back();
  EXPECT_FALSE(ring_of_hosts(matrix));
  EXPECT_FALSE(ring_of_hosts({}));
  EXPECT_FALSE(ring_of_hosts(matrix_of(kMostRingHosts + 1, 1)));
}

TEST(SlowLinks, AreACableAHostAndUplinks) {
  HostMatrix cable = matrix_of(8, 100);
  set(cable, 3, 4, 60);
  ASSERT_EQ(slow_links(cable).size(), 1u);
  EXPECT_EQ(slow_links(cable)[0].from, 3u);
  EXPECT_DOUBLE_EQ(slow_links(cable)[0].usual, 100);
  EXPECT_TRUE(slow_hosts(cable, slow_links(cable)).empty());

  HostMatrix host = matrix_of(3, 100);
  for (const std::size_t b : {0u, 1u}) set_both(host, 2, b, 10);
  EXPECT_EQ(slow_links(host).size(), 4u);
  EXPECT_EQ(slow_hosts(host, slow_links(host)), std::vector<std::size_t>{2});

  HostMatrix uplinks = matrix_of(8, 100);
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = 0; b < 8; ++b) {
      if (a / 4 != b / 4) set(uplinks, a, b, 40);
    }
  }
  EXPECT_EQ(slow_links(uplinks).size(), 32u);
  EXPECT_TRUE(slow_hosts(uplinks, slow_links(uplinks)).empty());
}

TEST(SlowLinks, AreNotAllTheOthersOfOnePairWithinAMachine) {
  HostMatrix matrix = matrix_of(6, 100);
  set_both(matrix, 0, 1, 800);
  EXPECT_TRUE(slow_links(matrix).empty());
}

TEST(SlowLinks, OfFewHostsAreNotAllTheOthersOfOnePairWithinAMachine) {
  for (const std::size_t hosts : {4u, 5u}) {
    HostMatrix matrix = matrix_of(hosts, 100);
    set_both(matrix, 0, 1, 800);
    EXPECT_TRUE(slow_links(matrix).empty()) << hosts;
    set_both(matrix, 2, 3, 10);
    EXPECT_EQ(slow_links(matrix).size(), 2u) << hosts;
  }
}

TEST(SlowLinks, AreThoseThatFailed) {
  HostMatrix matrix = matrix_of(2, 0);
  EXPECT_EQ(slow_links(matrix).size(), 2u);
  matrix.gigabits.assign(4, std::nullopt);
  EXPECT_TRUE(slow_links(matrix).empty());
}

}  // namespace
}  // namespace gdrx::topo
