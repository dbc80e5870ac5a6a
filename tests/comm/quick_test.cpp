// SPDX-License-Identifier: Apache-2.0
// Small calls that are made in one go, beside calls that are not.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

gdrxResult_t sum(const std::vector<float>& in, std::vector<float>& out, gdrxComm_t comm,
                 gdrxRequest_t* request = nullptr) {
  out.assign(in.size(), -1.0F);
  return gdrxAllReduce(in.data(), out.data(), in.size(), gdrxFloat32, gdrxSum, comm, nullptr,
                       request);
}

std::vector<float> input_of(int rank, std::size_t count) {
  std::vector<float> in(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = value_of(rank, i);
  return in;
}

std::vector<float> sum_of(int ranks, std::size_t count) {
  std::vector<float> sum(count);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) sum[i] += value_of(rank, i);
  }
  return sum;
}

// The size of what stands beside the stage, of a block, and what is cut into blocks.
constexpr std::size_t kCounts[] = {1, 20, 21, 1024, 65536, 65537, 1, 200000, 20};

void make_calls(int rank, int ranks, gdrxComm_t comm) {
  for (int round = 0; round < 40; ++round) {
    for (const std::size_t count : kCounts) {
      const auto in = input_of(rank, count);
      std::vector<float> out;
      // This rank waits for it, that one posts it, and a third is late.
      if ((rank + round) % 3 == 0) {
        gdrxRequest_t request = nullptr;
        ASSERT_EQ(sum(in, out, comm, &request), gdrxSuccess);
        ASSERT_EQ(gdrxWait(&request), gdrxSuccess);
      } else {
        if ((rank + round) % 7 == 0) std::this_thread::sleep_for(50us);
        ASSERT_EQ(sum(in, out, comm), gdrxSuccess) << gdrxGetLastError(comm);
      }
      ASSERT_EQ(out, sum_of(ranks, count)) << "rank " << rank << ", " << count;
    }
    ASSERT_EQ(gdrxBarrier(comm, nullptr, nullptr), gdrxSuccess);
  }
}

TEST(Quick, CallsMatchPostedAndLateOnes) {
  for (const int ranks : {1, 2, 3}) {
    const World world(ranks);
    world.run([&](int rank, gdrxComm_t comm) { make_calls(rank, ranks, comm); });
  }
}

// In place, averaged, and of a type with another kernel.
TEST(Quick, CallsTakeEveryOperatorAndType) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    for (int round = 0; round < 3; ++round) {
      std::vector<double> both{1.0 + rank, 4.0};
      ASSERT_EQ(
          gdrxAllReduce(both.data(), both.data(), 2, gdrxFloat64, gdrxAvg, comm, nullptr, nullptr),
          gdrxSuccess);
      EXPECT_EQ(both, (std::vector<double>{1.5, 4.0}));
      std::vector<signed char> most{static_cast<signed char>(rank), -3};
      ASSERT_EQ(
          gdrxAllReduce(most.data(), most.data(), 2, gdrxInt8, gdrxMax, comm, nullptr, nullptr),
          gdrxSuccess);
      EXPECT_EQ(most, (std::vector<signed char>{1, -3}));
    }
  });
}

/// Of a call of each other collective that is made in one block: its result, and what it must be.
struct Other {
  int rank;
  int ranks;
  std::size_t count;  // of a part
  bool in_place;
  std::vector<float> got{}, expected{};

  float value(int from, std::size_t i) const { return value_of(from, i); }
  std::size_t all() const { return count * static_cast<std::size_t>(ranks); }
  std::size_t at(int of) const { return count * static_cast<std::size_t>(of); }

