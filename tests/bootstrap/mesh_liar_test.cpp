// SPDX-License-Identifier: Apache-2.0
// What a peer says of communicators that share a link is not trusted: one end of each link is a
// wire, the other the test's.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "transport/bootstrap/failure_notice.hpp"
#include "transport/bootstrap/mesh_frame.hpp"
#include "transport/bootstrap/mesh_wire.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

using Ranks = std::vector<std::int32_t>;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

void for_each(std::size_t ranks, const std::function<void(std::size_t)>& body) {
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { body(rank); });
}

class Liar : public testing::Test {
 protected:
  void SetUp() override {
    auto bootstraps = ThreadBootstrap::create_all(3);
    std::vector<MeshLinks> links(3);
    for_each(3, [&](std::size_t rank) {
      auto made = make_mesh_links(*bootstraps[rank], {"", 1s, "here"}, Log(), in(20s));
      ASSERT_TRUE(made) << made.error().what;
      links[rank] = std::move(*made);
    });
    wire_ = std::make_unique<MeshWire>(std::move(links[0]), 1s, 30s, Socket());
    liars_.push_back(std::move(links[1]));
    liars_.push_back(std::move(links[2]));
    whole_ = add(0, {0, 1, 2});
    pair_ = add(7, {0, 1});
    own_ = add(8, {0, 2});
  }
  MeshWire::Group add(std::uint64_t id, const Ranks& ranks, bool made = true) {
    std::vector<MeshMember> names(ranks.size());
    auto group = std::make_shared<MeshGroup>(MeshGroupId{id}, ranks, names, Rank{0},
                                             *mesh_tree(ranks, 3), wire_->links());
    EXPECT_TRUE(wire_->add(group));
    if (made) wire_->start(*group, nullptr);
    return group;
  }
  void say(std::size_t liar, FrameKind kind, std::uint64_t group, const Blob& payload) {
    for (MeshLink& link : liars_[liar].links) {
      if (link.peer != 0) continue;
      const Blob frame = encode_mesh_frame(kind, MeshGroupId{group}, payload);
      ASSERT_TRUE(link.socket.send_all(frame, in(5s)));
    }
  }
  void listen() {
    for (int i = 0; i < 30; ++i) {
      wire_->pump();
      std::this_thread::sleep_for(1ms);
    }
  }
  static bool blames_rank(const MeshWire::Group& group, std::int32_t rank, Errc code) {
    return group->notice && group->notice->code == code && index(group->notice->subject) == rank;
  }

  std::unique_ptr<MeshWire> wire_;
  std::vector<MeshLinks> liars_;
  MeshWire::Group whole_, pair_, own_;
};

// The whole of what a rank gathers that has nobody below it.
const Blob kTold = [] {
  Blob told{std::byte{0}};
  append_blob(told, Blob(3, std::byte{7}));
  return told;
}();
const Blob kAbort = encode_notice({Errc::aborted, Rank{1}, Rank{1}, "stop"});

TEST_F(Liar, WhoTellsOfOneThatItIsNotInIsBlamedByThoseThatItIsIn) {
  say(1, FrameKind::notice, 7, kAbort);  // rank 2 of the whole
  listen();
  EXPECT_FALSE(pair_->notice);
  EXPECT_TRUE(blames_rank(whole_, 2, Errc::protocol));
  EXPECT_TRUE(blames_rank(own_, 1, Errc::protocol));
}

TEST_F(Liar, WhoIsInOneEndsThatAlone) {
  say(0, FrameKind::notice, 7, kAbort);
  listen();
  EXPECT_TRUE(blames_rank(pair_, 1, Errc::aborted));
  EXPECT_FALSE(whole_->notice);
  EXPECT_FALSE(own_->notice);
}

