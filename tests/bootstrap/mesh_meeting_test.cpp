// SPDX-License-Identifier: Apache-2.0
// Who may share a mesh that goes on: what a rank says of itself in a meeting is proven by the mesh.
#include "transport/bootstrap/mesh_meeting.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 4;
// Of a card in an offer.
constexpr std::size_t kIdAt = 16;
constexpr std::size_t kRankAt = 32;
constexpr std::size_t kGoneCountAt = 40;
constexpr std::size_t kGoneAt = 44;

const ControlMesh::Options kOptions{"", 1s, "here"};

/// Four ranks have a mesh. This process shares the end of rank 0, and no other.
class MeshMeetingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto bootstraps = ThreadBootstrap::create_all(kRanks);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        auto mesh = ControlMesh::create(*bootstraps[rank], kOptions, Log(),
                                        Deadline::after(steady_clock(), 20s));
        ASSERT_TRUE(mesh) << mesh.error().what;
        meshes_[rank] = std::move(*mesh);
      });
    }
    threads.clear();
    meshes_[0]->share("config", 3);
  }

  static void change(Blob& offer, std::size_t at, std::int32_t value) {
    std::memcpy(offer.data() + at, &value, sizeof value);
  }
  // As if each other rank had said that it is the one of that number.
  std::vector<Blob> offers_of_all() {
    const Blob mine = meeting_.offer().value();
    std::vector<Blob> all(kRanks, mine);
    for (std::int32_t rank = 1; rank < kRanks; ++rank) {
      change(all[static_cast<std::size_t>(rank)], kRankAt, rank);
    }
    return all;
  }
  std::optional<MeshMeeting::Joined> join(const std::vector<Blob>& offers) {
    const auto common = meeting_.choose(offers);
    if (!common) return {};
    auto joined = meeting_.join(*common, offers, Rank{0});
    EXPECT_TRUE(joined) << joined.error().what;
    return std::move(joined).value();
  }
  bool joins(const std::vector<Blob>& offers) { return join(offers).has_value(); }

  std::array<std::unique_ptr<ControlMesh>, kRanks> meshes_;
  MeshMeeting meeting_ = MeshMeeting::of(kOptions, "config", kRanks);
};

TEST_F(MeshMeetingTest, SharesWhatAllHave) {
  meeting_ = MeshMeeting::of(kOptions, "config", kRanks);
  const std::vector<Blob> offers = offers_of_all();
  const auto joined = join(offers);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->mesh->size(), kRanks);
  EXPECT_EQ(meeting_.choose(offers)->facts, 3U);
}

TEST_F(MeshMeetingTest, BelievesNobodyWhomTheMeshDoesNotKnow) {
  meeting_ = MeshMeeting::of(kOptions, "config", kRanks);
  const auto joined = join(offers_of_all());
  ASSERT_TRUE(joined);
  // The processes of the mesh take no part: nobody can speak for them.
  const auto gathered = joined->mesh->all_gather({}, Deadline::after(steady_clock(), 300ms));
  ASSERT_FALSE(gathered);
  EXPECT_EQ(gathered.error().code, Errc::timeout);
  EXPECT_NE(gathered.error().what.find("in vain for rank"), std::string::npos)
      << gathered.error().what;
}

TEST_F(MeshMeetingTest, MakesANewOneWhereOffersDoNotFit) {
  meeting_ = MeshMeeting::of(kOptions, "config", kRanks);
  const std::vector<Blob> good = offers_of_all();
  EXPECT_TRUE(joins(good));
  std::vector<std::function<void(std::vector<Blob>&)>> lies{
      [](auto& all) { change(all[2], kRankAt, 1); },          // somebody else's place
      [](auto& all) { change(all[2], kRankAt, kRanks); },     // none
      [](auto& all) { change(all[2], kRankAt, -1); },         //
      [](auto& all) { change(all[2], kIdAt, 7); },            // another mesh
      [](auto& all) { change(all[2], kGoneCountAt, 1000); },  //
      [](auto& all) { change(all[2], kGoneCountAt, -1); },    //
      [](auto& all) { all[2].pop_back(); },                   // too short
      [](auto& all) { all[2].clear(); },
      [](auto& all) {  // it has no connection to rank 3 any more
        change(all[2], kGoneCountAt, 1);
        change(all[2], kGoneAt, 3);
      }};
  for (std::size_t i = 0; i < lies.size(); ++i) {
    std::vector<Blob> changed = good;
    lies[i](changed);
    EXPECT_FALSE(joins(changed)) << i;
  }
}

TEST_F(MeshMeetingTest, OffersNothingOfOtherOptionsAndNoFactsOfAnotherConfiguration) {
  ControlMesh::Options other = kOptions;
  other.silence = 7s;
  EXPECT_EQ(MeshMeeting::of(other, "config", kRanks).offer().value().at(kIdAt + 1), std::byte{0});
  meeting_ = MeshMeeting::of(kOptions, "another", kRanks);
  const auto common = meeting_.choose(offers_of_all());
  ASSERT_TRUE(common);
  EXPECT_EQ(common->facts, 0U);
}

// Which of them meets is not known.
TEST_F(MeshMeetingTest, OffersNoMeshOfWhichTheProcessHasTwoRanks) {
  meshes_[1]->share("config", 3);
  meeting_ = MeshMeeting::of(kOptions, "config", kRanks);
  EXPECT_FALSE(joins(offers_of_all()));
}

TEST_F(MeshMeetingTest, OffersNoneThatHasEnded) {
  meeting_ = MeshMeeting::of(kOptions, "config", kRanks);
  meshes_[0].reset();
  EXPECT_TRUE(joins(offers_of_all())) << "who meets keeps it";
  meeting_ = MeshMeeting();
  meeting_ = MeshMeeting::of(kOptions, "config", kRanks);
  EXPECT_FALSE(joins(offers_of_all()));
}

}  // namespace
}  // namespace gdrx
