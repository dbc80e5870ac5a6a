// SPDX-License-Identifier: Apache-2.0
// The end of a communicator while others use it, and questions that come too late.
#include <array>
#include <barrier>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "tests/nccl/door.hpp"
#include "tests/nccl/world.hpp"

namespace gdrx::nccl {
namespace {

using namespace std::chrono_literals;

class NcclEnds : public Nccl {};

/// Of one rank, on its thread's stream.
Member alone() {
  Member self;
  self.open();
  UniqueId id{};
  EXPECT_EQ(ncclGetUniqueId(&id), kSuccess);
  EXPECT_EQ(ncclCommInitRank(&self.comm, 1, id, 0), kSuccess) << ncclGetLastError(nullptr);
  return self;
}

TEST_F(NcclEnds, ALateQuestionIsToldSoEvenWhenANewCommunicatorIsThere) {
  for (const auto end : {ncclCommDestroy, ncclCommAbort}) {
    Member first = alone();
    const ncclComm_t gone = first.comm;
    EXPECT_EQ(end(gone), kSuccess);
    Member second = alone();
    int value = 0;
    Result state = kSuccess;
    void* handle = nullptr;
    EXPECT_EQ(ncclCommCount(gone, &value), kInvalidArgument);
    EXPECT_EQ(ncclCommUserRank(gone, &value), kInvalidArgument);
    EXPECT_EQ(ncclCommCuDevice(gone, &value), kInvalidArgument);
    EXPECT_EQ(ncclCommGetAsyncError(gone, &state), kInvalidArgument);
    EXPECT_EQ(ncclCommRegister(gone, first.in, 64, &handle), kInvalidArgument);
    EXPECT_EQ(ncclAllReduce(first.in, first.out, 1, kUint32, kSum, gone, first.stream),
              kInvalidArgument);
    EXPECT_NE(std::string(ncclGetLastError(gone)).find("was destroyed"), std::string::npos)
        << ncclGetLastError(gone);
    EXPECT_EQ(ncclCommAbort(gone), kInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(gone), kInvalidArgument);
    EXPECT_EQ(ncclCommDestroy(second.comm), kSuccess);
    first.close();
    second.close();
  }
}

/// What a thread may be in when another one ends its communicator.
struct Guest {
  const char* name;
  void (*enter)(const Member&);
};
void PrintTo(const Guest& guest, std::ostream* out) { *out << guest.name; }

const Guest kGuests[] = {
    {"Count",
     [](const Member& self) {
       int count = 0;
       ncclCommCount(self.comm, &count);
     }},
    {"UserRank",
     [](const Member& self) {
       int rank = 0;
       ncclCommUserRank(self.comm, &rank);
     }},
    {"AsyncError",
     [](const Member& self) {
       Result state = kSuccess;
       ncclCommGetAsyncError(self.comm, &state);
     }},
    {"LastError", [](const Member& self) { ncclGetLastError(self.comm); }},
    {"MemStats",
     [](const Member& self) {
       std::uint64_t bytes = 0;
       ncclCommMemStats(self.comm, 3, &bytes);
     }},
    {"Operator",
     [](const Member& self) {
       Operator op = 0;
       float scalar = 1;
       ncclRedOpCreatePreMulSum(&op, &scalar, kFloat32, kScalarHost, self.comm);
     }},
    {"AllReduce",
     [](const Member& self) {
       ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream);
     }},
    {"AllReduceOfAGroup",
     [](const Member& self) {
       ncclGroupStart();
       ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream);
       ncclGroupEnd();
     }},
};

class NcclGuests : public Nccl, public testing::WithParamInterface<Guest> {};
INSTANTIATE_TEST_SUITE_P(In, NcclGuests, testing::ValuesIn(kGuests),
                         [](const auto& of) { return std::string(of.param.name); });

TEST_P(NcclGuests, AreLetOutBeforeItEnds) {
  for (const auto end : {ncclCommDestroy, ncclCommAbort}) {
    Member self = alone();
    const int before = door::destroyed();
    door::close();
    std::thread guest([&] { GetParam().enter(self); });
    door::await_a_guest();
    std::atomic<bool> returned{false};
    std::thread ender([&] {
      EXPECT_EQ(end(self.comm), kSuccess);
      returned = true;
    });
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(door::destroyed(), before);
    EXPECT_FALSE(returned);
    door::leave_open();
    guest.join();
    ender.join();
    EXPECT_EQ(door::destroyed(), before + 1);
    self.close();
  }
}

