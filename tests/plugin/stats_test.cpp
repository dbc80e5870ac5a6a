// SPDX-License-Identifier: Apache-2.0
// Counters: as the plugin leaves them in shared memory and `gdrx stats` reads them.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "plugin/stats/prometheus.hpp"
#include "plugin/stats/writer.hpp"
#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

std::string line_of(const std::string& text, const std::string& begin, const std::string& label) {
  std::size_t at = 0;
  while ((at = text.find(begin + "{", at)) != std::string::npos) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    if (line.find(label) != std::string::npos) return line;
    ++at;
  }
  return "no such line";
}

std::string own_counters() {
  const auto page = stats::open_page(stats::page_path(getpid()));
  return page ? stats::prometheus(**page) : describe(page.error());
}

TEST(Latency, BucketsDoubleFromAMicrosecondOn) {
  EXPECT_EQ(stats::bucket_of(0), 0U);
  EXPECT_EQ(stats::bucket_of(999), 0U);
  EXPECT_EQ(stats::bucket_of(1000), 1U);
  EXPECT_EQ(stats::bucket_of(1999), 1U);
  EXPECT_EQ(stats::bucket_of(2000), 2U);
  EXPECT_EQ(stats::bucket_of(~0ULL), stats::kBuckets - 1);
}

TEST(Page, OfAnotherVersionOrCutIsRefused) {
  const std::string path = testing::TempDir() + "gdrx-net.1";
  std::ofstream(path) << "short";
  EXPECT_FALSE(stats::open_page(path));
  std::ofstream(path) << std::string(sizeof(stats::Page), 'x');
  EXPECT_FALSE(stats::open_page(path));
  EXPECT_EQ(stats::processes(testing::TempDir()), std::vector<std::string>{"1"});
  unlink(path.c_str());
  EXPECT_FALSE(stats::open_page(path));
}

TEST(Page, TellsOfConnectionsThatFoundNoPlace) {
  stats::Page page;
  page.full.add(3);
  EXPECT_TRUE(line_of(stats::prometheus(page), "gdrx_net_uncounted_connections_total", "pid")
                  .ends_with(" 3"));
}

