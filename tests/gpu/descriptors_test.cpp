// SPDX-License-Identifier: Apache-2.0
// Descriptors between processes, with ordinary files.
#include "collectives/gpu/descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "collectives/gpu/descriptor_wire.hpp"

namespace gdrx::gpu {
namespace {

using std::chrono::milliseconds;

Deadline in(milliseconds limit) { return Deadline::after(steady_clock(), limit); }

/// A file that says which it is.
Result<Descriptor> numbered_file(std::size_t index) {
  Descriptor made(memfd_create("gdrx-test", MFD_CLOEXEC));
  const std::uint64_t number = index * 3 + 1;
  if (!made.valid() || write(made.fd(), &number, sizeof number) != sizeof number) {
    return fail(Errc::system, "memfd", errno);
  }
  return made;
}

std::size_t open_files() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

/// Fetches and compares every file's number; the number of right ones.
Result<std::size_t> fetch_numbers(const DescriptorAddress& server, std::size_t count) {
  std::size_t right = 0;
  GDRX_TRY(fetch_descriptors(
      server, count,
      [&](std::size_t index, Descriptor file) -> Result<void> {
        std::uint64_t number = 0;
        const ssize_t got = pread(file.fd(), &number, sizeof number, 0);
        right += got == sizeof number && number == index * 3 + 1 ? 1 : 0;
        return {};
      },
      in(milliseconds(20000))));
  return right;
}

/// Runs `life` in a process of its own; its exit status.
template <class Life>
int in_child(Life life) {
  const pid_t pid = fork();
  if (pid == 0) _exit(life());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(Descriptors, ArriveInAnotherProcessInOrder) {
  for (const std::size_t count : {1, 2, 15, 16, 17, 100}) {
    const auto server = DescriptorServer::start(count, numbered_file);
    ASSERT_TRUE(server) << server.error().what;
    const DescriptorAddress address = (*server)->address();
    EXPECT_EQ(in_child([&] {
                const auto right = fetch_numbers(address, count);
                return right && *right == count ? 0 : 1;
              }),
              0)
        << count;
  }
}

// Both sides of thousands are in this process: neither may hold them all.
TEST(Descriptors, AreNeverManyAtOnceAndNoneIsLeft) {
  constexpr std::size_t kCount = 3000;
  const std::size_t before = open_files();
  std::size_t most = 0;
  {
    const auto server = DescriptorServer::start(kCount, numbered_file);
    ASSERT_TRUE(server);
    std::size_t taken = 0;
    const auto done = fetch_descriptors((*server)->address(), kCount,
                                        [&](std::size_t index, const Descriptor&) -> Result<void> {
                                          if (index % 100 == 0) most = std::max(most, open_files());
                                          ++taken;
                                          return {};
                                        },
                                        in(milliseconds(60000)));
    EXPECT_TRUE(done) << done.error().what;
    EXPECT_EQ(taken, kCount);
  }
  EXPECT_LT(most, before + 60);
  EXPECT_EQ(open_files(), before);
}

TEST(Descriptors, SeveralProcessesAreServedOneAfterAnother) {
  const auto server = DescriptorServer::start(40, numbered_file);
  ASSERT_TRUE(server);
  const DescriptorAddress address = (*server)->address();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto got = fetch_numbers(address, 40);
      if (got && *got == 40) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
}

TEST(Descriptors, AreRefusedToWhoeverHasAnotherNonceOrExpectsAnotherNumber) {
  const auto server = DescriptorServer::start(3, numbered_file);
  ASSERT_TRUE(server);
  DescriptorAddress address = (*server)->address();
  address.nonce[15] ^= 1;
  const auto refused = fetch_numbers(address, 3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::peer_lost);
  EXPECT_NE(refused.error().what.find("refused"), std::string::npos) << refused.error().what;
  EXPECT_FALSE(fetch_numbers((*server)->address(), 2));
  EXPECT_EQ(fetch_numbers((*server)->address(), 3), 3);  // and goes on for the others
}

TEST(Descriptors, OfAProcessThatEndedAreNotWaitedFor) {
  DescriptorAddress gone;
  {
    const auto server = DescriptorServer::start(1, numbered_file);
    ASSERT_TRUE(server);
    gone = (*server)->address();
  }
  const auto result = fetch_numbers(gone, 1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::peer_lost);
}

// As a worker of a data loader is one.
TEST(Descriptors, OfAKilledProcessAreNotWaitedForThoughItsChildSleepsOn) {
  int said[2];
  ASSERT_EQ(pipe2(said, O_CLOEXEC), 0);
  const pid_t server = fork();
  if (server == 0) {
    const auto started = DescriptorServer::start(1, numbered_file);
    const DescriptorAddress address = (*started)->address();
    const pid_t child = fork();
    if (child == 0) _exit(static_cast<int>(sleep(3)));
    (void)!write(said[1], &address, sizeof address);
    pause();
  }
  DescriptorAddress gone;
  ASSERT_EQ(read(said[0], &gone, sizeof gone), static_cast<ssize_t>(sizeof gone));
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  close(said[0]);
  close(said[1]);
  const auto nothing = [](std::size_t, Descriptor) -> Result<void> { return {}; };
  const auto result = fetch_descriptors(gone, 1, nothing, in(milliseconds(500)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::peer_lost) << result.error().what;
}

TEST(Descriptors, AClientThatEndsHalfwayDoesNotHoldUpTheNext) {
  const auto server = DescriptorServer::start(64, numbered_file);
  ASSERT_TRUE(server);
  const DescriptorAddress address = (*server)->address();
  EXPECT_EQ(in_child([&] {
              (void)fetch_descriptors(
                  address, 64,
                  [](std::size_t index, const Descriptor&) -> Result<void> {
                    if (index == 20) _exit(3);
                    return {};
                  },
                  in(milliseconds(20000)));
              return 1;
            }),
            3);
  EXPECT_EQ(fetch_numbers(address, 64), 64);
}

// A socket that listens and never answers, as a stopped process's does.
TEST(Descriptors, AServerThatSaysNothingIsWaitedForUntilTheDeadline) {
  DescriptorAddress address;
  address.name[0] = 0x5a;
  const auto pid = static_cast<std::uint32_t>(getpid());
  std::memcpy(&address.name[4], &pid, sizeof pid);
  const AbstractName name(address.name);
  const Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.fd(), name.address(), name.length), 0);
  ASSERT_EQ(listen(listener.fd(), 1), 0);
  const auto begin = std::chrono::steady_clock::now();
  const auto result = fetch_descriptors(
      address, 1, [](std::size_t, const Descriptor&) { return Result<void>(); },
      in(milliseconds(200)));
  const auto spent = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::timeout);
  EXPECT_GE(spent, milliseconds(200));
  EXPECT_LT(spent, milliseconds(3000));
}

TEST(Descriptors, AServerEndsWhileAClientSaysNothing) {
  auto server = DescriptorServer::start(1, numbered_file);
  ASSERT_TRUE(server);
  const AbstractName name((*server)->address().name);
  const Descriptor client(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.fd(), name.address(), name.length), 0);
  std::this_thread::sleep_for(milliseconds(50));
  const auto begin = std::chrono::steady_clock::now();
  server->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(800));
}

TEST(Descriptors, AReasonWhyThereIsNoneArrives) {
  const auto server = DescriptorServer::start(20, [](std::size_t index) -> Result<Descriptor> {
    if (index == 17) return fail(Errc::unsupported, "the seventeenth is not for others");
    return numbered_file(index);
  });
  ASSERT_TRUE(server);
  const auto result = fetch_numbers((*server)->address(), 20);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("the seventeenth"), std::string::npos) << result.error().what;
}

TEST(Descriptors, WhatTheTakerRefusesIsHisError) {
  const auto server = DescriptorServer::start(5, numbered_file);
  ASSERT_TRUE(server);
  const std::size_t before = open_files();
  const auto result = fetch_descriptors((*server)->address(), 5,
                                        [](std::size_t index, const Descriptor&) -> Result<void> {
                                          if (index == 2)
                                            return fail(Errc::system, "cannot map it");
                                          return {};
                                        },
                                        in(milliseconds(20000)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "cannot map it");
  // The server's side of the socket may close a little later.
  for (int i = 0; i < 100 && open_files() > before; ++i)
    std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace gdrx::gpu
