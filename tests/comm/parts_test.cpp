// SPDX-License-Identifier: Apache-2.0
// Collectives that move each rank's own parts, and sums of the ranks before.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <tuple>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using Counts = std::vector<std::size_t>;
using Floats = std::vector<float>;

constexpr float kUntouched = -77.0F;

/// Element i of what `from` has for `to`.
float element(int from, int to, std::size_t i) { return value_of(from * 64 + to, i); }

/// A buffer with a part for each rank and a gap before each.
struct Layout {
  Counts counts, displs;
  std::size_t end = 0;
  explicit Layout(Counts of_ranks) : counts(std::move(of_ranks)) {
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      displs.push_back(end + rank % 3);
      end = displs.back() + counts[rank];
    }
  }
  template <class Element>
  Floats filled(Element&& element_of) const {
    Floats values(end, kUntouched);
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      for (std::size_t i = 0; i < counts[rank]; ++i) {
        values[displs[rank] + i] = element_of(static_cast<int>(rank), i);
      }
    }
    return values;
  }
};

std::size_t random_count(int from, int to, unsigned seed, std::size_t most) {
  std::mt19937 random(seed * 4099 + static_cast<unsigned>(from * 64 + to));
  return random() % 4 == 0 ? std::size_t{0} : std::size_t{random() % most};
}

class Parts : public testing::TestWithParam<std::tuple<int, const char*>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  std::size_t most() const { return ranks() > 8 ? 9'000 : 90'000; }
  Counts counts_of_all(unsigned seed) const {
    Counts counts;
    for (int rank = 0; rank < ranks(); ++rank)
      counts.push_back(random_count(rank, 0, seed, most()));
    return counts;
  }
};

