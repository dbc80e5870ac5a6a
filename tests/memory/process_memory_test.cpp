// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/process_memory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace gdrx {
namespace {

std::uint64_t address_of(void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

/// A forked process that ends with the value of its byte when it is told to.
class Child {
 public:
  explicit Child(volatile unsigned char* byte) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) ADD_FAILURE() << "pipe";
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[1]);
      char none = 0;
      while (read(ends[0], &none, 1) > 0) continue;  // until the other end is closed
      _exit(*byte);
    }
    close(ends[0]);
    told_ = ends[1];
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  int end() {
    if (told_ < 0) return -1;
    close(told_);
    told_ = -1;
    int status = 0;
    return waitpid(pid_, &status, 0) == pid_ && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  int told_ = -1;
};

unsigned char target[3] = {1, 2, 3};

TEST(ProcessMemory, AnotherProcessIsRecognisedAndWritten) {
  auto ticket = own_process();
  ASSERT_TRUE(ticket);
  const auto gate = WriteGate::create();
  ASSERT_TRUE(gate);
  Child child(&target[1]);
  ticket->pid = child.pid();  // a fork: its words are where ours are
  ASSERT_TRUE(try_process(*ticket));
  const std::byte value{42};
  EXPECT_EQ(write_process(child.pid(), gate->address(), address_of(&target[1]), {&value, 1}),
            Written::all);
  EXPECT_EQ(child.end(), 42);
  EXPECT_EQ(target[1], 2) << "ours, not the child's";
}

TEST(ProcessMemory, ThisProcessIsOneToo) {
  const auto ticket = own_process();
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(try_process(*ticket));
  std::vector<std::byte> from(1'000'003, std::byte{7});
  std::vector<std::byte> to(from.size());
  const auto gate = WriteGate::create();
  ASSERT_TRUE(gate);
  EXPECT_EQ(write_process(getpid(), gate->address(), address_of(to.data()), from), Written::all);
  EXPECT_TRUE(from == to);
}

TEST(ProcessMemory, AStrangerIsNotWritten) {
  auto ticket = own_process();
  ASSERT_TRUE(ticket);
  std::uint64_t words[2] = {ticket->nonce + 1, 5};
  ticket->words = address_of(words);
  const auto tried = try_process(*ticket);
  ASSERT_FALSE(tried);
  EXPECT_EQ(tried.error().code, Errc::protocol);
  EXPECT_EQ(words[1], 5u);
}

TEST(ProcessMemory, WhatIsNotMappedIsAnErrorAndNoSignal) {
  auto ticket = own_process();
  ASSERT_TRUE(ticket);
  ticket->words = 8;
  EXPECT_FALSE(try_process(*ticket));
  const std::byte value{1};
  const auto gate = WriteGate::create();
  ASSERT_TRUE(gate);
  EXPECT_EQ(write_process(getpid(), gate->address(), 8, {&value, 1}), Written::not_so);
}

TEST(ProcessMemory, IsReadOnlyOfTheProcessThatIsMeant) {
  auto ticket = own_process();
  ASSERT_TRUE(ticket);
  std::vector<std::byte> from(1'000'003, std::byte{7});
  std::vector<std::byte> to(from.size());
  EXPECT_EQ(read_process(*ticket, address_of(from.data()), to), Written::all);
  EXPECT_TRUE(from == to);
  EXPECT_EQ(read_process(*ticket, 8, to), Written::not_so);
  ++ticket->nonce;  // this one has the number of another that died
  EXPECT_EQ(read_process(*ticket, address_of(from.data()), to), Written::gone);
}

TEST(ProcessMemory, NothingComesThroughAGateThatIsClosedOrEnded) {
  std::byte to{1};
  const std::byte value{2};
  std::uint64_t address = 0;
  {
    auto gate = WriteGate::create();
    ASSERT_TRUE(gate);
    address = gate->address();
    gate->close();
    EXPECT_EQ(write_process(getpid(), address, address_of(&to), {&value, 1}), Written::refused);
  }
  const auto next = WriteGate::create();  // not where the late one looks
  ASSERT_TRUE(next);
  EXPECT_NE(next->address(), address);
  EXPECT_EQ(write_process(getpid(), address, address_of(&to), {&value, 1}), Written::refused);
  EXPECT_EQ(to, std::byte{1});
}

TEST(ProcessMemory, AThreadThatIsStoppedOrGoneIsNotRunning) {
  EXPECT_TRUE(is_running(getpid(), own_thread()));
  unsigned char none = 0;
  Child child(&none);
  EXPECT_TRUE(is_running(child.pid(), child.pid()));
  kill(child.pid(), SIGSTOP);
  int status = 0;
  waitpid(child.pid(), &status, WUNTRACED);
  EXPECT_FALSE(is_running(child.pid(), child.pid()));
  kill(child.pid(), SIGCONT);
  const pid_t pid = child.pid();
  child.end();
  EXPECT_FALSE(is_running(pid, pid));
}

TEST(ProcessMemory, AProcessThatIsGoneIsLost) {
  Child child(&target[0]);
  const pid_t pid = child.pid();
  EXPECT_EQ(child.end(), 1);
  const std::byte value{1};
  EXPECT_EQ(write_process(pid, 8, address_of(&target[0]), {&value, 1}), Written::gone);
  EXPECT_EQ(write_process(pid, 8, 8, {}), Written::all) << "nothing to write";
}

}  // namespace
}  // namespace gdrx
