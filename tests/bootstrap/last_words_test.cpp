// SPDX-License-Identifier: Apache-2.0
// What a rank says when a communicator ends needs no memory: the lack of it may be why it ends.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/comm/shortage.hpp"
#include "transport/bootstrap/mesh_frame.hpp"
#include "transport/bootstrap/mesh_wire.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;
using test::Shortage;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

/// Two ranks: of one this is the wire, of the other the end of the link.
class LastWords : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto self = static_cast<std::size_t>(GetParam());
    auto bootstraps = ThreadBootstrap::create_all(2);
    std::vector<MeshLinks> links(2);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        auto made = make_mesh_links(*bootstraps[rank], {"", 1s, "here"}, Log(), in(20s));
        ASSERT_TRUE(made) << made.error().what;
        links[rank] = std::move(*made);
      });
    }
    threads.clear();
    wire_ = std::make_unique<MeshWire>(std::move(links[self]), 1s, 30s, Socket());
    other_ = std::move(links[1 - self]);
    for (const std::uint64_t id : {7, 8}) groups_.push_back(add(id));
    for (const auto& group : groups_) wire_->start(*group, nullptr);
  }
  MeshWire::Group add(std::uint64_t id) {
    const std::vector<std::int32_t> ranks{0, 1};
    auto group =
        std::make_shared<MeshGroup>(MeshGroupId{id}, ranks, std::vector<MeshMember>(2),
                                    Rank{GetParam()}, *mesh_tree(ranks, 2), wire_->links());
    EXPECT_TRUE(wire_->add(group));
    return group;
  }
  MeshLink& other() { return other_.links.front(); }
  void say(FrameKind kind, std::uint64_t group) {
    EXPECT_TRUE(other().socket.send_all(encode_mesh_frame(kind, MeshGroupId{group}, {}), in(5s)));
  }
  /// Kinds and lengths of what was said of 7, up to its goodbye.
  std::vector<std::pair<FrameKind, std::size_t>> heard_of_7() {
    std::vector<std::pair<FrameKind, std::size_t>> heard;
    Blob piece(1 << 16);
    for (const Deadline deadline = in(10s); !deadline.passed(steady_clock().now());) {
      wire_->pump();
      const auto received = other().socket.receive_some(piece);
      EXPECT_TRUE(received);
      if (received) reader_.feed(std::span(piece).first(*received));
      while (true) {
        auto frame = reader_.next();
        if (!frame || !*frame) break;
        std::span<const std::byte> payload((*frame)->payload);
        if (take_group_id(payload) != MeshGroupId{7}) continue;
        heard.emplace_back((*frame)->kind, payload.size());
        if (heard.back().first == FrameKind::goodbye) return heard;
      }
    }
    ADD_FAILURE() << "no goodbye";
    return heard;
  }

  std::unique_ptr<MeshWire> wire_;
  MeshLinks other_;
  std::vector<MeshWire::Group> groups_;
  FrameReader reader_;
};

using Heard = std::vector<std::pair<FrameKind, std::size_t>>;

TEST_P(LastWords, OfWhoHasMetNobodyNeedNoMemoryAndSaySo) {
  {
    const Shortage none(1);
    wire_->remove(*groups_[0]);
    EXPECT_FALSE(Shortage::came());
  }
  EXPECT_EQ(heard_of_7(), (Heard{{FrameKind::goodbye, 1}}));
  EXPECT_FALSE(groups_[1]->notice);
}

TEST_P(LastWords, OfAFailureNeedNoMemory) {
  const FailureNotice why{Errc::system, Rank{0}, Rank{0}, std::string(4000, 'x')};
  {
    const Shortage none(1);
    wire_->announce(*groups_[0], why);
    wire_->remove(*groups_[0]);
    EXPECT_FALSE(Shortage::came());
  }
  EXPECT_EQ(heard_of_7(), (Heard{{FrameKind::notice, kMostNotice}, {FrameKind::goodbye, 1}}));
}

TEST_P(LastWords, OfWhoHasMetAllNeedNoMemory) {
  say(FrameKind::fence, 7);
  if (GetParam() == 0) wire_->pump();
  {
    const Shortage none(1);
    (void)wire_->leave(*groups_[0], in(0s));
    EXPECT_FALSE(Shortage::came());
  }
  for (int i = 0; i < 100 && groups_[0]->leave == MeshGroup::Leave::waiting; ++i) {
    wire_->pump();
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(groups_[0]->leave, MeshGroup::Leave::together);
  EXPECT_EQ(heard_of_7(), (Heard{{FrameKind::fence, 0}, {FrameKind::goodbye, 0}}));
}

// The other reads nothing meanwhile.
TEST_P(LastWords, BehindMuchThatHasNoRoomNeedNoMemory) {
  const MeshWire::Group gathers = add(9);
  EXPECT_FALSE(wire_->all_gather(*gathers, Blob(8 << 20), in(0s)));
  {
    const Shortage none(1);
    for (const auto& group : groups_) wire_->announce(*group, {Errc::system, {}, {}, "an end"});
    wire_->remove(*groups_[0]);
    EXPECT_FALSE(Shortage::came());
  }
  EXPECT_EQ(heard_of_7().size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(As, LastWords, testing::Values(0, 1));

}  // namespace
}  // namespace gdrx
