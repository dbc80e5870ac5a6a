// SPDX-License-Identifier: Apache-2.0
// Communicators that share a mesh's connections: what is one's is no other's, a death is told to
// each that has the rank.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <numeric>
#include <thread>

#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/mesh_tree.hpp"
#include "transport/bootstrap/root.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kForksWithThreads = false;
#else
constexpr bool kForksWithThreads = true;
#endif

using Ranks = std::vector<std::int32_t>;
using Meshes = std::vector<std::unique_ptr<ControlMesh>>;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

Ranks first_ranks(int n) {
  Ranks ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void for_each(std::size_t ranks, const std::function<void(std::size_t)>& body) {
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { body(rank); });
}

Meshes make_meshes(int ranks) {
  Meshes meshes(static_cast<std::size_t>(ranks));
  auto bootstraps = ThreadBootstrap::create_all(ranks);
  for_each(meshes.size(), [&](std::size_t rank) {
    auto mesh = ControlMesh::create(*bootstraps[rank], {"", 1s, "here"}, Log(), in(20s));
    ASSERT_TRUE(mesh) << mesh.error().what;
    meshes[rank] = std::move(*mesh);
  });
  return meshes;
}

// One a member, in the order of the new ranks.
Meshes split(const Meshes& from, std::uint64_t id, const Ranks& members) {
  Meshes made;
  for (const std::int32_t member : members) {
    auto mesh = from[static_cast<std::size_t>(member)]->split(MeshGroupId{id}, members);
    EXPECT_TRUE(mesh) << mesh.error().what;
    if (mesh) made.push_back(std::move(*mesh));
  }
  return made;
}

/// What the handlers of some ranks hear.
struct Ears {
  explicit Ears(const Meshes& meshes) : heard(meshes.size()) {
    for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
      meshes[rank]->start({[this, rank](const FailureNotice& notice) {
                             const std::lock_guard lock(mutex);
                             heard[rank].push_back(notice);
                           },
                           nullptr});
    }
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    std::size_t all = 0;
    for (const auto& one : heard) all += one.size();
    return all;
  }
  bool await(std::size_t wanted) {
    for (int i = 0; i < 500 && count() < wanted; ++i) std::this_thread::sleep_for(10ms);
    return count() == wanted;
  }
  std::mutex mutex;
  std::vector<std::vector<FailureNotice>> heard;
};

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return std::distance(begin(entries), end(entries));
}

std::ptrdiff_t threads_here() {
  const std::filesystem::directory_iterator entries("/proc/self/task");
  return std::distance(begin(entries), end(entries));
}

TEST(MeshTree, ReachesEveryRankOnceBySomeLinkOfTheMesh) {
  for (std::int32_t n = 1; n <= 40; ++n) {
    const auto tree = mesh_tree(first_ranks(n), n);
    ASSERT_TRUE(tree) << n;
    EXPECT_EQ(tree->order.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(std::set<std::int32_t>(tree->order.begin(), tree->order.end()).size(),
              static_cast<std::size_t>(n));
    for (std::int32_t rank = 1; rank < n; ++rank) {
      const auto near = mesh_neighbours(rank, n);
      const std::int32_t parent = tree->parent[static_cast<std::size_t>(rank)];
      EXPECT_NE(std::find(near.begin(), near.end(), parent), near.end()) << n << ' ' << rank;
    }
  }
}

TEST(MeshTree, IsThereOnlyWhereTheRanksHaveLinksAmongThem) {
  EXPECT_TRUE(mesh_tree(Ranks{0, 2, 4, 6}, 8));
  EXPECT_TRUE(mesh_tree(Ranks{7, 6, 5, 4}, 8));
  EXPECT_TRUE(mesh_tree(Ranks{3}, 8));
  EXPECT_FALSE(mesh_tree(Ranks{0, 3}, 8)) << "at distance 3 there is none";
  EXPECT_FALSE(mesh_tree(Ranks{0, 1, 6, 9}, 12)) << "9 has links to 1, 5, 7, 8, 10, 11 alone";
}

TEST(MeshTree, OutlivesAnyOneOfThemWhereTheOthersAreStillJoined) {
  for (std::int32_t n = 1; n <= 10; ++n) {
    for (unsigned some = 1; some < 1U << n; ++some) {
      Ranks ranks;
      for (std::int32_t rank = 0; rank < n; ++rank) {
        if ((some >> rank & 1U) != 0) ranks.push_back(rank);
      }
      bool expected = mesh_tree(ranks, n).has_value();
      for (std::size_t gone = 0; gone < ranks.size() && ranks.size() > 1; ++gone) {
        Ranks others = ranks;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(gone));
        expected = expected && mesh_tree(others, n).has_value();
      }
      EXPECT_EQ(mesh_outlives_any(ranks, n), expected) << testing::PrintToString(ranks) << n;
    }
  }
}

class SharedMeshOf : public testing::TestWithParam<Ranks> {};