TEST_F(Liar, WhatIsOfNoneCostsNothing) {
  for (int i = 0; i < 100; ++i) {
    say(0, FrameKind::notice, 1000, kAbort);
    say(0, FrameKind::data, 1001, Blob(10'000, std::byte{1}));
    say(0, FrameKind::fence, 1002, {});
  }
  listen();
  for (const auto& group : {whole_, pair_, own_}) EXPECT_FALSE(group->notice);
}

TEST_F(Liar, DataOfOneThatIsMadeIsOutOfTurn) {
  say(0, FrameKind::data, 7, Blob(3));
  listen();
  EXPECT_TRUE(blames_rank(pair_, 1, Errc::protocol));
  EXPECT_TRUE(blames_rank(whole_, 1, Errc::protocol));
  EXPECT_FALSE(own_->notice);
}

TEST_F(Liar, DataThatNobodyAskedForHasALimit) {
  pair_->started = false;
  say(0, FrameKind::data, 7, Blob(3));
  listen();
  EXPECT_FALSE(pair_->notice);
  say(0, FrameKind::data, 7, Blob(3));
  listen();
  EXPECT_TRUE(blames_rank(pair_, 1, Errc::protocol));
}

TEST_F(Liar, AFrameThatIsTooLongOrHasNoIdIsGarbage) {
  say(0, FrameKind::data, 7, Blob(kMostMeshFrame));
  listen();
  EXPECT_TRUE(blames_rank(pair_, 1, Errc::protocol));
}

// Nobody waits for room in a connection that has ended.
TEST_F(Liar, WhoHasReadNothingAndEndsKeepsNoThreadAwake) {
  const auto gathers = add(9, {0, 1}, false);
  say(0, FrameKind::data, 9, kTold);
  listen();
  EXPECT_TRUE(wire_->all_gather(*gathers, Blob(32 << 20), in(5s)));
  liars_[0].links.clear();
  listen();
  EXPECT_TRUE(blames_rank(pair_, 1, Errc::peer_lost));
  std::vector<pollfd> entries;
  EXPECT_EQ(wire_->prepare_poll(entries), Duration::max());
  EXPECT_EQ(entries.size(), 2U);  // the bell's, and rank 2's
}

// --- what comes of a communicator before this rank has joined it

TEST_F(Liar, WhoJoinedBeforeIsHeard) {
  say(0, FrameKind::data, 9, kTold);
  listen();
  const auto all = wire_->all_gather(*add(9, {0, 1}, false), Blob(5), in(5s));
  ASSERT_TRUE(all) << all.error().what;
  EXPECT_EQ(all->at(1), Blob(3, std::byte{7}));
}

TEST_F(Liar, WhoJoinedAndLeftBeforeIsNamedAtOnce) {
  say(0, FrameKind::goodbye, 9, Blob(1));
  say(0, FrameKind::notice, 10, kAbort);
  listen();
  for (const std::uint64_t id : {9, 10}) {
    const Instant begin = steady_clock().now();
    const auto all = wire_->all_gather(*add(id, {0, 1}, false), Blob(5), in(5s));
    ASSERT_FALSE(all);
    EXPECT_NE(all.error().what.find(id == 9 ? "rank 1" : "stop"), std::string::npos)
        << all.error().what;
    EXPECT_LT(steady_clock().now() - begin, 1s);
  }
}

TEST_F(Liar, WhoSpokeBeforeOfOneThatItIsNotInIsBlamed) {
  say(1, FrameKind::notice, 9, kAbort);
  listen();
  EXPECT_FALSE(whole_->notice);
  const auto joined = add(9, {0, 1});
  EXPECT_FALSE(joined->notice);
  EXPECT_TRUE(blames_rank(whole_, 2, Errc::protocol));
}

TEST_F(Liar, WhatWasSaidBeforeAndGaveWayIsNotAwaited) {
  say(0, FrameKind::data, 9, kTold);
  for (std::uint64_t id = 1000; id < 2100; ++id) say(0, FrameKind::notice, id, Blob(1));
  listen();
  const Instant begin = steady_clock().now();
  const auto all = wire_->all_gather(*add(9, {0, 1}, false), Blob(5), in(5s));
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().what.find("rank 1 "), std::string::npos) << all.error().what;
  EXPECT_LT(steady_clock().now() - begin, 1s);
}

TEST_F(Liar, WhoSpeaksOfManyThatAreNotThereTakesItsOwnRoomAlone) {
  say(0, FrameKind::data, 9, kTold);
  for (std::uint64_t id = 1000; id < 4000; ++id) {
    say(1, FrameKind::notice, id, id % 8 == 0 ? Blob(10'000) : Blob(1));
    if (id % 100 == 0) wire_->pump();
  }
  listen();
  for (const MeshLink& link : wire_->links()) {
    EXPECT_LE(link.held.bytes(), HeldFrames::kMostBytes);
    EXPECT_LE(link.held.frames(), HeldFrames::kMostFrames);
  }
  EXPECT_TRUE(wire_->all_gather(*add(9, {0, 1}, false), Blob(5), in(5s)));
  EXPECT_FALSE(whole_->notice);
}

}  // namespace
}  // namespace gdrx