TEST_F(NcclEnds, AGroupThatAnotherThreadKeepsOpenHoldsUpNoAbort) {
  Member self = alone();
  std::barrier both(2);
  const int before = door::destroyed();
  std::thread keeper([&] {
    EXPECT_EQ(ncclGroupStart(), kSuccess);
    EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream), kSuccess);
    both.arrive_and_wait();
    both.arrive_and_wait();
    EXPECT_EQ(door::destroyed(), before) << "the group has it";
    EXPECT_EQ(ncclGroupEnd(), kRemoteError);
    EXPECT_EQ(door::destroyed(), before + 1) << "the last one ends it";
  });
  both.arrive_and_wait();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ncclCommAbort(self.comm), kSuccess);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  both.arrive_and_wait();
  keeper.join();
  self.close();
}

void sum(const Member& self) {
  EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream), kSuccess);
}
void register_window(const Member& self) {
  static ncclWindow_t window;  // the group fills it
  EXPECT_EQ(ncclCommWindowRegister(self.comm, self.in, 4096, &window, 0), kSuccess);
}

/// Whatever a group does or leaves undone, it has nothing of the communicator afterwards.
TEST_F(NcclEnds, AGroupLetsGoOfWhatItHad) {
  const int before = door::destroyed();
  Member destroyed = alone();
  ncclGroupStart();
  sum(destroyed);
  register_window(destroyed);
  EXPECT_EQ(ncclCommDestroy(destroyed.comm), kSuccess);
  EXPECT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(door::destroyed(), before + 1);

  Member aborted = alone();
  ncclGroupStart();
  sum(aborted);
  EXPECT_EQ(ncclCommDestroy(aborted.comm), kSuccess);
  EXPECT_EQ(ncclCommAbort(aborted.comm), kSuccess);
  EXPECT_EQ(door::destroyed(), before + 2) << "in the group";
  ncclGroupEnd();

  Member refused = alone();
  ncclGroupStart();
  sum(refused);
  EXPECT_EQ(ncclCommDestroy(refused.comm), kSuccess);
  EXPECT_EQ(ncclAllReduce(refused.in, refused.out, 1, 99, kSum, refused.comm, refused.stream),
            kInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), kInvalidArgument);
  EXPECT_EQ(door::destroyed(), before + 2) << "nothing of the group";
  EXPECT_EQ(ncclCommDestroy(refused.comm), kSuccess);
  EXPECT_EQ(door::destroyed(), before + 3);
  for (Member* self : {&destroyed, &aborted, &refused}) self->close();
}

/// As in NCCL: it is no element on every rank.
TEST_F(NcclEnds, OfNoElementWhatIsWrongIsSaid) {
  Member self = alone();
  const auto scatter = [&](Type type, Operator op, ncclComm_t comm) {
    return ncclReduceScatter(nullptr, nullptr, 0, type, op, comm, self.stream);
  };
  EXPECT_EQ(scatter(kUint32, kSum, self.comm), kSuccess);
  EXPECT_EQ(ncclAllGather(nullptr, nullptr, 0, kUint32, self.comm, self.stream), kSuccess);
  EXPECT_EQ(scatter(99, kSum, self.comm), kInvalidArgument);
  EXPECT_EQ(scatter(kUint32, 7, self.comm), kInvalidArgument);
  EXPECT_EQ(scatter(kUint32, kSum, nullptr), kInvalidArgument);
  EXPECT_EQ(scatter(kUint32, 12345, self.comm), kInvalidArgument);  // an operator that nobody made
  EXPECT_EQ(ncclBroadcast(nullptr, nullptr, 0, kUint32, 99, self.comm, self.stream),
            kInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(self.comm), kSuccess);
  EXPECT_EQ(scatter(kUint32, kSum, self.comm), kInvalidArgument);
  self.close();
}

TEST_F(NcclEnds, OfSeveralThreadsOneEndsIt) {
  for (int round = 0; round < 30; ++round) {
    Member self = alone();
    const int before = door::destroyed();
    std::atomic<int> ended{0};
    std::barrier all(3);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        all.arrive_and_wait();
        ended += ncclCommAbort(self.comm) == kSuccess;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(door::destroyed(), before + 1);
    self.close();
  }
}

/// What a framework's watcher does, while the program's thread is told the same.
TEST_F(NcclEnds, TheReasonCanBeAskedForWhileCallsFail) {
  Member self = alone();
  EXPECT_EQ(ncclCommRevoke(self.comm, 0), kSuccess);
  std::thread watcher([&] {
    for (int i = 0; i < 200; ++i) {
      const std::string why = ncclGetLastError(self.comm);
      ASSERT_TRUE(why.find("abort") != std::string::npos || why.find("root") != std::string::npos)
          << why;
    }
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_NE(ncclBroadcast(self.in, self.out, 1, kUint32, i % 2, self.comm, self.stream),
              kSuccess);
  }
  watcher.join();
  EXPECT_EQ(ncclCommDestroy(self.comm), kSuccess);
  self.close();
}

}  // namespace
}  // namespace gdrx::nccl