TEST_P(SharedMeshOf, GathersInTheNewOrderAndMakesNoConnectionAndNoThread) {
  const Ranks& members = GetParam();
  const Meshes whole = make_meshes(12);
  const auto descriptors = open_descriptors();
  const auto threads = threads_here();
  const Meshes some = split(whole, 77, members);
  ASSERT_EQ(some.size(), members.size());
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(threads_here(), threads);
  for_each(some.size(), [&](std::size_t rank) {
    EXPECT_EQ(some[rank]->rank(), Rank{static_cast<std::int32_t>(rank)});
    for (const std::size_t length : {std::size_t{0}, std::size_t{9}, std::size_t{70'000}}) {
      const Blob mine(length + rank, static_cast<std::byte>(members[rank]));
      const auto all = some[rank]->all_gather(mine, in(20s));
      ASSERT_TRUE(all) << all.error().what;
      ASSERT_EQ(all->size(), members.size());
      for (std::size_t peer = 0; peer < members.size(); ++peer) {
        EXPECT_EQ((*all)[peer], Blob(length + peer, static_cast<std::byte>(members[peer])));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedMeshOf,
                         testing::Values(Ranks{4}, Ranks{3, 2}, Ranks{11, 10, 9, 8, 7},
                                         Ranks{0, 2, 4, 6, 8, 10}, Ranks{5, 1, 3, 9, 7, 11},
                                         first_ranks(12)));

TEST(SharedMesh, KeepsWhatTwoGatherAtOnceApart) {
  const Meshes whole = make_meshes(6);
  const Meshes one = split(whole, 1, first_ranks(6));
  const Meshes other = split(whole, 2, Ranks{5, 4, 3, 2, 1, 0});
  for_each(12, [&](std::size_t i) {
    const bool second = i >= 6;
    const std::size_t rank = i % 6;
    for (int round = 0; round < 50; ++round) {
      const auto all = (second ? other : one)[rank]->all_gather(
          Blob(second ? 20'000 : 10, std::byte(rank)), in(20s));
      ASSERT_TRUE(all) << all.error().what;
      for (std::size_t peer = 0; peer < 6; ++peer) {
        ASSERT_EQ((*all)[peer], Blob(second ? 20'000 : 10, std::byte(peer)));
      }
    }
  });
}

TEST(SharedMesh, EndsOneByItsNoticeAndNoOther) {
  const Meshes whole = make_meshes(8);
  const Meshes some = split(whole, 9, Ranks{6, 4, 2, 0});
  Ears first(whole);
  Ears second(some);
  some[1]->announce({Errc::aborted, Rank{1}, Rank{1}, "stop"});
  EXPECT_TRUE(second.await(3));
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(second.count(), 3U);
  EXPECT_EQ(first.count(), 0U);
  whole[3]->announce({Errc::mismatch, Rank{3}, Rank{5}, "wrong"});
  EXPECT_TRUE(first.await(7));
  EXPECT_EQ(second.count(), 3U);
}

TEST(SharedMesh, LivesAsLongAsTheLastOfThoseThatShareIt) {
  const auto before = open_descriptors();
  {
    Meshes whole = make_meshes(4);
    Meshes half = split(whole, 5, Ranks{1, 0});
    Meshes again = split(half, 6, Ranks{1, 0});
    Ears first(whole);
    Ears ears(again);
    whole.clear();
    half.clear();
    std::this_thread::sleep_for(200ms);
    EXPECT_EQ(first.count(), 0U);
    EXPECT_EQ(ears.count(), 0U) << "those who had the others in one with them have left in order";
    again[0]->announce({Errc::aborted, Rank{0}, Rank{0}, "stop"});
    EXPECT_TRUE(ears.await(1));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(SharedMesh, IsLeftTogetherByEachOfThemInAnyOrder) {
  Meshes whole = make_meshes(5);
  Meshes some = split(whole, 5, Ranks{4, 3, 2, 1, 0});
  const Ears first(whole);
  const Ears second(some);
  for_each(10, [&](std::size_t i) {
    // Each rank leaves one after the other, in an order of its own, the waits beside each other.
    const std::size_t rank = i % 5;
    EXPECT_TRUE((i < 5 ? whole : some)[rank]->leave(in(20s)));
  });
  EXPECT_EQ(whole[0]->awaited(), "");
}

TEST(SharedMesh, SaysWhoDoesNotLeaveAndNobodyIsLeftByTheOther) {
  const Meshes whole = make_meshes(3);
  const Meshes some = split(whole, 5, Ranks{0, 1, 2});
  const Ears first(whole);
  const Ears second(some);
  for_each(2, [&](std::size_t rank) { EXPECT_FALSE(some[rank]->leave(in(100ms))); });
  EXPECT_NE(some[0]->awaited().find("rank 2"), std::string::npos) << some[0]->awaited();
  for_each(3, [&](std::size_t rank) { EXPECT_TRUE(whole[rank]->leave(in(20s))); });
  for_each(3, [&](std::size_t rank) { EXPECT_TRUE(some[rank]->leave(in(20s))); });
}

TEST(SharedMesh, FailsWhoGathersWhileAnotherRankGivesUp) {
  const Meshes whole = make_meshes(4);
  Meshes some = split(whole, 5, first_ranks(4));
  for_each(4, [&](std::size_t rank) {
    if (rank == 3) {
      some[rank].reset();
      return;
    }
    const auto all = some[rank]->all_gather(Blob(3), in(20s));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, Errc::peer_lost);
    EXPECT_NE(all.error().what.find("rank 3"), std::string::npos) << all.error().what;
  });
  for_each(4, [&](std::size_t rank) { EXPECT_TRUE(whole[rank]->all_gather(Blob(3), in(20s))); });
}

// A rank that has told two others of different members makes neither look like a liar.
TEST(SharedMesh, BlamesNobodyWhereTwoWereToldOfDifferentMembers) {
  const Meshes whole = make_meshes(3);
  const auto mine = whole[0]->split(MeshGroupId{5}, Ranks{0, 2});
  const auto other = whole[1]->split(MeshGroupId{5}, Ranks{0, 1, 2});
  ASSERT_TRUE(mine && other);
  for_each(2, [&](std::size_t rank) {
    const auto all = (rank == 0 ? *mine : *other)->all_gather(Blob(3), in(300ms));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, Errc::timeout) << all.error().what;
  });
  for_each(3, [&](std::size_t rank) {
    const auto all = whole[rank]->all_gather(Blob(3), in(5s));
    EXPECT_TRUE(all) << all.error().what;
  });
}

TEST(SharedMesh, RefusesAnIdThatIsThereAlready) {
  const Meshes whole = make_meshes(2);
  const Meshes some = split(whole, 5, Ranks{0, 1});
  EXPECT_FALSE(whole[0]->split(MeshGroupId{5}, Ranks{0, 1}));
  EXPECT_FALSE(whole[0]->split(MeshGroupId{0}, Ranks{0, 1}));
  for_each(2, [&](std::size_t rank) { EXPECT_TRUE(some[rank]->all_gather(Blob(3), in(20s))); });
}

// --- deaths

// A rank of its own process, in the whole and in a part of it; tells whom each has named.
[[noreturn]] void be_rank(const UniqueId& id, int rank, int ranks, const Ranks& members, int out) {
  auto bootstrap = TcpBootstrap::create(id, Rank{rank}, ranks, Log(), in(20s));
  if (!bootstrap) _exit(100);
  auto whole = ControlMesh::create(**bootstrap, {"", 1s, "here"}, Log(), in(20s));
  if (!whole) _exit(101);
  std::unique_ptr<ControlMesh> part;
  const auto at = std::find(members.begin(), members.end(), rank);
  if (at != members.end()) part = std::move(*(*whole)->split(MeshGroupId{99}, members));
  if (!(*whole)->all_gather({}, in(20s))) _exit(102);
  if (part && !part->all_gather({}, in(20s))) _exit(103);
  const auto tell = [out, rank](char which, const FailureNotice& notice) {
    const std::array<char, 4> word{which, static_cast<char>(rank),
                                   static_cast<char>(index(notice.subject)), '\n'};
    [[maybe_unused]] const ssize_t told = write(out, word.data(), word.size());
  };
  (*whole)->start({[&](const FailureNotice& notice) { tell('w', notice); }, nullptr});
  if (part) part->start({[&](const FailureNotice& notice) { tell('p', notice); }, nullptr});
  const std::array<char, 4> ready{'r', static_cast<char>(rank), 0, '\n'};
  [[maybe_unused]] const ssize_t told = write(out, ready.data(), ready.size());
  for (int i = 0; i < 2000; ++i) std::this_thread::sleep_for(10ms);
  _exit(0);
}

TEST(SharedMesh, NamesADeathToEachThatHasTheRankByItsNumberThere) {
  if (!kForksWithThreads) GTEST_SKIP() << "the child starts threads";
  constexpr int kRanks = 8;
  const Ranks members{6, 4, 2, 0};
  auto root = BootstrapRoot::start(loopback_address(), Log());
  ASSERT_TRUE(root);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) be_rank((*root)->id(), rank, kRanks, members, pipe_ends[1]);
    children.push_back(child);
  }
  std::array<char, 4> word{};
  const auto next = [&] { return read(pipe_ends[0], word.data(), word.size()) == 4; };
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(next());
  // Rank 4 is in the part, as its rank 1.
  ASSERT_EQ(kill(children[4], SIGKILL), 0);
  const auto begin = std::chrono::steady_clock::now();
  int of_whole = 0;
  int of_part = 0;
  for (int i = 0; i < kRanks - 1 + 3; ++i) {
    ASSERT_TRUE(next());
    EXPECT_EQ(word[2], word[0] == 'w' ? 4 : 1);
    ++(word[0] == 'w' ? of_whole : of_part);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 800ms);
  EXPECT_EQ(of_whole, kRanks - 1);
  EXPECT_EQ(of_part, 3);
  for (const pid_t child : children) kill(child, SIGKILL);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

}  // namespace
}  // namespace gdrx
