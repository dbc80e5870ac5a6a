// SPDX-License-Identifier: Apache-2.0
// Calls that were made before, and whose arguments nobody looks at again: whatever differs is found
// as in the first call.
#include "collectives/comm/known_calls.hpp"

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

struct Arguments {
  std::size_t count = 2;
  gdrxDataType_t type = gdrxFloat32;
  gdrxRedOp_t op = gdrxSum;
  int root = 0;
};

struct Data {
  std::array<float, 16> in{1, 2}, out{};
};

gdrxResult_t reduce(gdrxComm_t comm, Data& data, const Arguments& with = {}) {
  return gdrxReduce(data.in.data(), data.out.data(), with.count, with.type, with.op, with.root,
                    comm, nullptr, nullptr);
}

gdrxResult_t sum(gdrxComm_t comm, const float* in, float* out) {
  return gdrxAllReduce(in, out, 2, gdrxFloat32, gdrxSum, comm, nullptr, nullptr);
}

void make_known(gdrxComm_t comm, Data& data) {
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(reduce(comm, data), gdrxSuccess);
    ASSERT_EQ(sum(comm, data.in.data(), data.out.data()), gdrxSuccess);
  }
}

TEST(KnownCalls, AreRefusedOnBuffersThatDoNotFit) {
  const World world(2);
  world.run([](int, gdrxComm_t comm) {
    Data data;
    make_known(comm, data);
    EXPECT_EQ(sum(comm, nullptr, data.out.data()), gdrxInvalidArgument);
    EXPECT_EQ(sum(comm, data.in.data(), nullptr), gdrxInvalidArgument);
    EXPECT_EQ(sum(comm, data.in.data(), data.in.data() + 1), gdrxInvalidArgument) << "overlap";
    EXPECT_EQ(sum(comm, data.in.data(), data.in.data()), gdrxSuccess) << "in place";
    EXPECT_EQ(data.in[1], 4);
  });
}

// The shorter buffer in its place of the longer, and beside it.
TEST(KnownCalls, InPlaceTheirBlockIsTheirOwn) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    const auto gather = [&](const float* in, float* out) {
      return gdrxAllGather(in, out, 2, gdrxFloat32, comm, nullptr, nullptr);
    };
    for (int i = 0; i < 4; ++i) {
      std::array<float, 4> all{};
      all[2 * static_cast<std::size_t>(rank)] = static_cast<float>(rank + 1);
      ASSERT_EQ(gather(all.data() + 2 * rank, all.data()), gdrxSuccess);
      ASSERT_EQ(all, (std::array<float, 4>{1, 0, 2, 0}));
      ASSERT_EQ(gather(all.data() + 2 * (1 - rank), all.data()), gdrxInvalidArgument);
    }
  });
}

TEST(KnownCalls, DoNotHideAnArgumentThatDoesNotExist) {
  const World world(2);
  world.run([](int, gdrxComm_t comm) {
    Data data;
    make_known(comm, data);
    // Of the low bytes alone each is a call that is known.
    for (const int far : {77, 256, 1 << 16, -100}) {
      EXPECT_EQ(reduce(comm, data, {.type = static_cast<gdrxDataType_t>(gdrxFloat32 + far)}),
                gdrxInvalidArgument);
      EXPECT_EQ(reduce(comm, data, {.op = static_cast<gdrxRedOp_t>(gdrxSum + far)}),
                gdrxInvalidArgument);
      EXPECT_EQ(reduce(comm, data, {.root = far}), gdrxInvalidArgument);
    }
    make_known(comm, data);
  });
}

/// What one rank gives that the other does not, and what says so.
struct Odd {
  const char* name;
  Arguments with;
  const char* word;
};

class KnownCallsOf : public testing::TestWithParam<Odd> {};

TEST_P(KnownCallsOf, DifferentArgumentsAreNamed) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    Data data;
    make_known(comm, data);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(reduce(comm, data, GetParam().with), gdrxSuccess);
    gdrxResult_t result = reduce(comm, data, rank == 0 ? Arguments{} : GetParam().with);
    if (result == gdrxSuccess) result = sum(comm, data.in.data(), data.out.data());
    EXPECT_EQ(result, gdrxMismatch);
    const std::string said = gdrxGetLastError(comm);
    EXPECT_NE(said.find(GetParam().word), std::string::npos) << said;
  });
}

INSTANTIATE_TEST_SUITE_P(All, KnownCallsOf,
                         testing::Values(Odd{"Count", {.count = 3}, "of 3 float"},
                                         Odd{"Type", {.type = gdrxInt32}, "of 2 int32"},
                                         Odd{"Operator", {.op = gdrxMax}, "max"},
                                         Odd{"Root", {.root = 1}, "root 1"}),
                         [](const testing::TestParamInfo<Odd>& info) {
                           return std::string(info.param.name);
                         });

TEST(KnownCalls, EndByAnAbortOfAnotherThread) {
  const World world(2);
  world.run([](int rank, gdrxComm_t comm) {
    Data data;
    make_known(comm, data);
    if (rank == 1) return;
    const std::jthread aborts([comm] {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(gdrxCommAbort(comm), gdrxSuccess);
    });
    EXPECT_EQ(sum(comm, data.in.data(), data.out.data()), gdrxAborted);
    EXPECT_EQ(sum(comm, data.in.data(), data.out.data()), gdrxAborted);
  });
}

TEST(KnownCalls, OfAGroupRunAtItsEnd) {
  const World world(2);
  world.run([](int, gdrxComm_t comm) {
    Data data;
    make_known(comm, data);
    data.out[0] = -1;
    ASSERT_EQ(gdrxGroupStart(), gdrxSuccess);
    ASSERT_EQ(sum(comm, data.in.data(), data.out.data()), gdrxSuccess);
    EXPECT_EQ(data.out[0], -1);
    ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess);
    EXPECT_EQ(data.out[0], 2);
  });
}

TEST(KnownCalls, AreRefusedOnceTheCommunicatorIsFinalized) {
  const World world(2);
  world.run([](int, gdrxComm_t comm) {
    Data data;
    make_known(comm, data);
    ASSERT_EQ(gdrxCommFinalize(comm, nullptr), gdrxSuccess);
    EXPECT_EQ(sum(comm, data.in.data(), data.out.data()), gdrxInvalidArgument);
  });
}

// A program may make them in turn all the time.
TEST(KnownCalls, OfEveryRootAndSizeMostlyStayKnown) {
  KnownCalls calls;
  int kept = 0;
  for (int root = 0; root < 8; ++root) {
    KnownCall call;
    call.asked = {Collective::broadcast, 0, 0, root, 2};
    calls.keep(call);
  }
  for (int root = 0; root < 8; ++root) {
    const Asked asked{Collective::broadcast, 0, 0, root, 2};
    const KnownCall* const found = calls.find(asked);
    if (found == nullptr) continue;
    EXPECT_EQ(found->asked, asked);
    ++kept;
  }
  EXPECT_GE(kept, 6);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {  // in turns, as programs have them
    KnownCall call;
    call.asked = {Collective::all_reduce, static_cast<int>(DataType::float64), static_cast<int>(op),
                  0, 1};
    calls.keep(call);
  }
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
    EXPECT_NE(calls.find({Collective::all_reduce, static_cast<int>(DataType::float64),
                          static_cast<int>(op), 0, 1}),
              nullptr);
  }
  EXPECT_EQ(calls.find({Collective::broadcast, 1, 0, 0, 2}), nullptr);
}

}  // namespace
}  // namespace gdrx::test
