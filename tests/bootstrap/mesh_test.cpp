// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <new>
#include <thread>

#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/mesh_tree.hpp"
#include "transport/bootstrap/root.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

ControlMesh::Options options() { return {"", 1s, "this-host"}; }

using Meshes = std::vector<std::unique_ptr<ControlMesh>>;

Meshes make_meshes(int ranks, const ControlMesh::Options& as = options()) {
  Meshes meshes(static_cast<std::size_t>(ranks));
  auto bootstraps = ThreadBootstrap::create_all(ranks);
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < meshes.size(); ++r) {
    threads.emplace_back([&, r] {
      auto mesh = ControlMesh::create(*bootstraps[r], as, Log(), in(20s));
      if (mesh) {
        meshes[r] = std::move(*mesh);
      } else {
        ADD_FAILURE() << mesh.error().what;
      }
    });
  }
  return meshes;
}

TEST(MeshNeighbours, AreMutualAndReachEverybodyInLogHops) {
  for (std::int32_t n = 1; n <= 40; ++n) {
    for (std::int32_t r = 0; r < n; ++r) {
      for (const std::int32_t peer : mesh_neighbours(r, n)) {
        const auto back = mesh_neighbours(peer, n);
        EXPECT_NE(std::find(back.begin(), back.end(), r), back.end());
        EXPECT_NE(peer, r);
      }
      EXPECT_LE(mesh_neighbours(r, n).size(), 12u);
    }
  }
}

class MeshOf : public testing::TestWithParam<int> {};

TEST_P(MeshOf, GathersEverybodysBlob) {
  const Meshes meshes = make_meshes(GetParam());
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < meshes.size(); ++r) {
    threads.emplace_back([&, r] {
      for (const std::size_t length : {r * 11, r * 5'000}) {
        const auto all = meshes[r]->all_gather(Blob(length, static_cast<std::byte>(r)), in(20s));
        ASSERT_TRUE(all) << all.error().what;
        for (std::size_t s = 0; s < all->size(); ++s) {
          const std::size_t expected = length == r * 11 && r > 0 ? s * 11 : (*all)[s].size();
          EXPECT_EQ((*all)[s].size(), expected);
          EXPECT_TRUE((*all)[s].empty() || (*all)[s].back() == static_cast<std::byte>(s));
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, MeshOf, testing::Values(1, 2, 3, 5, 16, 33));

TEST(Mesh, CarriesANoticeToEveryRankOnce) {
  const Meshes meshes = make_meshes(12);
  std::vector<std::promise<FailureNotice>> heard(12);
  for (std::size_t r = 0; r < 12; ++r) {
    meshes[r]->start(
        {[&, r](const FailureNotice& notice) { heard[r].set_value(notice); }, nullptr});
  }
  meshes[5]->announce({Errc::mismatch, Rank{5}, Rank{7}, "rank 7 is\nwrong"});
  for (std::size_t r = 0; r < 12; ++r) {
    if (r == 5) continue;
    auto future = heard[r].get_future();
    ASSERT_EQ(future.wait_for(5s), std::future_status::ready) << r;
    const FailureNotice notice = future.get();
    EXPECT_EQ(notice.code, Errc::mismatch);
    EXPECT_EQ(notice.subject, Rank{7});
    EXPECT_EQ(notice.text, "rank 7 is wrong");  // no line of a peer's breaks ours
  }
}

TEST(Mesh, DoesNotTakeARankThatLeftInOrderForDead) {
  Meshes meshes = make_meshes(4);
  std::atomic<int> notices{0};
  for (const auto& mesh : meshes) mesh->start({[&](const FailureNotice&) { ++notices; }, nullptr});
  meshes[1].reset();
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(notices.load(), 0);
  meshes[0]->announce({Errc::aborted, Rank{0}, Rank{0}, "stop"});
  for (int i = 0; i < 200 && notices.load() < 2; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(notices.load(), 2);  // 2 and 3, round the one that left
}

// A rank of its own process: joins, watches, tells what it heard by its exit status.
[[noreturn]] void be_rank(const UniqueId& id, int rank, int ranks, int ready) {
  auto bootstrap = TcpBootstrap::create(id, Rank{rank}, ranks, Log(), in(20s));
  if (!bootstrap) _exit(100);
  auto mesh = ControlMesh::create(**bootstrap, options(), Log(), in(20s));
  if (!mesh) _exit(101);
  (*mesh)->start({[](const FailureNotice& notice) { _exit(10 + index(notice.subject)); }, nullptr});
  [[maybe_unused]] const ssize_t told = write(ready, "x", 1);
  for (int i = 0; i < 2000; ++i) std::this_thread::sleep_for(10ms);
  _exit(0);
}

TEST(Mesh, NamesAKilledProcessToEverySurvivorAndAStoppedOneToNobody) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer may hang in the child of a process that has threads";
#endif
  constexpr int kRanks = 6;
  auto root = BootstrapRoot::start(loopback_address(), Log());
  ASSERT_TRUE(root);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) be_rank((*root)->id(), rank, kRanks, ready[1]);
    children.push_back(child);
  }
  char mark = 0;
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(read(ready[0], &mark, 1), 1);
  ASSERT_EQ(kill(children[2], SIGSTOP), 0);
  std::this_thread::sleep_for(1500ms);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(waitpid(children[static_cast<std::size_t>(rank)], nullptr, WNOHANG), 0) << rank;
  }
  ASSERT_EQ(kill(children[2], SIGCONT), 0);
  ASSERT_EQ(kill(children[4], SIGKILL), 0);
  const auto begin = std::chrono::steady_clock::now();
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[static_cast<std::size_t>(rank)], &status, 0),
              children[static_cast<std::size_t>(rank)]);
    EXPECT_TRUE(rank == 4 || WEXITSTATUS(status) == 14) << rank;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 800ms);
  close(ready[0]);
  close(ready[1]);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kForksWithThreads = false;  // TSan ends such a child, ASan may hang in it