  gdrxResult_t gather(gdrxComm_t comm, gdrxRequest_t* request) {
    got.assign(all(), -1.0F);
    input = input_of(rank, count);
    expected.clear();
    for (int from = 0; from < ranks; ++from) {
      for (std::size_t i = 0; i < count; ++i) expected.push_back(value(from, i));
    }
    float* const own = got.data() + at(rank);
    if (in_place) std::copy(input.begin(), input.end(), own);
    return gdrxAllGather(in_place ? own : input.data(), got.data(), count, gdrxFloat32, comm,
                         nullptr, request);
  }
  gdrxResult_t scatter(gdrxComm_t comm, gdrxRequest_t* request) {
    input = input_of(rank, all());
    got.assign(count, -1.0F);
    const std::vector<float> sums = sum_of(ranks, all());
    expected.assign(sums.begin() + static_cast<std::ptrdiff_t>(at(rank)),
                    sums.begin() + static_cast<std::ptrdiff_t>(at(rank) + count));
    float* const own = input.data() + at(rank);
    return gdrxReduceScatter(input.data(), in_place ? own : got.data(), count, gdrxFloat32, gdrxSum,
                             comm, nullptr, request);
  }
  gdrxResult_t exchange(gdrxComm_t comm, gdrxRequest_t* request) {
    input = input_of(rank, all());
    got = in_place ? input : std::vector<float>(all(), -1.0F);
    expected.clear();
    for (int from = 0; from < ranks; ++from) {
      for (std::size_t i = 0; i < count; ++i) expected.push_back(value(from, at(rank) + i));
    }
    return gdrxAllToAll(in_place ? got.data() : input.data(), got.data(), count, gdrxFloat32, comm,
                        nullptr, request);
  }
  void check(bool scattered) {
    if (scattered && in_place) got.assign(input.data() + at(rank), input.data() + at(rank) + count);
    EXPECT_EQ(got, expected) << "rank " << rank << ", " << count << (in_place ? " in place" : "");
  }
  std::vector<float> input{};
};

// Beside the stage, in a block, the last that is, and what takes another way.
constexpr std::size_t kParts[] = {0, 1, 10, 21, 1000, 2730, 4096, 8192, 8193};

void make_others(int rank, int ranks, gdrxComm_t comm) {
  constexpr gdrxResult_t (Other::*kCalls[])(gdrxComm_t, gdrxRequest_t*) = {
      &Other::gather, &Other::scatter, &Other::exchange};
  for (int round = 0; round < 24; ++round) {
    for (const std::size_t count : kParts) {
      for (const auto call : kCalls) {
        Other one{rank, ranks, count, round % 2 == 1};
        gdrxRequest_t request = nullptr;
        const bool posted = (rank + round) % 3 == 0;
        if ((rank + round) % 7 == 0) std::this_thread::sleep_for(50us);
        ASSERT_EQ((one.*call)(comm, posted ? &request : nullptr), gdrxSuccess)
            << gdrxGetLastError(comm);
        if (posted) {
          ASSERT_EQ(gdrxWait(&request), gdrxSuccess) << gdrxGetLastError(comm);
        }
        one.check(call == &Other::scatter);
        if (round % 5 == 0) {
          std::vector<float> out;
          ASSERT_EQ(sum(input_of(rank, 5), out, comm), gdrxSuccess);
          ASSERT_EQ(out, sum_of(ranks, 5));
        }
      }
    }
  }
}

TEST(Quick, CallsOfOtherCollectivesMatchPostedAndLateOnes) {
  for (const int ranks : {1, 2, 3}) {
    const World world(ranks);
    world.run([&](int rank, gdrxComm_t comm) { make_others(rank, ranks, comm); });
  }
}

// Of one size: the word in front says what it is.
TEST(Quick, ACollectiveThatDiffersIsNamedOnBothRanks) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    Other one{rank, 2, 4, false};
    for (int i = 0; i < 3; ++i) ASSERT_EQ(one.exchange(comm, nullptr), gdrxSuccess);
    EXPECT_EQ(rank == 0 ? one.exchange(comm, nullptr) : one.scatter(comm, nullptr), gdrxMismatch);
    const std::string said = gdrxGetLastError(comm);
    EXPECT_NE(said.find("allToAll"), std::string::npos) << said;
    EXPECT_NE(said.find("reduceScatter"), std::string::npos) << said;
  });
}

