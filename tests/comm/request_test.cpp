// SPDX-License-Identifier: Apache-2.0
// Handlers of requests: called once, whatever ends the operation, and whoever finds it.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

/// What a handler was called with.
class Heard {
 public:
  static void on_done(gdrxRequest_t request, gdrxResult_t result, const char* message, void* user) {
    auto& self = *static_cast<Heard*>(user);
    gdrxRequest_t copy = request;
    if (self.tests) self.tested = gdrxTest(&copy);
    std::this_thread::sleep_for(self.takes);
    self.result = result;
    self.message = message;
    self.thread = std::this_thread::get_id();
    ++self.calls;
  }
  /// True: it was called before the time was over.
  bool within(std::chrono::milliseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (calls == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return calls > 0;
  }

  bool tests = false;  // and so ends its request
  std::chrono::milliseconds takes{0};
  std::atomic<int> calls{0};
  gdrxResult_t result = gdrxInProgress;
  gdrxResult_t tested = gdrxInProgress;
  std::string message;
  std::thread::id thread;
};

gdrxRequest_t reduce(gdrxComm_t comm, std::vector<float>& data) {
  gdrxRequest_t request = nullptr;
  EXPECT_EQ(gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm,
                          nullptr, &request),
            gdrxSuccess);
  return request;
}

class OnDone : public testing::TestWithParam<const char*> {};

TEST_P(OnDone, IsCalledThoughNobodyTestsOrWaits) {
  std::vector<std::vector<float>> data(2, std::vector<float>(1000, 1.0F));
  const World world(2, with("auto", GetParam()));
  std::array<gdrxRequest_t, 2> requests{};
  std::array<Heard, 2> heard;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    requests[rank] = reduce(world[static_cast<int>(rank)], data[rank]);
    ASSERT_EQ(gdrxRequestOnDone(requests[rank], Heard::on_done, &heard[rank]), gdrxSuccess);
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(heard[rank].within(20s));
    EXPECT_EQ(heard[rank].result, gdrxSuccess);
    EXPECT_EQ(heard[rank].message, "");
    EXPECT_EQ(data[rank].back(), 2.0F);
    EXPECT_EQ(gdrxTest(&requests[rank]), gdrxSuccess);
    EXPECT_EQ(requests[rank], nullptr);
    EXPECT_EQ(heard[rank].calls, 1);
  }
}

TEST_P(OnDone, MayEndItsRequest) {
  std::vector<std::vector<float>> data(2, std::vector<float>(1000, 1.0F));
  const World world(2, with("auto", GetParam()));
  std::array<Heard, 2> heard;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    heard[rank].tests = true;
    const gdrxRequest_t request = reduce(world[static_cast<int>(rank)], data[rank]);
    ASSERT_EQ(gdrxRequestOnDone(request, Heard::on_done, &heard[rank]), gdrxSuccess);
  }
  for (const Heard& one : heard) {
    ASSERT_TRUE(one.within(20s));
    EXPECT_EQ(one.tested, gdrxSuccess);
  }
}

// Rank 1 comes late: rank 0 hears of its first call while it waits for the second.
TEST_P(OnDone, IsCalledWhileItsThreadWaitsForAnother) {
  const World world(2, with("auto", GetParam()));
  std::array<Heard, 2> heard;
  world.run([&](int rank, gdrxComm_t comm) {
    std::vector<float> data(1000, 1.0F);
    gdrxRequest_t first = reduce(comm, data);
    if (rank == 0) {
      ASSERT_EQ(gdrxRequestOnDone(first, Heard::on_done, &heard[0]), gdrxSuccess);
    } else {
      EXPECT_EQ(gdrxWait(&first), gdrxSuccess);
      ASSERT_TRUE(heard[0].within(20s));
    }
    EXPECT_EQ(gdrxBarrier(comm, nullptr, nullptr), gdrxSuccess);
    EXPECT_EQ(gdrxWait(&first), gdrxSuccess);
  });
}