#else
constexpr bool kForksWithThreads = true;
#endif

// Two ranks, of which the second is stopped for ten times the silence.
struct Stop {
  const char* other_host;
  bool data_path_hears;
};

int verdict_on_a_stopped_rank(const Stop& stop) {
  auto root = BootstrapRoot::start(loopback_address(), Log());
  const auto join = [&](int rank, const char* host) {
    auto bootstrap = TcpBootstrap::create((*root)->id(), Rank{rank}, 2, Log(), in(20s));
    return ControlMesh::create(**bootstrap, {"lo", 20ms, host, {}, 100ms}, Log(), in(20s));
  };
  const pid_t child = fork();
  if (child == 0) {
    auto mesh = join(1, stop.other_host);
    (*mesh)->start({[](const FailureNotice&) {}, nullptr});
    std::this_thread::sleep_for(20s);
    _exit(0);
  }
  std::atomic<int> named{-1};
  auto mesh = join(0, "this-host");
  (*mesh)->start({[&](const FailureNotice& notice) { named = index(notice.subject); }, nullptr,
                  [&](Rank) { return stop.data_path_hears; }});
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(named.load(), -1);  // it said that it lives
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(1000ms);
  const int verdict = named.load();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return verdict;
}

TEST(Mesh, TakesARankOfAnotherHostThatIsSilentForLost) {
  if (!kForksWithThreads) GTEST_SKIP() << "the child starts threads";
  EXPECT_EQ(verdict_on_a_stopped_rank({"another", false}), 1);
}

TEST(Mesh, TakesNoSilentRankForLostOfWhichTheDataPathHears) {
  if (!kForksWithThreads) GTEST_SKIP() << "the child starts threads";
  EXPECT_EQ(verdict_on_a_stopped_rank({"another", true}), -1);
}

TEST(Mesh, TakesNoStoppedRankOfItsOwnHostForLost) {
  if (!kForksWithThreads) GTEST_SKIP() << "the child starts threads";
  EXPECT_EQ(verdict_on_a_stopped_rank({"this-host", false}), -1);
}

TEST(Mesh, BlamesNobodyForItsOwnStandstill) {
  const Meshes meshes = make_meshes(2, {"", 20ms, "this-host", {}, 100ms});
  std::atomic<int> notices{0};
  std::atomic<bool> slow{true};
  const auto stand_still = [&]() -> Duration {
    if (slow.exchange(false)) std::this_thread::sleep_for(600ms);
    return 1ms;
  };
  meshes[0]->start({nullptr, nullptr, [](Rank) { return true; }});
  meshes[1]->start({[&](const FailureNotice&) { ++notices; }, stand_still});
  std::this_thread::sleep_for(900ms);
  EXPECT_EQ(notices.load(), 0);
}

// A communicator that is destroyed waits for a turn in which its failure is told.
TEST(Mesh, TakesItsTurnsThoughThereIsNoMemoryToTellOfIt) {
  const Meshes meshes = make_meshes(2);
  std::atomic<int> ticks{0};
  meshes[0]->start({[](const FailureNotice&) { throw std::bad_alloc(); },
                    [&ticks]() -> Duration {
                      if (ticks.fetch_add(1) == 0) throw std::bad_alloc();
                      return 1ms;
                    },
                    {}});
  for (int i = 0; i < 500 && ticks.load() < 5; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_GE(ticks.load(), 5);
}

TEST(Mesh, LeavesNoDescriptorBehind) {
  const auto open = [] {
    const std::filesystem::directory_iterator entries("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  const auto before = open();
  { const Meshes meshes = make_meshes(5); }
  EXPECT_EQ(open(), before);
}

}  // namespace
}  // namespace gdrx