// Small here, and large there.
TEST(Quick, ACountThatTakesAnotherWayIsNamedOnBothRanks) {
  for (const bool gather : {true, false}) {
    const World world(2);
    world.run([&](int rank, gdrxComm_t comm) {
      for (int i = 0; i < 3; ++i) {
        Other small{rank, 2, 4, false};
        ASSERT_EQ(gather ? small.gather(comm, nullptr) : small.exchange(comm, nullptr),
                  gdrxSuccess);
      }
      Other one{rank, 2, rank == 0 ? std::size_t{4} : std::size_t{100'000}, false};
      const auto began = std::chrono::steady_clock::now();
      EXPECT_EQ(gather ? one.gather(comm, nullptr) : one.exchange(comm, nullptr), gdrxMismatch);
      EXPECT_LT(std::chrono::steady_clock::now() - began, 2s);
      const std::string said = gdrxGetLastError(comm);
      EXPECT_NE(said.find("of 4 float"), std::string::npos) << said;
      EXPECT_NE(said.find("of 100000 float"), std::string::npos) << said;
    });
  }
}

TEST(Quick, CallsThatDifferAreNamedOnBothRanks) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> out;
    for (int i = 0; i < 3; ++i) {  // from the second on they may be quick
      ASSERT_EQ(sum({1, 2}, out, comm), gdrxSuccess);
      ASSERT_EQ(sum({1, 2, 3}, out, comm), gdrxSuccess);
    }
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(rank == 0 ? sum({1, 2}, out, comm) : sum({1, 2, 3}, out, comm), gdrxMismatch);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
    const std::string said = gdrxGetLastError(comm);
    EXPECT_NE(said.find("of 2 float"), std::string::npos) << said;
    EXPECT_NE(said.find("of 3 float"), std::string::npos) << said;
  });
}

TEST(Quick, CallsAreWhatTheLastOperationWas) {
  const World world(2);
  world.run([](int, gdrxComm_t comm) {
    std::vector<float> out;
    for (int i = 0; i < 3; ++i) ASSERT_EQ(sum({1, 2}, out, comm), gdrxSuccess);
    gdrxOpInfo_t info{};
    info.size = sizeof info;
    ASSERT_EQ(gdrxCommGetLastOp(comm, &info), gdrxSuccess);
    EXPECT_STREQ(info.algorithm, "one-shot");
    EXPECT_EQ(info.messages_sent, info.plan_sends * info.slices);
    EXPECT_EQ(info.messages_received, info.plan_receives * info.slices);
  });
}

// They are registered for the plan's own use, or the program's; these calls use neither.
TEST(Quick, CallsRunBesideRegisteredMemory) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> all(1000, 1.0F);
    gdrxRegistration_t handle = nullptr;
    ASSERT_EQ(gdrxRegister(comm, all.data(), all.size() * sizeof(float), &handle), gdrxSuccess);
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(gdrxScan(all.data(), all.data(), 100, gdrxFloat32, gdrxMax, comm, nullptr, nullptr),
                gdrxSuccess);
      std::vector<float> out;
      ASSERT_EQ(sum(input_of(rank, 30), out, comm), gdrxSuccess);
      EXPECT_EQ(out, sum_of(2, 30));
      ASSERT_EQ(sum(all, out, comm), gdrxSuccess);
      EXPECT_EQ(out, std::vector<float>(1000, 2.0F));
    }
    EXPECT_EQ(gdrxDeregister(comm, handle), gdrxSuccess);
  });
}

TEST(Quick, ACallWhosePeerNeverComesEndsByItsDeadline) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 0.3;
  const World world(2, config);
  world.run([](int rank, gdrxComm_t comm) {
    std::vector<float> out;
    for (int i = 0; i < 3; ++i) ASSERT_EQ(sum({1, 2}, out, comm), gdrxSuccess);
    if (rank == 1) return;
    EXPECT_EQ(sum({1, 2}, out, comm), gdrxTimeout);
  });
}

}  // namespace
}  // namespace gdrx::test
