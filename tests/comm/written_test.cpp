// SPDX-License-Identifier: Apache-2.0
// Two-shot whose results are written straight into the other processes (GDRX_CMA).
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>

#include "tests/comm/processes.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using namespace std::chrono_literals;

class Written : public testing::Test {
 protected:
  void SetUp() override {
    setenv("GDRX_CMA", "2", 1);
    setenv("GDRX_MODULE_PATH", "/nowhere", 1);  // no fabric: shared memory is all that is tested
  }
  void TearDown() override {
    unsetenv("GDRX_CMA");
    unsetenv("GDRX_MODULE_PATH");
  }
};

std::string text_of(gdrxComm_t comm) {
  char text[4096] = "";
  gdrxCommDescribe(comm, text, sizeof text);
  return text;
}

// 0: right, and `written` as expected.
int sums(int ranks, int rank, gdrxComm_t comm, bool written) {
  if ((text_of(comm).find("yes (CMA)") != std::string::npos) != written) return 2;
  char text[4096] = "";
  gdrxCommExplain(comm, 1 << 20, text, sizeof text);
  if ((std::string(text).find("straight into the other") != std::string::npos) != written) return 3;
  for (const std::size_t count : {1u, 5u, 1009u, 65'537u, 1'000'003u}) {
    for (const bool in_place : {false, true}) {
      std::vector<float> in(count);
      std::vector<float> out(count, -1.0F);
      for (std::size_t i = 0; i < count; ++i) in[i] = value_of(rank, i);
      float* to = in_place ? in.data() : out.data();
      if (gdrxAllReduce(in.data(), to, count, gdrxFloat32, gdrxSum, comm, nullptr, nullptr) !=
          gdrxSuccess) {
        std::fprintf(stderr, "rank %d: %s\n", rank, gdrxGetLastError(comm));
        return 4;
      }
      for (std::size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (int r = 0; r < ranks; ++r) sum += value_of(r, i);
        if (to[i] != sum) return 5;
      }
    }
  }
  return gdrxCommDestroy(comm) == gdrxSuccess ? 0 : 6;
}

TEST_F(Written, IsRightBetweenProcesses) {
  for (const int ranks : {2, 3, 4}) {
    Processes world(ranks, with("two-shot"),
                    [ranks](int rank, gdrxComm_t comm) { return sums(ranks, rank, comm, true); });
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(world.wait(rank), 0) << "rank " << rank;
  }
}

// As a container's profile does it.
bool refuse(long call) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{4, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(Written, IsLeftOutWhereOneRankMayNot) {
  for (const long call : {SYS_process_vm_readv, SYS_process_vm_writev}) {
    const pid_t child = fork();
    if (child == 0) {
      if (!refuse(call)) std::_Exit(77);
      Processes world(2, with("two-shot"),
                      [](int rank, gdrxComm_t comm) { return sums(2, rank, comm, false); });
      std::exit(world.wait(0) + 10 * world.wait(1));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "seccomp filters are not allowed here";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "system call " << call;
  }
}

TEST_F(Written, IsLeftOutWhereTheUserSaysSo) {
  setenv("GDRX_CMA", "0", 1);
  Processes world(2, with("two-shot"),
                  [](int rank, gdrxComm_t comm) { return sums(2, rank, comm, false); });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(world.wait(rank), 0) << "rank " << rank;
}

// 10: the killed rank was named; else what was wrong.
int until_it_fails(int rank, gdrxComm_t comm) {
  std::vector<float> data(2 << 20);
  for (int call = 0; call < 100'000; ++call) {
    const gdrxResult_t result = gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32,
                                              gdrxMax, comm, nullptr, nullptr);
    if (result == gdrxSuccess) continue;
    const std::string text = gdrxGetLastError(comm);
    std::fprintf(stderr, "rank %d: %s\n", rank, text.c_str());
    gdrxCommDestroy(comm);  // its thread ends before the process does
    return result == gdrxPeerLost && text.find("rank 1") != std::string::npos ? 10 : 11;
  }
  return 12;
}

TEST_F(Written, NamesARankThatIsKilledMeanwhile) {
  for (int round = 0; round < 5; ++round) {
    Processes world(3, with("two-shot"), until_it_fails);
    std::this_thread::sleep_for(300ms + round * 37ms);
    kill(world.pid(1), SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    EXPECT_EQ(world.wait(1), -SIGKILL);
    EXPECT_EQ(world.wait(0), 10);
    EXPECT_EQ(world.wait(2), 10);
    EXPECT_LT(std::chrono::steady_clock::now() - killed, 3s);
  }
}

// The last one: ranks are threads here, and the tests above fork.
constexpr std::size_t kElement[] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};  // by gdrxDataType_t

// Any bits do: two-shot through the arena has the same order of operations.
std::vector<unsigned char> bits_of(int rank, std::size_t bytes) {
  std::vector<unsigned char> bits(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    bits[i] = static_cast<unsigned char>((i * 2654435761u >> 9) + static_cast<unsigned>(rank) * 89);
  }
  return bits;
}

// What each rank has after all types, operators, counts and places, one behind the other.
std::vector<std::vector<unsigned char>> results(const World& world) {
  std::vector<std::vector<unsigned char>> all(static_cast<std::size_t>(world.size()));
  world.run([&](int rank, gdrxComm_t comm) {
    for (int type = 0; type < 12; ++type) {
      for (int op = 0; op < 5; ++op) {
        for (const std::size_t count : {0u, 1u, 2u, 1009u, 70'001u}) {
          const std::size_t bytes = count * kElement[type];
          auto in = bits_of(rank, bytes + 1);  // from 1 on: at odd addresses
          std::vector<unsigned char> out(bytes + 2, 0xEE);
          const auto call = [&](unsigned char* from, unsigned char* to) {
            EXPECT_EQ(gdrxAllReduce(from, to, count, static_cast<gdrxDataType_t>(type),
                                    static_cast<gdrxRedOp_t>(op), comm, nullptr, nullptr),
                      gdrxSuccess)
                << gdrxGetLastError(comm);
          };
          call(in.data() + 1, out.data() + 1);
          EXPECT_EQ(in, bits_of(rank, bytes + 1)) << "the input was changed";
          EXPECT_EQ(out.front(), 0xEE);
          EXPECT_EQ(out.back(), 0xEE);
          call(in.data() + 1, in.data() + 1);
          EXPECT_EQ(std::memcmp(in.data() + 1, out.data() + 1, bytes), 0) << "in place";
          auto& mine = all[static_cast<std::size_t>(rank)];
          mine.insert(mine.end(), out.begin(), out.end());
        }
      }
    }
  });
  return all;
}

TEST_F(Written, GivesTheBitsOfTheArenaForEveryTypeAndOperator) {
  for (const int ranks : {2, 3, 5}) {
    setenv("GDRX_CMA", "0", 1);
    const auto expected = results(World(ranks, with("two-shot")));
    setenv("GDRX_CMA", "2", 1);
    EXPECT_TRUE(results(World(ranks, with("two-shot"))) == expected) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace gdrx::test
