// SPDX-License-Identifier: Apache-2.0
// Sends and receives: any number, of any sizes, each waiting for nothing but its own peer.
#include <algorithm>
#include <random>
#include <string>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

std::vector<float> message(int from, int to, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(from * 64 + to, i);
  return values;
}

gdrxResult_t send(const std::vector<float>& out, int to, gdrxComm_t comm,
                  gdrxRequest_t* request = nullptr) {
  return gdrxSend(out.data(), out.size(), gdrxFloat32, to, comm, nullptr, request);
}

gdrxResult_t receive(std::vector<float>& in, int from, gdrxComm_t comm,
                     gdrxRequest_t* request = nullptr) {
  return gdrxRecv(in.data(), in.size(), gdrxFloat32, from, comm, nullptr, request);
}

constexpr std::size_t kMiB = (1U << 20) / sizeof(float);

TEST(Pairs, OfOneGroupMayHaveMessagesOfDifferentSizes) {
  const World world(3);
  world.run([](int rank, gdrxComm_t comm) {
    const std::vector<float> large = message(0, 1, kMiB), small = message(0, 2, kMiB / 16);
    std::vector<float> in(rank == 1 ? large.size() : small.size());
    ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
    if (rank == 0) {
      EXPECT_EQ(send(large, 1, comm), gdrxSuccess);
      EXPECT_EQ(send(small, 2, comm), gdrxSuccess);
    } else {
      EXPECT_EQ(receive(in, 0, comm), gdrxSuccess);
    }
    ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
    if (rank > 0) {
      EXPECT_EQ(in, rank == 1 ? large : small);
    }
  });
}

TEST(Pairs, AreDoneInAnyOrderByWhoWaitsForEach) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    const std::vector<float> out = message(rank, 1 - rank, kMiB);
    std::vector<float> in(kMiB);
    if (rank == 0) {
      ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
      EXPECT_EQ(send(out, 1, comm), gdrxSuccess);
      EXPECT_EQ(receive(in, 1, comm), gdrxSuccess);
      ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
    } else {
      ASSERT_EQ(receive(in, 0, comm), gdrxSuccess) << gdrxGetLastError(comm);
      ASSERT_EQ(send(out, 0, comm), gdrxSuccess) << gdrxGetLastError(comm);
    }
    EXPECT_EQ(in, message(1 - rank, rank, kMiB));
  });
}

// Rank 0's collective is first, and waits for rank 1, which waits for the message.
TEST(Pairs, WaitForNoCollective) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    const std::vector<float> out = message(0, 1, kMiB);
    std::vector<float> in(kMiB), sum(100, 1.0F);
    gdrxRequest_t request = nullptr;
    if (rank == 0) {
      ASSERT_EQ(gdrxAllReduce(sum.data(), sum.data(), sum.size(), gdrxFloat32, gdrxSum, comm,
                              nullptr, &request),
                gdrxSuccess);
      ASSERT_EQ(send(out, 1, comm), gdrxSuccess) << gdrxGetLastError(comm);
      ASSERT_EQ(gdrxWait(&request), gdrxSuccess);
    } else {
      ASSERT_EQ(receive(in, 0, comm), gdrxSuccess) << gdrxGetLastError(comm);
      ASSERT_EQ(gdrxAllReduce(sum.data(), sum.data(), sum.size(), gdrxFloat32, gdrxSum, comm,
                              nullptr, nullptr),
                gdrxSuccess);
      EXPECT_EQ(in, out);
    }
    EXPECT_EQ(sum.back(), 2.0F);
  });
}

TEST(Pairs, MatchManyMessagesOfAGroupInTheirOrderAndEachHasItsRequest) {
  constexpr std::size_t kMessages = 9;
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<std::vector<float>> out, in;
    std::vector<gdrxRequest_t> requests(2 * kMessages);
    for (std::size_t i = 0; i < kMessages; ++i) {
      out.push_back(message(rank, static_cast<int>(i), i * i * 5000));
      in.emplace_back(out.back().size());
    }
    ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
    for (std::size_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(receive(in[i], 1 - rank, comm, &requests[2 * i]), gdrxSuccess);
      EXPECT_EQ(send(out[i], 1 - rank, comm, &requests[2 * i + 1]), gdrxSuccess);
    }
    ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
    std::reverse(requests.begin(), requests.end());
    for (gdrxRequest_t& request : requests) EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
    for (std::size_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(in[i], message(1 - rank, static_cast<int>(i), in[i].size())) << i;
    }
  });
}

TEST(Pairs, GoFromARankToItself) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    const std::vector<float> out = message(rank, rank, 70'001), none;
    std::vector<float> in(out.size()), nothing;
    ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
    EXPECT_EQ(send(out, rank, comm), gdrxSuccess);
    EXPECT_EQ(send(none, rank, comm), gdrxSuccess);
    EXPECT_EQ(receive(in, rank, comm), gdrxSuccess);
    EXPECT_EQ(receive(nothing, rank, comm), gdrxSuccess);
    ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
    EXPECT_EQ(in, out);
  });
}

TEST(Pairs, ThatDifferInCountAreNamedWithBothCalls) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> data(200);
    const auto length = static_cast<std::size_t>(rank == 0 ? 100 : 200);
    data.resize(length);
    gdrxResult_t result = rank == 0 ? send(data, 1, comm) : receive(data, 0, comm);
    if (rank == 0 && result == gdrxSuccess) result = receive(data, 1, comm);
    ASSERT_NE(result, gdrxSuccess);
    const std::string text = gdrxGetLastError(comm);
    EXPECT_NE(text.find("100 float"), std::string::npos) << text;
    EXPECT_NE(text.find("200 float"), std::string::npos) << text;
  });
}

class AllToAll : public testing::TestWithParam<std::tuple<int, const char*>> {};

// As all-to-all-v does it: a message of its own size to and from everybody, itself too.
TEST_P(AllToAll, OfRandomSizesIsRight) {
  const auto [ranks, transport] = GetParam();
  const World world(ranks, with(nullptr, transport));
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto size_of = [seed](int from, int to) {
      std::mt19937 random(seed * 4099 + static_cast<unsigned>(from * 64 + to));
      return random() % 4 == 0 ? std::size_t{0} : std::size_t{random() % 90'000};
    };
    world.run([&, ranks = ranks](int rank, gdrxComm_t comm) {
      std::vector<std::vector<float>> out, in;
      for (int peer = 0; peer < ranks; ++peer) {
        out.push_back(message(rank, peer, size_of(rank, peer)));
        in.emplace_back(size_of(peer, rank));
      }
      ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
      for (int i = 0; i < ranks; ++i) {
        const int peer = (rank + i) % ranks;
        EXPECT_EQ(send(out[static_cast<std::size_t>(peer)], peer, comm), gdrxSuccess);
        EXPECT_EQ(receive(in[static_cast<std::size_t>(i)], i, comm), gdrxSuccess);
      }
      ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
      for (int peer = 0; peer < ranks; ++peer) {
        EXPECT_EQ(in[static_cast<std::size_t>(peer)], message(peer, rank, size_of(peer, rank)));
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, AllToAll,
                         testing::Combine(testing::Values(2, 3, 8), testing::Values("auto", "tcp")),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "Over" +
                                  (std::string(std::get<1>(info.param)) == "tcp" ? "Tcp" : "Ucx");
                         });
INSTANTIATE_TEST_SUITE_P(ManyRanks, AllToAll,
                         testing::Values(std::tuple<int, const char*>{33, "auto"}),
                         [](const auto&) { return "33OverUcx"; });

}  // namespace
}  // namespace gdrx::test
