// SPDX-License-Identifier: Apache-2.0
// Sends and receives between ranks of one host: buffered while they are short, and read in the
// sender's memory where they are long.
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/processes.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {

/// What the kernel does not do in these tests.
struct Kernel {
  static inline std::atomic<bool> refuses{false};
  static inline std::atomic<bool> stops{false}, entered{false};
  static inline std::atomic<int> reads{0};
};

namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<unsigned char>;

// Around what a cell, a slice and the room of a ring hold.
constexpr std::size_t kSizes[] = {0,    1,    8,    40,    41,    104,   105,    4096,
                                  8191, 8192, 8193, 20000, 32768, 32769, 100000, 3000001};

Bytes message(int from, int to, std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(from * 64 + to) + static_cast<unsigned>(size) * 4099);
  Bytes bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

gdrxResult_t send(const Bytes& out, int to, gdrxComm_t comm, gdrxRequest_t* request = nullptr) {
  return gdrxSend(out.data(), out.size(), gdrxByte, to, comm, nullptr, request);
}

gdrxResult_t receive(Bytes& in, int from, gdrxComm_t comm, gdrxRequest_t* request = nullptr) {
  return gdrxRecv(in.data(), in.size(), gdrxByte, from, comm, nullptr, request);
}

/// One that ends by itself where it should not have to.
gdrxConfig_t patient(double seconds) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = seconds;
  return config;
}

// Every size, some at once, each way of calling, all of it in one order on both sides.
int exchange_all(int rank, int ranks, gdrxComm_t comm) {
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  for (int round = 0; round < 3; ++round) {
    std::vector<Bytes> out, in;
    std::vector<gdrxRequest_t> requests;
    for (const std::size_t size : kSizes) {
      out.push_back(message(rank, next, size + static_cast<std::size_t>(round)));
      in.emplace_back(out.back().size());
    }
    requests.resize(out.size(), nullptr);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool together = (i + static_cast<std::size_t>(round)) % 2 == 0;
      if (together && gdrxGroupStart() != gdrxSuccess) return 1;
      // A posted one stands before those that follow.
      if (send(out[i], next, comm, together ? nullptr : &requests[i]) != gdrxSuccess) return 2;
      if (receive(in[i], last, comm) != gdrxSuccess) return 3;
      if (together && gdrxGroupEnd() != gdrxSuccess) return 4;
    }
    for (gdrxRequest_t& request : requests) {
      if (gdrxWait(&request) != gdrxSuccess) return 5;
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i] != message(last, rank, in[i].size())) return 6;
    }
  }
  return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 7;
}

class Rings : public testing::Test {
 protected:
  ~Rings() override { unsetenv("GDRX_CMA"); }
};

// First: ranks are threads later, and these fork.
TEST_F(Rings, BetweenProcessesAreRightWithAndWithoutTheKernelsHelp) {
  for (const char* cma : {"0", "1", "2"}) {
    setenv("GDRX_CMA", cma, 1);
    for (const int ranks : {2, 3, 16}) {
      Processes world(ranks, patient(60), [ranks](int rank, gdrxComm_t comm) {
        return exchange_all(rank, ranks, comm);
      });
      for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(world.wait(rank), 0) << ranks << cma;
    }
  }
}

// 9: rank 2's short message came when the long one that was posted before was all there.
int receive_short_beside_long(int rank, gdrxComm_t comm) {
  constexpr std::size_t kLong = 512 * 1024 * 1024;
  Bytes bytes(rank < 2 ? kLong : 8, 1);
  gdrxRequest_t request = nullptr;
  if (gdrxBarrier(comm, nullptr, nullptr) != gdrxSuccess) return 7;
  if (rank == 2) std::this_thread::sleep_for(20ms);  // the other takes three times as long
  if (rank != 1) {
    if (send(bytes, 1, comm, &request) != gdrxSuccess) return 1;
  } else {
    Bytes few(8);
    if (receive(bytes, 0, comm, &request) != gdrxSuccess) return 2;
    if (receive(few, 2, comm) != gdrxSuccess) return 3;
    const gdrxResult_t so_far = gdrxTest(&request);
    if (so_far != gdrxInProgress) return so_far == gdrxSuccess ? 9 : 4;
  }
  if (gdrxWait(&request) != gdrxSuccess) return 5;
  return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 6;
}

TEST_F(Rings, OfALongMessageOthersDoNotWaitForTheEnd) {
  for (const char* cma : {"0", "2"}) {
    setenv("GDRX_CMA", cma, 1);
    Processes world(3, patient(60), receive_short_beside_long);
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(world.wait(rank), 0) << rank << cma;
  }
}

