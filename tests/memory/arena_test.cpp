// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/arena.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

namespace gdrx {
namespace {

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

TEST(Arena, StartsAsZeroBytesOnAPageBoundary) {
  auto arena = Arena::create(10'000);
  ASSERT_TRUE(arena);
  ASSERT_EQ(arena->bytes().size(), 10'000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena->bytes().data()) % 4096, 0u);
  EXPECT_TRUE(std::all_of(arena->bytes().begin(), arena->bytes().end(),
                          [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Arena, ShowsAnotherProcesssWrites) {
  auto arena = Arena::create(4096);
  ASSERT_TRUE(arena);
  const ArenaTicket ticket = arena->ticket();
  const pid_t child = fork();
  if (child == 0) {
    auto mapped = Arena::open(ticket);
    if (!mapped) _exit(1);
    mapped->bytes()[4095] = std::byte{42};
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(arena->bytes()[4095], std::byte{42});
}

TEST(Arena, RefusesADescriptorThatIsNotTheAnnouncedObject) {
  auto arena = Arena::create(4096);
  ASSERT_TRUE(arena);
  ArenaTicket wrong_nonce = arena->ticket();
  wrong_nonce.nonce ^= 1;
  EXPECT_EQ(Arena::open(wrong_nonce).error().code, Errc::protocol);
  ArenaTicket wrong_size = arena->ticket();
  wrong_size.bytes *= 100;
  EXPECT_EQ(Arena::open(wrong_size).error().code, Errc::protocol);
  ArenaTicket no_process = arena->ticket();
  no_process.fd = 9999;
  EXPECT_EQ(Arena::open(no_process).error().code, Errc::system);
}

TEST(Arena, CannotBeCutUnderThoseWhoMapIt) {
  auto arena = Arena::create(4096);
  ASSERT_TRUE(arena);
  EXPECT_EQ(ftruncate(arena->ticket().fd, 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(Arena, OfAnotherIsNotMappedUnlessItIsSealed) {
  auto arena = Arena::create(4096);
  ASSERT_TRUE(arena);
  // The same bytes in a file that its owner can cut.
  const std::size_t bytes =
      std::filesystem::file_size("/proc/self/fd/" + std::to_string(arena->ticket().fd));
  std::vector<char> copy(bytes);
  ASSERT_EQ(pread(arena->ticket().fd, copy.data(), bytes, 0), static_cast<ssize_t>(bytes));
  ArenaTicket loose = arena->ticket();
  loose.fd = memfd_create("loose", MFD_CLOEXEC);
  ASSERT_EQ(write(loose.fd, copy.data(), bytes), static_cast<ssize_t>(bytes));
  const auto opened = Arena::open(loose);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().what.find("not sealed"), std::string::npos) << opened.error().what;
  close(loose.fd);
}

TEST(Arena, CannotBeOpenedOnceItIsSealed) {
  auto arena = Arena::create(4096);
  ASSERT_TRUE(arena);
  const ArenaTicket ticket = arena->ticket();
  arena->seal();
  EXPECT_FALSE(Arena::open(ticket));
}

TEST(Arena, LeavesNoDescriptorBehind) {
  const std::size_t before = open_descriptors();
  {
    auto arena = Arena::create(1 << 20);
    ASSERT_TRUE(arena);
    auto second = Arena::open(arena->ticket());
    ASSERT_TRUE(second);
    ArenaTicket wrong = arena->ticket();
    wrong.nonce ^= 1;
    ASSERT_FALSE(Arena::open(wrong));
    Arena moved = std::move(*arena);
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace gdrx