TEST_P(OnDone, OfWhatIsDoneIsCalledAtOnce) {
  const World world(2, with("auto", GetParam()));
  world.run([](int, gdrxComm_t comm) {
    std::vector<float> data(10, 1.0F);
    gdrxRequest_t request = reduce(comm, data);
    EXPECT_EQ(gdrxBarrier(comm, nullptr, nullptr), gdrxSuccess);  // behind it
    Heard heard;
    ASSERT_EQ(gdrxRequestOnDone(request, Heard::on_done, &heard), gdrxSuccess);
    EXPECT_EQ(heard.calls, 1);
    EXPECT_EQ(heard.thread, std::this_thread::get_id());
    EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
    EXPECT_EQ(heard.calls, 1);
  });
}

TEST_P(OnDone, SaysWhyACallFailed) {
  std::vector<float> data(1000);
  gdrxConfig_t config = with("auto", GetParam());
  config.timeout_seconds = 0.2;
  const World world(2, config);
  Heard heard;
  gdrxRequest_t request = reduce(world[0], data);
  ASSERT_EQ(gdrxRequestOnDone(request, Heard::on_done, &heard), gdrxSuccess);
  ASSERT_TRUE(heard.within(20s));
  EXPECT_EQ(heard.result, gdrxTimeout);
  EXPECT_NE(heard.message.find("did not end within"), std::string::npos) << heard.message;
  EXPECT_EQ(gdrxTest(&request), gdrxTimeout);
}

TEST_P(OnDone, HearsOfAnAbortOfAnotherRank) {
  std::vector<float> data(1000);
  const World world(2, with("auto", GetParam()));
  Heard heard;
  gdrxRequest_t request = reduce(world[0], data);
  ASSERT_EQ(gdrxRequestOnDone(request, Heard::on_done, &heard), gdrxSuccess);
  ASSERT_EQ(gdrxCommAbort(world[1]), gdrxSuccess);
  ASSERT_TRUE(heard.within(20s));
  EXPECT_EQ(heard.result, gdrxAborted);
  EXPECT_EQ(gdrxWait(&request), gdrxAborted);
}