TEST(Page, OfAnotherUserIsNotBelieved) {
  if (getuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string path = testing::TempDir() + "gdrx-net.2";
  const auto page = std::make_unique<stats::Page>();
  page->magic = stats::kMagic;
  page->version = stats::kVersion;
  std::ofstream(path).write(reinterpret_cast<const char*>(page.get()), sizeof *page);
  EXPECT_TRUE(stats::open_page(path));
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  ASSERT_EQ(chown(path.c_str(), 4242, 4242), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const auto opened = stats::open_page(path);
  ASSERT_EQ(seteuid(0), 0);
  unlink(path.c_str());
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().what.find("user 4242"), std::string::npos) << opened.error().what;
}

// Process 1 of a PID namespace of its own, until its parent closes `go`; 0: there is no such.
class FirstOfANamespace {
 public:
  FirstOfANamespace() {
    int said[2], go[2];
    if (pipe(said) != 0 || pipe(go) != 0) return;
    outer_ = fork();
    if (outer_ == 0) {
      close(go[1]);
      if (unshare(CLONE_NEWPID) != 0) _exit(77);
      const pid_t inner = fork();
      char word = 0;
      if (inner == 0) {
        stats::start(8, Log(Level::error, nullptr));
        word = stats::page().pid == getpid() ? 'y' : 'n';
        [[maybe_unused]] auto done = write(said[1], &word, 1);
        done = read(go[0], &word, 1);
        stats::stop();
        _exit(0);
      }
      waitpid(inner, nullptr, 0);
      _exit(0);
    }
    close(said[1]);
    close(go[0]);
    char word = 0;
    made = read(said[0], &word, 1) == 1 && word == 'y';
    close(said[0]);
    go_ = go[1];
  }
  ~FirstOfANamespace() {
    close(go_);
    waitpid(outer_, nullptr, 0);
  }
  FirstOfANamespace(const FirstOfANamespace&) = delete;
  FirstOfANamespace& operator=(const FirstOfANamespace&) = delete;
  bool made = false;

 private:
  pid_t outer_ = 0;
  int go_ = -1;
};

ino_t file_of(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

TEST(Page, OfALiveProcessIsNotRemovedByAnotherContainersOfItsNumber) {
  const FirstOfANamespace first;
  if (!first.made) GTEST_SKIP() << "no PID namespaces here";
  const ino_t its = file_of(stats::page_path(1));
  ASSERT_NE(its, 0u);
  {
    const FirstOfANamespace second;
    ASSERT_TRUE(second.made);
    EXPECT_EQ(file_of(stats::page_path(1)), its);
    EXPECT_NE(file_of(stats::page_path(1, 1)), 0u);
    EXPECT_TRUE(stats::lives(stats::page_path(1)));
    EXPECT_TRUE(stats::open_page(stats::page_path(1, 1)));
  }
  EXPECT_EQ(file_of(stats::page_path(1)), its);
  EXPECT_EQ(file_of(stats::page_path(1, 1)), 0u);
}

TEST(Page, OfAKilledProcessIsDeadThoughItsChildSleepsOn) {
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  const pid_t counts = fork();
  if (counts == 0) {
    stats::start(8, Log(Level::error, nullptr));
    const char word = stats::page().pid == getpid() ? 'y' : 'n';
    if (fork() == 0) {  // and so it holds nothing of its parent's any more
      (void)!write(said[1], &word, 1);
      _exit(static_cast<int>(sleep(3)));
    }
    pause();
  }
  char word = 0;
  ASSERT_EQ(read(said[0], &word, 1), 1);
  close(said[0]);
  close(said[1]);
  const std::string path = stats::page_path(counts);
  EXPECT_TRUE(word == 'y' && stats::lives(path));
  kill(counts, SIGKILL);
  waitpid(counts, nullptr, 0);
  EXPECT_FALSE(stats::lives(path));
  unlink(path.c_str());
}

std::uint64_t completions() {
  return (*stats::open_page(stats::page_path(getpid())))->completions.get();
}

class Counters : public Opened {};
class Stall : public Opened {};

class ClearToSendRing : public Opened {
 protected:
  /// Writes to the sender's clear-to-send ring for 16 receives of that size ahead of their
  /// messages, which come.
  void count_clear_to_send_writes(std::size_t bytes, std::uint64_t* writes) {
    Pair pair(*net);
    pair.connect(context, context);
    std::vector<std::vector<std::byte>> in(16), out;
    const std::uint64_t before = completions();
    for (auto& one : in) {
      one.resize(bytes);
      pair.post_recv({&one}, {0});
    }
    int done = 0;
    ASSERT_EQ(net->test(pair.requests[0].handle, &done, nullptr), NetResult::success);
    *writes = completions() - before;
    for (unsigned i = 0; i < in.size(); ++i) out.push_back(pattern(bytes, i));
    for (auto& one : out) pair.post_send(one, 0);
    ASSERT_TRUE(pair.finish());
    EXPECT_EQ(in, out);
  }
};

TEST_F(Counters, TellMessagesBytesAndWhoIsAtTheOtherEnd) {
  {
    Pair pair(*net);
    pair.connect(context, context);
    std::vector<std::byte> in(300'000), out(300'000);
    for (int i = 0; i < 3; ++i) {
      pair.post_recv({&in}, {0});
      pair.post_send(out, 0);
      ASSERT_TRUE(pair.finish());
    }
    pair.post_recv({&in}, {0});
    const std::string text = own_counters();
    for (const char* way : {"way=\"send\"", "way=\"receive\""}) {
      EXPECT_TRUE(line_of(text, "gdrx_net_messages_total", way).ends_with(" 3")) << text;
      EXPECT_TRUE(line_of(text, "gdrx_net_bytes_total", way).ends_with(" 900000")) << text;
      EXPECT_TRUE(line_of(text, "gdrx_net_chunks_total", way).ends_with(" 9")) << text;
    }
    EXPECT_TRUE(line_of(text, "gdrx_net_thread_chunks_total", "pid").ends_with(" 18")) << text;
    EXPECT_TRUE(line_of(text, "gdrx_net_requests_open", "receive").ends_with(" 1")) << text;
    EXPECT_TRUE(line_of(text, "gdrx_net_requests_open", "send").ends_with(" 0")) << text;
    EXPECT_TRUE(line_of(text, "gdrx_net_latency_seconds_count", "send").ends_with(" 3")) << text;
  }
  EXPECT_EQ(line_of(own_counters(), "gdrx_net_messages_total", "way"), "no such line");
}

TEST_F(ClearToSendRing, LargeReceivesFarAheadAreToldTogetherAndSmallOnesAtOnce) {
  std::uint64_t large = 0, small = 0;
  count_clear_to_send_writes(100'000, &large);
  count_clear_to_send_writes(10'000, &small);
  EXPECT_EQ(large, 4U + 3U);  // four to begin with, then four by four
  EXPECT_EQ(small, 16U);
}

TEST_F(Stall, IsReportedWithWhatIsMissingAndFromWhom) {
  heard().clear();
  Pair pair(*net);
  pair.connect(context, context);
  std::vector<std::byte> in(777);
  pair.post_recv({&in}, {42});
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (heard().empty() && std::chrono::steady_clock::now() < until) {
    int done = 0;
    ASSERT_EQ(net->test(pair.requests[0].handle, &done, nullptr), NetResult::success);
  }
  EXPECT_NE(heard().find("nothing has moved for 0."), std::string::npos) << heard();
  EXPECT_NE(heard().find("tag 42 has 0 of at most 777 bytes"), std::string::npos) << heard();
}

}  // namespace
}  // namespace gdrx::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("GDRX_NET_STALL", "0.1", 1);  // before the plugin reads its environment
  setenv("GDRX_NET_COPY_THREADS", "2", 1);
  return RUN_ALL_TESTS();
}