/// Until a rank of a World of processes has come so far.
class Signal {
 public:
  Signal() { EXPECT_EQ(pipe(ends_), 0); }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void give() const { EXPECT_EQ(write(ends_[1], "", 1), 1); }
  void await() const {
    char byte = 0;
    EXPECT_EQ(read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2] = {-1, -1};
};

// 10: it was told that rank 1 is lost.
int until_lost(gdrxComm_t comm, const std::function<gdrxResult_t()>& call) {
  gdrxResult_t result = gdrxSuccess;
  while (result == gdrxSuccess) result = call();
  const std::string text = gdrxGetLastError(comm);
  gdrxCommDestroy(comm);
  if (result == gdrxPeerLost && text.find("rank 1") != std::string::npos) return 10;
  std::fprintf(stderr, "%s\n", text.c_str());
  return 11;
}

TEST_F(Rings, NameARankThatIsKilledWhileItLends) {
  setenv("GDRX_CMA", "2", 1);
  for (const bool lends : {false, true}) {
    for (int round = 0; round < 4; ++round) {
      const Signal made;
      Processes world(2, patient(30), [&](int rank, gdrxComm_t comm) {
        if (rank == 0) made.give();  // so has rank 1
        Bytes data(std::size_t{1} << 20);
        const bool sends = lends == (rank == 1);
        return until_lost(comm, [&] {
          return sends ? send(data, 1 - rank, comm) : receive(data, 1 - rank, comm);
        });
      });
      made.await();
      std::this_thread::sleep_for(20ms + round * 31ms);
      kill(world.pid(1), SIGKILL);
      const auto killed = std::chrono::steady_clock::now();
      EXPECT_EQ(world.wait(0), 10);
      EXPECT_LT(std::chrono::steady_clock::now() - killed, 3s);
    }
  }
}

TEST_F(Rings, NameARankThatIsKilledBeforeItTakesWhatWasSent) {
  const Signal made;
  Processes world(2, patient(30), [&](int rank, gdrxComm_t comm) {
    if (rank == 0) made.give();
    if (rank == 1) std::this_thread::sleep_for(60s);
    const Bytes data(8);
    return until_lost(comm, [&] { return send(data, 1, comm); });
  });
  made.await();
  std::this_thread::sleep_for(50ms);
  kill(world.pid(1), SIGKILL);
  EXPECT_EQ(world.wait(0), 10);
}

TEST_F(Rings, LetAShortSendReturnBeforeItsReceiverHasCome) {
  const World world(2, patient(5));
  for (std::size_t i = 0; i < 30; ++i) {
    ASSERT_EQ(send(message(0, 1, i), 1, world[0]), gdrxSuccess) << gdrxGetLastError(world[0]);
  }
  for (std::size_t i = 0; i < 30; ++i) {
    Bytes in(i);
    ASSERT_EQ(receive(in, 0, world[1]), gdrxSuccess) << gdrxGetLastError(world[1]);
    EXPECT_EQ(in, message(0, 1, i));
  }
}

TEST_F(Rings, OfTwoCommunicatorsAreTwo) {
  const World one(2, patient(5)), other(2, patient(5));
  ASSERT_EQ(send({1}, 1, one[0]), gdrxSuccess);
  ASSERT_EQ(send({2}, 1, other[0]), gdrxSuccess);
  Bytes in(1);
  ASSERT_EQ(receive(in, 0, other[1]), gdrxSuccess);
  EXPECT_EQ(in, Bytes{2});
  ASSERT_EQ(receive(in, 0, one[1]), gdrxSuccess);
  EXPECT_EQ(in, Bytes{1});
}

// More than a ring holds, and a loan.
TEST_F(Rings, EndAtTheDeadlineWhereNobodyReceives) {
  setenv("GDRX_CMA", "2", 1);
  for (const std::size_t size : {std::size_t{8}, std::size_t{100'000}}) {
    const World world(2, patient(0.5));
    gdrxResult_t result = gdrxSuccess;
    for (int i = 0; i < 1000 && result == gdrxSuccess; ++i) {
      result = send(Bytes(size), 1, world[0]);
    }
    EXPECT_EQ(result, gdrxTimeout);
    const std::string text = gdrxGetLastError(world[0]);
    EXPECT_NE(text.find("rank 1 to take byte 0"), std::string::npos) << text;
  }
}

TEST_F(Rings, NameBothCallsWhereTheirTypesDiffer) {
  const World world(2, patient(5));
  float in = 0;
  ASSERT_EQ(send(Bytes(4), 1, world[0]), gdrxSuccess);
  EXPECT_EQ(gdrxRecv(&in, 1, gdrxFloat32, 0, world[1], nullptr, nullptr), gdrxMismatch);
  const std::string text = gdrxGetLastError(world[1]);
  EXPECT_NE(text.find("of 1 float"), std::string::npos) << text;
}

TEST_F(Rings, AreReadByTheKernelWhereMessagesAreLong) {
  for (const char* cma : {"2", "0"}) {
    setenv("GDRX_CMA", cma, 1);
    const World world(2, patient(30));
    Kernel::reads = 0;
    world.run([](int rank, gdrxComm_t comm) {
      Bytes in(50'000);
      EXPECT_EQ(rank == 0 ? send(message(0, 1, 50'000), 1, comm) : receive(in, 0, comm),
                gdrxSuccess);
    });
    EXPECT_EQ(Kernel::reads > 0, *cma == '2');
  }
}

// Two that copy are faster than one in the kernel, but only where each has a core.
TEST_F(Rings, AreReadByTheKernelOfManyRanksOnly) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "no ranks with a core each";
  for (const int ranks : {2, 9}) {
    const World world(ranks, patient(30));
    Kernel::reads = 0;
    world.run([&](int rank, gdrxComm_t comm) {
      const Bytes out = message(rank, (rank + 1) % ranks, 50'000);
      Bytes in(out.size());
      EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
      EXPECT_EQ(send(out, (rank + 1) % ranks, comm), gdrxSuccess);
      EXPECT_EQ(receive(in, (rank + ranks - 1) % ranks, comm), gdrxSuccess);
      EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess);
    });
    EXPECT_EQ(Kernel::reads > 0, ranks == 9);
  }
}

TEST_F(Rings, AreWhatALastOperationSays) {
  const World world(2, patient(5));
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}}) {
    for (const bool posted : {false, true}) {
      const Bytes out(size);
      gdrxRequest_t request = nullptr;
      ASSERT_EQ(send(out, 1, world[0], posted ? &request : nullptr), gdrxSuccess);
      if (posted) {
        ASSERT_EQ(gdrxWait(&request), gdrxSuccess);
      }
      gdrxOpInfo_t info{};
      info.size = sizeof info;
      ASSERT_EQ(gdrxCommGetLastOp(world[0], &info), gdrxSuccess);
      EXPECT_STREQ(info.transport, "shm");
      EXPECT_EQ(info.registered, 0) << size << posted;
      EXPECT_EQ(info.messages_sent, 1U);
    }
  }
}

// Memory of a device, for one.
TEST_F(Rings, CopyWhatTheKernelDoesNotRead) {
  setenv("GDRX_CMA", "2", 1);
  const World world(2, patient(30));
  for (const bool refuses : {true, false, true}) {
    Kernel::refuses = refuses;
    world.run([](int rank, gdrxComm_t comm) {
      for (const std::size_t size : kSizes) {
        const Bytes out = message(rank, 1 - rank, size);
        Bytes in(size);
        EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
        EXPECT_EQ(send(out, 1 - rank, comm), gdrxSuccess);
        EXPECT_EQ(receive(in, 1 - rank, comm), gdrxSuccess);
        ASSERT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(comm);
        EXPECT_EQ(in, message(1 - rank, rank, size));
      }
    });
  }
  Kernel::refuses = false;
}

// The receiver is in the middle of reading when the sender has its memory back.
TEST_F(Rings, BelieveNothingOfALoanThatWasWithdrawn) {
  setenv("GDRX_CMA", "2", 1);
  const World world(2, patient(30));
  Bytes out(100'000, 1), in(out.size());
  gdrxRequest_t request = nullptr;
  ASSERT_EQ(send(out, 1, world[0], &request), gdrxSuccess);
  Kernel::entered = false;
  Kernel::stops = true;
  std::jthread receiver([&] { EXPECT_EQ(receive(in, 0, world[1]), gdrxAborted); });
  while (!Kernel::entered) std::this_thread::yield();
  EXPECT_EQ(gdrxCommAbort(world[0]), gdrxSuccess);
  EXPECT_EQ(gdrxWait(&request), gdrxAborted);
  std::fill(out.begin(), out.end(), static_cast<unsigned char>(2));
  Kernel::stops = false;
}

}  // namespace
}  // namespace gdrx::test

// In place of the C library's.
extern "C" __attribute__((visibility("default"))) ssize_t process_vm_readv(
    pid_t pid, const iovec* to, unsigned long tos, const iovec* from, unsigned long froms,
    unsigned long flags) noexcept {
  using gdrx::test::Kernel;
  if (tos > 1) {  // not the test of a process's words
    ++Kernel::reads;
    Kernel::entered = true;
    while (Kernel::stops) std::this_thread::yield();
    if (Kernel::refuses) {
      errno = EFAULT;
      return -1;
    }
  }
  return syscall(SYS_process_vm_readv, pid, to, tos, from, froms, flags);
}