TEST_P(OnDone, IsOverWhenAWaitOrADestructionReturns) {
  for (const bool destroy : {false, true}) {
    std::vector<std::vector<float>> data(2, std::vector<float>(1000, 1.0F));
    std::array<gdrxComm_t, 2> comms{};
    const gdrxConfig_t config = with("auto", GetParam());
    ASSERT_EQ(gdrxCommInitAll(comms.data(), 2, &config), gdrxSuccess);
    std::array<gdrxRequest_t, 2> requests{};
    std::array<Heard, 2> heard;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      heard[rank].takes = 300ms;
      requests[rank] = reduce(comms[rank], data[rank]);
      ASSERT_EQ(gdrxRequestOnDone(requests[rank], Heard::on_done, &heard[rank]), gdrxSuccess);
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      if (destroy) {
        EXPECT_EQ(gdrxCommDestroy(comms[rank]), gdrxSuccess);
      } else {
        EXPECT_EQ(gdrxWait(&requests[rank]), gdrxSuccess);
      }
      EXPECT_EQ(heard[rank].calls, 1);
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      if (destroy) {
        EXPECT_EQ(gdrxWait(&requests[rank]), gdrxSuccess);
      } else {
        EXPECT_EQ(gdrxCommDestroy(comms[rank]), gdrxSuccess);
      }
      EXPECT_EQ(heard[rank].calls, 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, OnDone, testing::Values("shm", "ucx"));

TEST(OnDoneOfAPair, IsCalledForBothEnds) {
  const World world(2, with("auto", "ucx"));
  std::array<Heard, 2> heard;
  std::array<float, 2> value{5, 0};
  std::array<gdrxRequest_t, 2> requests{};
  ASSERT_EQ(gdrxSend(value.data(), 1, gdrxFloat32, 1, world[0], nullptr, &requests[0]),
            gdrxSuccess);
  ASSERT_EQ(gdrxRecv(&value[1], 1, gdrxFloat32, 0, world[1], nullptr, &requests[1]), gdrxSuccess);
  for (std::size_t end = 0; end < 2; ++end) {
    ASSERT_EQ(gdrxRequestOnDone(requests[end], Heard::on_done, &heard[end]), gdrxSuccess);
    ASSERT_TRUE(heard[end].within(20s));
    EXPECT_EQ(heard[end].result, gdrxSuccess);
    EXPECT_EQ(gdrxTest(&requests[end]), gdrxSuccess);
  }
  EXPECT_EQ(value[1], 5.0F);
}

TEST(OnDoneElsewhere, KeepsTestInProgress) {
  const World world(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(10, 1.0F));
  std::array<gdrxRequest_t, 2> requests{reduce(world[0], data[0]), nullptr};
  std::atomic<int> phase{0};
  ASSERT_EQ(gdrxRequestOnDone(
                requests[0],
                [](gdrxRequest_t, gdrxResult_t, const char*, void* user) {
                  auto& now = *static_cast<std::atomic<int>*>(user);
                  now = 1;
                  while (now != 2) std::this_thread::sleep_for(1ms);
                },
                &phase),
            gdrxSuccess);
  requests[1] = reduce(world[1], data[1]);
  for (int i = 0; i < 20'000 && phase == 0; ++i) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(phase, 1);  // on the communicator's own thread: nobody else has called
  EXPECT_EQ(gdrxTest(requests.data()), gdrxInProgress);
  phase = 2;
  EXPECT_EQ(gdrxWait(requests.data()), gdrxSuccess);
  EXPECT_EQ(gdrxWait(&requests[1]), gdrxSuccess);
}

TEST(OnDoneRefused, SaysWhy) {
  Heard heard;
  const World world(2);
  EXPECT_EQ(gdrxRequestOnDone(nullptr, Heard::on_done, &heard), gdrxInvalidArgument);
  std::vector<float> data(10);
  gdrxRequest_t request = reduce(world[0], data);
  EXPECT_EQ(gdrxRequestOnDone(request, nullptr, &heard), gdrxInvalidArgument);
  ASSERT_EQ(gdrxRequestOnDone(request, Heard::on_done, &heard), gdrxSuccess);
  EXPECT_EQ(gdrxRequestOnDone(request, Heard::on_done, &heard), gdrxInvalidArgument);
  EXPECT_NE(std::string(gdrxGetLastError(world[0])).find("handler already"), std::string::npos);
  EXPECT_EQ(gdrxCommAbort(world[0]), gdrxSuccess);
  EXPECT_EQ(gdrxWait(&request), gdrxAborted);
  EXPECT_EQ(heard.calls, 1);
}

TEST(OnDoneThatDestroys, IsRefused) {
  const World world(1);
  std::vector<float> data(10);
  gdrxRequest_t request = reduce(world[0], data);
  struct Asked {
    gdrxComm_t comm;
    gdrxResult_t told;
  } asked{world[0], gdrxSuccess};
  ASSERT_EQ(gdrxRequestOnDone(
                request,
                [](gdrxRequest_t, gdrxResult_t, const char*, void* user) {
                  auto& what = *static_cast<Asked*>(user);
                  what.told = gdrxCommDestroy(what.comm);
                },
                &asked),
            gdrxSuccess);
  EXPECT_EQ(gdrxWait(&request), gdrxSuccess);
  EXPECT_EQ(asked.told, gdrxInvalidArgument);
}

/// Requests of all kinds, ended in any order before and after their communicators.
class AnyOrder {
 public:
  explicit AnyOrder(unsigned seed) : random_(seed) {
    EXPECT_EQ(gdrxCommInitAll(comms_.data(), kRanks, nullptr), gdrxSuccess);
  }

  void run() {
    const bool abort = random_() % 3 == 0;
    const bool first_only = random_() % 4 == 0;  // the other rank never comes
    if (first_only || abort) post(0);
    if (!first_only) {
      for (int rank = abort ? 1 : 0; rank < kRanks; ++rank) post(rank);
    }
    end_some();
    if (abort || first_only) {
      EXPECT_EQ(gdrxCommAbort(comms_[random_() % kRanks]), gdrxSuccess);
    }
    end_some();
    const std::size_t first = random_() % kRanks;
    gdrxCommDestroy(comms_[first]);
    end_some(first);
    gdrxCommDestroy(comms_[1 - first]);
    for (int rank = 0; rank < kRanks; ++rank) {
      std::shuffle(open_[at(rank)].begin(), open_[at(rank)].end(), random_);
      for (gdrxRequest_t& request : open_[at(rank)]) {
        const gdrxResult_t result = random_() % 2 == 0 ? gdrxWait(&request) : gdrxTest(&request);
        EXPECT_NE(result, gdrxInProgress);
        EXPECT_EQ(request, nullptr);
      }
    }
    EXPECT_EQ(called_.load(), handlers_);
  }

 private:
  static constexpr int kRanks = 2;
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  static void on_done(gdrxRequest_t, gdrxResult_t, const char*, void* user) {
    ++*static_cast<std::atomic<int>*>(user);
  }
  static void end_and_count(gdrxRequest_t request, gdrxResult_t, const char*, void* user) {
    EXPECT_NE(gdrxTest(&request), gdrxInProgress);
    ++*static_cast<std::atomic<int>*>(user);
  }

  void keep(int rank, gdrxRequest_t request) {
    ASSERT_NE(request, nullptr);
    const auto kind = random_() % 3;
    if (kind == 0) {
      open_[at(rank)].push_back(request);
      return;
    }
    ++handlers_;
    if (kind == 1) open_[at(rank)].push_back(request);
    EXPECT_EQ(gdrxRequestOnDone(request, kind == 1 ? on_done : end_and_count, &called_),
              gdrxSuccess);
  }

  // The same calls on both ranks: a collective, a group of a send and a receive, a barrier.
  void post(int rank) {
    const gdrxComm_t comm = comms_[at(rank)];
    auto& data = data_[at(rank)];
    for (int call = 0; call < 3; ++call) {
      gdrxRequest_t one = nullptr;
      gdrxRequest_t other = nullptr;
      ASSERT_EQ(
          gdrxAllReduce(data.data(), data.data(), 100, gdrxFloat32, gdrxSum, comm, nullptr, &one),
          gdrxSuccess);
      keep(rank, one);
      ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
      gdrxSend(data.data() + 100, 10, gdrxFloat32, 1 - rank, comm, nullptr, &one);
      gdrxRecv(data.data() + 200, 10, gdrxFloat32, 1 - rank, comm, nullptr, &other);
      ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess);
      keep(rank, one);
      keep(rank, other);
      ASSERT_EQ(gdrxBarrier(comm, nullptr, &one), gdrxSuccess);
      keep(rank, one);
    }
  }

  // Tests a few, from any place. `rank`: the one alone whose communicator is gone, or all.
  void end_some(std::optional<std::size_t> rank = std::nullopt) {
    for (int i = 0; i < 6; ++i) {
      auto& open = open_[rank.value_or(random_() % kRanks)];
      if (open.empty()) continue;
      const std::size_t one = random_() % open.size();
      gdrxTest(&open[one]);
      if (open[one] == nullptr) open.erase(open.begin() + static_cast<std::ptrdiff_t>(one));
    }
  }

  std::mt19937 random_;
  std::array<gdrxComm_t, kRanks> comms_{};
  std::array<std::array<float, 300>, kRanks> data_{};
  std::array<std::vector<gdrxRequest_t>, kRanks> open_;
  std::atomic<int> called_{0};
  int handlers_ = 0;
};

TEST(Requests, EndInAnyOrderBeforeAndAfterTheirCommunicator) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    AnyOrder(seed).run();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace gdrx::test