TEST_P(Parts, OfAnAllToAllGoToTheirRanks) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1009}, most()}) {
    world.run([&](int rank, gdrxComm_t comm) {
      Floats in, expected;
      for (int peer = 0; peer < ranks(); ++peer) {
        for (std::size_t i = 0; i < count; ++i) {
          in.push_back(element(rank, peer, i));
          expected.push_back(element(peer, rank, i));
        }
      }
      Floats out(in.size());
      ASSERT_EQ(gdrxAllToAll(in.data(), out.data(), count, gdrxFloat32, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(out, expected) << count;
      ASSERT_EQ(gdrxAllToAll(in.data(), in.data(), count, gdrxFloat32, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(in, expected) << "in place, " << count;
    });
  }
}

TEST_P(Parts, OfRandomSizesGoToTheirRanksAndTouchNothingElse) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  for (unsigned seed = 1; seed <= 3; ++seed) {
    world.run([&](int rank, gdrxComm_t comm) {
      Counts to, from;
      for (int peer = 0; peer < ranks(); ++peer) {
        to.push_back(random_count(rank, peer, seed, most()));
        from.push_back(random_count(peer, rank, seed, most()));
      }
      const Layout sends(to), receives(from);
      const Floats in =
          sends.filled([&](int peer, std::size_t i) { return element(rank, peer, i); });
      Floats out(receives.end, kUntouched);
      ASSERT_EQ(gdrxAllToAllv(in.data(), sends.counts.data(), sends.displs.data(), out.data(),
                              receives.counts.data(), receives.displs.data(), gdrxFloat32, comm,
                              nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(out,
                receives.filled([&](int peer, std::size_t i) { return element(peer, rank, i); }));
    });
  }
}

// What comes from a rank replaces what goes to it: as many elements both ways.
TEST_P(Parts, OfRandomSizesAreExchangedInPlace) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  world.run([&](int rank, gdrxComm_t comm) {
    Counts counts;
    for (int peer = 0; peer < ranks(); ++peer) {
      counts.push_back(random_count(std::min(rank, peer), std::max(rank, peer), 5, 9 * most()));
    }
    const Layout both(counts);
    Floats data = both.filled([&](int peer, std::size_t i) { return element(rank, peer, i); });
    ASSERT_EQ(
        gdrxAllToAllv(data.data(), both.counts.data(), both.displs.data(), data.data(),
                      both.counts.data(), both.displs.data(), gdrxFloat32, comm, nullptr, nullptr),
        gdrxSuccess)
        << gdrxGetLastError(comm);
    EXPECT_EQ(data, both.filled([&](int peer, std::size_t i) { return element(peer, rank, i); }));
  });
}

// Who has little for all does not know whether the others have, too; calls follow each other.
TEST_P(Parts, OfRanksWithMuchAndWithLittleGoToTheirRanks) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  world.run([&](int rank, gdrxComm_t comm) {
    const auto count = [&](int from, int to, unsigned round) {
      const bool much = (static_cast<unsigned>(from) + round) % 3 == 0;
      return random_count(from, to, round, much ? 9'000 : 5);
    };
    for (unsigned round = 0; round < 30; ++round) {
      Counts to, from, both;
      for (int peer = 0; peer < ranks(); ++peer) {
        to.push_back(count(rank, peer, round));
        from.push_back(count(peer, rank, round));
        both.push_back(count(std::min(rank, peer), std::max(rank, peer), round));
      }
      const Layout sends(to), receives(from), alike(both);
      const auto given = [&](int peer, std::size_t i) { return element(rank, peer, i); };
      const auto taken = [&](int peer, std::size_t i) { return element(peer, rank, i); };
      Floats in = sends.filled(given), out(receives.end, kUntouched), same = alike.filled(given);
      ASSERT_EQ(gdrxAllToAllv(in.data(), sends.counts.data(), sends.displs.data(), out.data(),
                              receives.counts.data(), receives.displs.data(), gdrxFloat32, comm,
                              nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(out, receives.filled(taken)) << round;
      ASSERT_EQ(gdrxAllToAllv(same.data(), alike.counts.data(), alike.displs.data(), same.data(),
                              alike.counts.data(), alike.displs.data(), gdrxFloat32, comm, nullptr,
                              nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(same, alike.filled(taken)) << "in place, " << round;
    }
  });
}

TEST_P(Parts, AreGatheredAndScatteredAtEveryRoot) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  for (const int root : {0, ranks() / 2, ranks() - 1}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{7}, most()}) {
      world.run([&, root = root](int rank, gdrxComm_t comm) {
        const bool is_root = rank == root;
        const std::size_t whole = is_root ? count * static_cast<std::size_t>(ranks()) : 0;
        Floats mine(count), all(whole), back(count);
        for (std::size_t i = 0; i < count; ++i) mine[i] = element(rank, 0, i);
        ASSERT_EQ(gdrxGather(mine.data(), is_root ? all.data() : nullptr, count, gdrxFloat32, root,
                             comm, nullptr, nullptr),
                  gdrxSuccess)
            << gdrxGetLastError(comm);
        for (std::size_t i = 0; i < whole; ++i) {
          ASSERT_EQ(all[i], element(static_cast<int>(i / count), 0, i % count)) << i;
        }
        ASSERT_EQ(gdrxScatter(is_root ? all.data() : nullptr, back.data(), count, gdrxFloat32, root,
                              comm, nullptr, nullptr),
                  gdrxSuccess)
            << gdrxGetLastError(comm);
        EXPECT_EQ(back, mine);
        float* const own = is_root ? all.data() + static_cast<std::size_t>(rank) * count : nullptr;
        EXPECT_EQ(gdrxGather(is_root ? own : mine.data(), all.data(), count, gdrxFloat32, root,
                             comm, nullptr, nullptr),
                  gdrxSuccess)
            << "in place: " << gdrxGetLastError(comm);
        EXPECT_EQ(gdrxScatter(all.data(), is_root ? own : back.data(), count, gdrxFloat32, root,
                              comm, nullptr, nullptr),
                  gdrxSuccess)
            << "in place: " << gdrxGetLastError(comm);
        if (is_root) {
          EXPECT_TRUE(std::equal(mine.begin(), mine.end(), own));
        } else {
          EXPECT_EQ(back, mine);
        }
      });
    }
  }
}

TEST_P(Parts, OfRandomSizesAreGatheredAndScattered) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  const int root = ranks() / 2;
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const Layout layout(counts_of_all(seed));
    const Floats whole =
        layout.filled([&](int peer, std::size_t i) { return element(peer, root, i); });
    world.run([&](int rank, gdrxComm_t comm) {
      const std::size_t count = layout.counts[static_cast<std::size_t>(rank)];
      Floats mine(count), back(count), all(rank == root ? layout.end : 0, kUntouched);
      for (std::size_t i = 0; i < count; ++i) mine[i] = element(rank, root, i);
      ASSERT_EQ(gdrxGatherv(mine.data(), count, all.data(), layout.counts.data(),
                            layout.displs.data(), gdrxFloat32, root, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      if (rank == root) {
        EXPECT_EQ(all, whole);
      }
      ASSERT_EQ(gdrxScatterv(all.data(), layout.counts.data(), layout.displs.data(), back.data(),
                             count, gdrxFloat32, root, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(back, mine);
    });
  }
}

TEST_P(Parts, OfRandomSizesAreGatheredByAll) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const Layout layout(counts_of_all(seed));
    const Floats whole = layout.filled([](int peer, std::size_t i) { return element(peer, 0, i); });
    world.run([&](int rank, gdrxComm_t comm) {
      const auto self = static_cast<std::size_t>(rank);
      Floats mine(layout.counts[self]), all(layout.end, kUntouched);
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = element(rank, 0, i);
      ASSERT_EQ(gdrxAllGatherv(mine.data(), all.data(), layout.counts.data(), layout.displs.data(),
                               gdrxFloat32, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(all, whole);
      Floats in_place(layout.end, kUntouched);
      std::copy(mine.begin(), mine.end(),
                in_place.begin() + static_cast<std::ptrdiff_t>(layout.displs[self]));
      ASSERT_EQ(gdrxAllGatherv(in_place.data() + layout.displs[self], in_place.data(),
                               layout.counts.data(), layout.displs.data(), gdrxFloat32, comm,
                               nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(in_place, whole);
    });
  }
}

TEST_P(Parts, OfRandomSizesAreReducedForTheirRanks) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const Counts counts = counts_of_all(seed);
    const std::size_t whole = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    world.run([&](int rank, gdrxComm_t comm) {
      const auto self = static_cast<std::size_t>(rank);
      const std::size_t begin =
          std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
      Floats in(whole), out(counts[self]), expected(counts[self], 0.0F);
      for (std::size_t i = 0; i < whole; ++i) in[i] = value_of(rank, i);
      for (std::size_t i = 0; i < out.size(); ++i) {
        for (int r = 0; r < ranks(); ++r) expected[i] += value_of(r, begin + i);
      }
      ASSERT_EQ(gdrxReduceScatterv(in.data(), out.data(), counts.data(), gdrxFloat32, gdrxSum, comm,
                                   nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_EQ(out, expected);
      float* const own = in.data() + begin;
      ASSERT_EQ(gdrxReduceScatterv(in.data(), own, counts.data(), gdrxFloat32, gdrxSum, comm,
                                   nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), own));
    });
  }
}

// In the order of ranks: what floats round to says so.
TEST_P(Parts, BeforeARankAreSummedInTheirOrder) {
  const auto value = [](int rank, std::size_t i) {
    return 1.0F / static_cast<float>(static_cast<std::size_t>(rank) + i % 97 + 1);
  };
  for (const char* algorithm : {"auto", "ring", "one-shot"}) {
    const World world(ranks(), with(algorithm, std::get<1>(GetParam())));
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1009}, most()}) {
      world.run([&](int rank, gdrxComm_t comm) {
        Floats in(count), with_own(count), before(count, kUntouched), sum, sum_before;
        for (std::size_t i = 0; i < count; ++i) {
          in[i] = value(rank, i);
          float total = value(0, i);
          for (int r = 1; r < rank; ++r) total += value(r, i);
          sum_before.push_back(rank == 0 ? kUntouched : total);
          sum.push_back(rank == 0 ? total : total + value(rank, i));
        }
        ASSERT_EQ(gdrxScan(in.data(), with_own.data(), count, gdrxFloat32, gdrxSum, comm, nullptr,
                           nullptr),
                  gdrxSuccess)
            << gdrxGetLastError(comm);
        EXPECT_EQ(with_own, sum) << algorithm << " " << count;
        ASSERT_EQ(gdrxExscan(in.data(), before.data(), count, gdrxFloat32, gdrxSum, comm, nullptr,
                             nullptr),
                  gdrxSuccess)
            << gdrxGetLastError(comm);
        EXPECT_EQ(before, sum_before) << algorithm << " " << count;
        Floats data = in;
        ASSERT_EQ(
            gdrxScan(data.data(), data.data(), count, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
            gdrxSuccess);
        EXPECT_EQ(data, sum) << "in place";
        data = in;
        ASSERT_EQ(gdrxExscan(data.data(), data.data(), count, gdrxFloat32, gdrxSum, comm, nullptr,
                             nullptr),
                  gdrxSuccess);
        EXPECT_EQ(data, rank == 0 ? in : sum_before) << "in place";
      });
    }
  }
}

// Calls of one kind after another, and sends and receives among them, share nothing.
TEST_P(Parts, AreNotTakenForThoseOfOtherCalls) {
  const World world(ranks(), with(nullptr, std::get<1>(GetParam())));
  world.run([&](int rank, gdrxComm_t comm) {
    const int next = (rank + 1) % ranks(), last = (rank + ranks() - 1) % ranks();
    const auto n = static_cast<std::size_t>(ranks());
    Floats token(1, static_cast<float>(rank)), taken(1);
    std::vector<gdrxRequest_t> requests(2);
    ASSERT_EQ(gdrxRecv(taken.data(), 1, gdrxFloat32, last, comm, nullptr, &requests[0]),
              gdrxSuccess);
    for (int round = 0; round < 20; ++round) {
      Floats in(n, static_cast<float>(rank * 100 + round)), out(n), gathered(n);
      ASSERT_EQ(gdrxAllToAll(in.data(), out.data(), 1, gdrxFloat32, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      ASSERT_EQ(gdrxAllGather(in.data(), gathered.data(), 1, gdrxFloat32, comm, nullptr, nullptr),
                gdrxSuccess)
          << gdrxGetLastError(comm);
      for (std::size_t peer = 0; peer < n; ++peer) {
        EXPECT_EQ(out[peer], static_cast<float>(peer * 100 + static_cast<std::size_t>(round)));
        EXPECT_EQ(gathered[peer], out[peer]);
      }
    }
    ASSERT_EQ(gdrxSend(token.data(), 1, gdrxFloat32, next, comm, nullptr, &requests[1]),
              gdrxSuccess);
    for (gdrxRequest_t& request : requests) EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
    EXPECT_EQ(taken[0], static_cast<float>(last));
  });
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, const char*>>& info) {
  const char* const transport = std::get<1>(info.param);
  return std::to_string(std::get<0>(info.param)) + "Over" +
         (transport == nullptr ? std::string("Default") : std::string(transport));
}
INSTANTIATE_TEST_SUITE_P(Ranks, Parts,
                         testing::Combine(testing::Values(1, 2, 3, 8),
                                          testing::Values(static_cast<const char*>(nullptr),
                                                          "tcp")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(ManyRanks, Parts,
                         testing::Values(std::tuple<int, const char*>{33, nullptr}), name_of);

}  // namespace
}  // namespace gdrx::test
