// SPDX-License-Identifier: Apache-2.0
// Children of fork() inherit descriptors and objects, but neither threads nor the right to use
// them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/root.hpp"
#include "transport/bootstrap/socket.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kForksWithThreads = false;  // locks of a sanitizer's heap stay held there
#else
constexpr bool kForksWithThreads = true;
#endif

/// Its exit status; -1 if it does not end within `time`.
int status_within(pid_t child, Duration time) {
  const Deadline deadline = in(time);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (deadline.passed(steady_clock().now())) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(5ms);
  }
  return WEXITSTATUS(status);
}

// How a program makes a child of itself. The second tells nobody, as some languages' runtimes do.
pid_t by_fork() { return fork(); }
pid_t by_clone() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, 0, 0, 0)); }

// Two ranks, of which the second has a child that sleeps, and then is killed.
struct Watch {
  std::string host[2] = {"this-host", "this-host"};
  Duration heartbeat = 1s;
  Duration silence = 30s;
  pid_t (*child)() = by_fork;
};

[[noreturn]] void be_rank(const UniqueId& id, int rank, const Watch& watch, int ready) {
  auto bootstrap = TcpBootstrap::create(id, Rank{rank}, 2, Log(), in(20s));
  if (!bootstrap) _exit(100);
  const ControlMesh::Options options{"lo", watch.heartbeat, watch.host[rank], {}, watch.silence};
  auto mesh = ControlMesh::create(**bootstrap, options, Log(), in(20s));
  if (!mesh) _exit(101);
  (*mesh)->start({[](const FailureNotice& notice) { _exit(10 + index(notice.subject)); }, nullptr});
  if (rank == 1 && watch.child() == 0) {
    const timespec nap{8, 0};
    nanosleep(&nap, nullptr);
    _exit(0);
  }
  [[maybe_unused]] const ssize_t told = write(ready, "x", 1);
  std::this_thread::sleep_for(20s);
  _exit(0);
}

/// How long the first rank takes to name the second.
Duration time_to_name(const Watch& watch) {
  auto root = BootstrapRoot::start(loopback_address(), Log());
  int ready[2] = {};
  EXPECT_EQ(pipe(ready), 0);
  pid_t ranks[2] = {};
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = fork();
    if (ranks[rank] == 0) be_rank((*root)->id(), rank, watch, ready[1]);
  }
  char mark = 0;
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(read(ready[0], &mark, 1), 1);
  std::this_thread::sleep_for(50ms);
  const Instant begin = steady_clock().now();
  kill(ranks[1], SIGKILL);
  EXPECT_EQ(status_within(ranks[0], 15s), 11);
  const Duration took = steady_clock().now() - begin;
  waitpid(ranks[1], nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  return took;
}

TEST(Forked, ChildThatSleepsDoesNotHideTheDeathOfItsRank) {
  if (!kForksWithThreads) GTEST_SKIP();
  EXPECT_LT(time_to_name({}), 1s);
}

TEST(Forked, ChildThatSleepsDoesNotHideTheDeathOfItsRankToAnotherHost) {
  if (!kForksWithThreads) GTEST_SKIP();
  EXPECT_LT(time_to_name({.host = {"this-host", "another"}}), 1s);
}

TEST(Forked, ChildOfARawCloneHidesTheDeathOfItsRankToAnotherHostForTheSilenceAlone) {
  if (!kForksWithThreads) GTEST_SKIP();
  const Duration took = time_to_name(
      {.host = {"this-host", "another"}, .heartbeat = 50ms, .silence = 500ms, .child = by_clone});
  EXPECT_GT(took, 300ms);
  EXPECT_LT(took, 3s);
}

TEST(Forked, ChildOfARawCloneDoesNotHideTheDeathOfItsRankOnOneHost) {
  if (!kForksWithThreads) GTEST_SKIP();
  EXPECT_LT(time_to_name({.child = by_clone}), 1s);
}

TEST(Forked, ChildThatExitsDoesNotWaitForThreadsOfItsParent) {
  if (!kForksWithThreads) GTEST_SKIP();
  ASSERT_TRUE(make_unique_id("lo", Log()));  // its root lives until the process ends
  const pid_t child = fork();
  if (child == 0) std::exit(7);
  EXPECT_EQ(status_within(child, 5s), 7);
}

struct Pair {
  Pair() {
    auto listener = Socket::listen(loopback_address());
    near = std::move(*Socket::connect(*listener->local_address(), in(5s)));
    far = std::move(*listener->accept());
  }
  Socket near;
  Socket far;
};

TEST(Forked, ChildCannotSpeakOnAConnectionOfItsParent) {
  const Pair pair;
  const pid_t child = fork();
  if (child == 0) {
    const std::byte word[4] = {};
    _exit(pair.near.send_all(word, in(1s)) ? 1 : 0);
  }
  EXPECT_EQ(status_within(child, 5s), 0);
  std::byte piece[4];
  const auto received = pair.far.receive_some(piece);
  ASSERT_TRUE(received) << received.error().what;  // nor has it ended the connection
  EXPECT_EQ(*received, 0U);
}

TEST(Forked, ChildThatPutsAwayASocketClosesNoFileOfItsOwn) {
  auto pair = std::make_unique<Pair>();
  const pid_t child = fork();
  if (child == 0) {
    int files[16];
    for (int& file : files) file = memfd_create("own", MFD_CLOEXEC);
    pair.reset();
    for (const int file : files) {
      if (write(file, "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  EXPECT_EQ(status_within(child, 5s), 0);
}

TEST(Forked, ManyForksBesideThreadsThatConnectLeaveNoConnectionInAnyChild) {
  if (!kForksWithThreads) GTEST_SKIP();
  const auto listener = Socket::listen(loopback_address());
  std::atomic<bool> stop{false};
  std::jthread busy([&] {
    while (!stop.load()) {
      auto near = Socket::connect(*listener->local_address(), in(5s));
      auto far = listener->accept();
    }
  });
  int leaks = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      int found = 0;
      for (int fd = 3; fd < 64; ++fd) {
        sockaddr_storage address{};
        socklen_t length = sizeof address;
        const bool named = getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
        if (named && address.ss_family == AF_INET) ++found;
      }
      _exit(found);
    }
    leaks += std::abs(status_within(child, 5s));
  }
  stop.store(true);
  EXPECT_EQ(leaks, 0);
}

}  // namespace
}  // namespace gdrx
