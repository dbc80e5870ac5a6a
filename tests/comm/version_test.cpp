// SPDX-License-Identifier: Apache-2.0
// Ranks of two versions of gdrx: every rank says the same line, which names both, however the ranks
// found each other.
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/comm/communicator.hpp"
#include "collectives/comm/function_bootstrap.hpp"
#include "gdrx/gdrx.h"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"
#include "transport/bootstrap/unique_id.hpp"

namespace gdrx {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kOther = 2;  // the rank of another version

/// Lets this rank's first blob say another version; `silent`: none, as versions before the check.
class OtherVersion final : public Bootstrap {
 public:
  OtherVersion(Bootstrap& real, bool silent) : real_(real), silent_(silent) {}
  Rank rank() const noexcept override { return real_.rank(); }
  int size() const noexcept override { return real_.size(); }
  Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                       Deadline deadline) override {
    Blob told(mine.begin(), mine.end());
    const std::uint32_t other = GDRX_VERSION + 102;
    if (!silent_) std::memcpy(told.data() + 4, &other, sizeof other);
    if (silent_) told = Blob(24, std::byte{7});
    return real_.all_gather(told, deadline);
  }

 private:
  Bootstrap& real_;
  bool silent_;
};

/// How ranks find each other: rank r's bootstrap, made in its thread.
using Meeting = std::function<std::unique_ptr<Bootstrap>(int rank)>;

void expect_named(const Meeting& meet, bool silent, const std::string& line) {
  std::vector<std::string> said(kRanks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const auto bootstrap = meet(static_cast<int>(rank));
        OtherVersion other(*bootstrap, silent);
        Communicator::Options options;
        auto made = Communicator::create(rank == kOther ? other : *bootstrap, std::move(options));
        if (made) return;
        EXPECT_EQ(made.error().code, Errc::mismatch);
        said[rank] = made.error().what;
      });
    }
  }
  for (const std::string& one : said) EXPECT_EQ(one, line);
}

constexpr const char* kLine =
    "rank 0 runs gdrx 0.1.0 and rank 2 gdrx 0.2.2: install the same version everywhere";

TEST(Version, ThatDiffersIsNamedOnEveryRankOfAProcess) {
  auto all = ThreadBootstrap::create_all(kRanks);
  expect_named([&](int rank) { return std::move(all[static_cast<std::size_t>(rank)]); }, false,
               kLine);
}

TEST(Version, ThatIsTooOldToSayIsNamedOnEveryRank) {
  auto all = ThreadBootstrap::create_all(kRanks);
  expect_named([&](int rank) { return std::move(all[static_cast<std::size_t>(rank)]); }, true,
               "rank 0 runs gdrx 0.1.0 and rank 2 gdrx of a version too old to say which: install "
               "the same version everywhere");
}

TEST(Version, ThatDiffersIsNamedOnEveryRankWithAUniqueId) {
  const Log log({}, nullptr);
  const auto id = make_unique_id("", log);
  ASSERT_TRUE(id) << id.error().what;
  expect_named(
      [&](int rank) {
        const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(20));
        return std::move(*TcpBootstrap::create(*id, Rank{rank}, kRanks, log, deadline));
      },
      false, kLine);
}

// MPI_Allgather is one such function.
TEST(Version, ThatDiffersIsNamedOnEveryRankOverAnAllGatherOfSomebodyElses) {
  std::barrier turn(kRanks);
  std::vector<const void*> given(kRanks);
  const auto all_gather = [&](int rank, const void* mine, void* all, std::size_t bytes) {
    given[static_cast<std::size_t>(rank)] = mine;
    turn.arrive_and_wait();
    for (std::size_t i = 0; i < given.size(); ++i) {
      std::memcpy(static_cast<std::byte*>(all) + i * bytes, given[i], bytes);
    }
    turn.arrive_and_wait();
    return 0;
  };
  expect_named(
      [&](int rank) {
        return std::make_unique<FunctionBootstrap>(
            Rank{rank}, kRanks, [&, rank](const void* mine, void* all, std::size_t bytes) {
              return all_gather(rank, mine, all, bytes);
            });
      },
      false, kLine);
}

}  // namespace
}  // namespace gdrx
