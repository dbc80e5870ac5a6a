// SPDX-License-Identifier: Apache-2.0
// A rank dies while the others are busy inside gdrx: it is named as soon as when they are idle.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/comm/processes.hpp"

namespace gdrx::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kRanks = 3;
constexpr int kDies = 2;
constexpr auto kLimit = 1s;  // for all alike, also with less processors than ranks

enum Wrong : int { kNoError = 10, kNoMemory, kIsNotBusy };

/// What the processes tell each other of: times of one clock.
struct Told {
  std::atomic<int> busy{0};  // ranks that are at it
  std::atomic<Clock::rep> killed{0};
  std::array<std::atomic<Clock::rep>, kRanks> named{};
  std::array<std::atomic<int>, kRanks> whom{};
};

Told* told = nullptr;  // shared
int self = 0;          // of this process

class SharedTold {
 public:
  SharedTold() {
    void* const page =
        mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    told = new (page) Told;
  }
  ~SharedTold() { munmap(told, sizeof(Told)); }
  SharedTold(const SharedTold&) = delete;
  SharedTold& operator=(const SharedTold&) = delete;
};

std::atomic<Clock::rep>& named_here() { return told->named[static_cast<std::size_t>(self)]; }
bool is_named() { return named_here().load() != 0; }
/// Long after the limit, so that a test ends.
bool is_over() {
  const auto killed = told->killed.load();
  return killed != 0 && Clock::now().time_since_epoch() - Clock::duration(killed) > 10 * kLimit;
}

void note(gdrxResult_t, const char*, void*) {
  named_here() = Clock::now().time_since_epoch().count();
}

using Work = int (*)(gdrxComm_t comm);

int idle(gdrxComm_t) {
  ++told->busy;
  while (!is_named() && !is_over()) usleep(200);
  return 0;
}

// Between the two that live, half a gigabyte a call each way.
int copy(gdrxComm_t comm) {
  constexpr std::size_t kBytes = std::size_t{1} << 29;
  const int peer = 1 - self;
  std::vector<char> in(kBytes), out(kBytes, 1);
  ++told->busy;
  while (!is_named() && !is_over()) {
    gdrxGroupStart();
    gdrxSend(out.data(), kBytes, gdrxInt8, peer, comm, nullptr, nullptr);
    gdrxRecv(in.data(), kBytes, gdrxInt8, peer, comm, nullptr, nullptr);
    if (gdrxGroupEnd() != gdrxSuccess) return 0;
  }
  return 0;
}

// An operator of the program's that does not return before the rank is named.
void add_for_long(const void*, void*, size_t, gdrxDataType_t, void*) {
  static bool first = true;
  if (first) ++told->busy;
  first = false;
  while (!is_named() && !is_over()) {
  }
}

int add_by_operator(gdrxComm_t comm) {
  gdrxRedOp_t op{};
  if (gdrxRedOpCreate(&op, add_for_long, 1, nullptr, comm) != gdrxSuccess) return kIsNotBusy;
  std::vector<float> data(1000, 1.0F);
  gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, op, comm, nullptr, nullptr);
  return 0;
}

// A hundred megabytes a call.
int add(gdrxComm_t comm) {
  std::vector<std::uint16_t> data(std::size_t{1} << 26, 0);
  ++told->busy;
  while (!is_named() && !is_over()) {
    if (gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat16, gdrxSum, comm, nullptr,
                      nullptr) != gdrxSuccess) {
      return 0;
    }
  }
  return 0;
}

int allocate(gdrxComm_t comm) {
  constexpr std::size_t kBytes = std::size_t{1} << 28;
  ++told->busy;
  while (!is_named() && !is_over()) {
    void* memory = nullptr;
    const gdrxResult_t result = gdrxMemAlloc(comm, &memory, kBytes);
    if (result == gdrxPeerLost) return 0;
    if (result != gdrxSuccess) return kNoMemory;
    std::fill_n(static_cast<char*>(memory), kBytes, 1);
    gdrxMemFree(comm, memory);
  }
  return 0;
}

struct Case {
  const char* name;
  Work work;
  bool all;  // the one that dies is at it, too, else it sleeps
};

int live(const Case& what, int rank, gdrxComm_t comm) {
  self = rank;
  if (rank == kDies && !what.all) {
    ++told->busy;
    pause();
  }
  if (const int wrong = what.work(comm); wrong != 0) return wrong;
  while (!is_named() && !is_over()) usleep(200);
  gdrxAsyncErrorInfo_t info{};
  info.size = sizeof info;
  if (gdrxCommGetAsyncErrorInfo(comm, &info) != gdrxSuccess) return kNoError;
  told->whom[static_cast<std::size_t>(rank)] = info.subject;
  gdrxCommDestroy(comm);
  return 0;
}

double ms(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

class BusyDeath : public testing::TestWithParam<Case> {};

TEST_P(BusyDeath, IsNamedAsSoonAsWhenIdle) {
  const SharedTold shared;
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.on_error = note;
  config.timeout_seconds = 60;
  config.algorithm = "ring";  // every rank adds
  Processes processes(kRanks, config,
                      [](int rank, gdrxComm_t comm) { return live(GetParam(), rank, comm); });
  while (told->busy.load() < kRanks) usleep(1000);
  usleep(100'000);  // well in it
  told->killed = Clock::now().time_since_epoch().count();
  kill(processes.pid(kDies), SIGKILL);
  EXPECT_EQ(processes.wait(kDies), -SIGKILL);
  // The system has to end it first: it frees its memory, and needs a processor for that.
  const Clock::duration ended = Clock::now().time_since_epoch() - Clock::duration(told->killed);
  for (int rank = 0; rank < kDies; ++rank) {
    EXPECT_EQ(processes.wait(rank), 0) << "rank " << rank;
    const auto i = static_cast<std::size_t>(rank);
    const Clock::duration took(told->named[i].load() - told->killed.load());
    EXPECT_NE(told->named[i].load(), 0) << "rank " << rank << " was told nothing";
    EXPECT_EQ(told->whom[i].load(), kDies);
    EXPECT_LT(took, kLimit) << "rank " << rank;
    std::printf("%s: rank %d: named %.1f ms after the kill, dead after %.1f ms\n", GetParam().name,
                rank, ms(took), ms(ended));
  }
}

INSTANTIATE_TEST_SUITE_P(While, BusyDeath,
                         testing::Values(Case{"Idle", idle, false}, Case{"Copying", copy, false},
                                         Case{"Adding", add, true},
                                         Case{"AddingByAnOperator", add_by_operator, true},
                                         Case{"Allocating", allocate, false}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gdrx::test
