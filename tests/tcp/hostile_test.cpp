// SPDX-License-Identifier: Apache-2.0
// A peer that lies about where it may write: refused by the side whose memory it is.
#include "tests/tcp/pair.hpp"
#include "tests/transport/device_rules.hpp"
#include "transport/tcp/wire.hpp"

namespace gdrx::test {
namespace {

using tcp::RegionKey;

class LyingTcpPeer : public testing::TestWithParam<Lie<RegionKey>> {};

TEST_P(LyingTcpPeer, IsRefusedAndWritesNothing) {
  TcpPair pair(false);
  expect_refusal(pair, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Kinds, LyingTcpPeer, lies<RegionKey>(),
                         [](const auto& info) { return info.param.name; });

TEST(LyingTcpPeer, EndsAloneWhereTheDeviceIsolatesItsPeers) {
  TcpPair pair(false);
  pair.receiver->isolate_peers();
  const auto other = open_tcp(Rank{2}, tcp_config(false));
  const auto honest = other->connect(Rank{1}, pair.receiver->address()).value();
  const RemoteRegionId theirs = honest->import_region(pair.region->export_key()).value();
  const auto back = pair.receiver->connect(Rank{0}, pair.sender->address()).value();
  RegionKey key;
  std::memcpy(&key, pair.region->export_key().data(), sizeof key);
  key.length = ~0ull;
  const RemoteRegionId remote =
      pair.endpoint->import_region(std::as_bytes(std::span(&key, 1))).value();
  const Blob payload(64, std::byte{0x77});
  pair.sender->isolate_peers();
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, remote, TcpPair::kBytes)));
  ASSERT_TRUE(drive({pair.sender.get(), pair.receiver.get()}, [&] { return back->error(); }));
  EXPECT_EQ(back->error()->code, Errc::protocol);
  ASSERT_TRUE(honest->post(write_of(payload, theirs, 0)));
  EXPECT_TRUE(drive({other.get(), pair.receiver.get()},
                    [&] { return pair.region->bytes()[0] == std::byte{0x77}; }));
}

TEST(TcpRegions, ThatHaveEndedGiveTheirPlacesToOthers) {
  expect_places_to_be_used_again<RegionKey>(*TcpPair(false).receiver);
}

TEST(LateTcpWrite, ToARegionThatHasEndedIsDroppedByAnIsolatingDevice) {
  TcpPair pair(false);
  pair.receiver->isolate_peers();
  const RemoteRegionId ended = pair.import();
  auto region = pair.receiver->allocate_memory(4096).value();
  pair.region.swap(region);
  region.reset();
  const RemoteRegionId live = pair.import();
  const Blob payload(64, std::byte{0x77});
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, ended, 0)));
  WriteOp op = write_of(payload, live, 0);
  op.immediate = 8;
  ASSERT_TRUE(pair.endpoint->post(op));
  const auto got = pair.receive();
  ASSERT_TRUE(got && *got) << (got ? (*got).error().what : "nothing came");
  EXPECT_EQ((*got)->immediate, 8u) << "the late write was told of";
}

// The region ends while a message for it is half there.
TEST(LateTcpWrite, OfWhichAPartHasComeTouchesNothingAfterTheRegion) {
  TcpPair pair(true);
  pair.receiver->isolate_peers();
  const Blob payload(TcpPair::kBytes, std::byte{0x77});
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, pair.import(), 0)));
  ASSERT_TRUE(drive({pair.sender.get(), pair.receiver.get()},
                    [&] { return pair.region->bytes()[0] == std::byte{0x77}; }));
  auto next = pair.receiver->allocate_memory(4096).value();
  pair.region.swap(next);
  next.reset();  // unmapped: a write there would end this process
  WriteOp op = write_of(std::span(payload).first(8), pair.import(), 0);
  op.immediate = 8;
  ASSERT_TRUE(pair.endpoint->post(op));
  const auto got = pair.receive();
  ASSERT_TRUE(got && *got) << (got ? (*got).error().what : "nothing came");
  EXPECT_EQ((*got)->immediate, 8u);
}

TEST(MangledTcpKey, IsRefusedByTheImporter) {
  TcpPair pair(false);
  const Blob key = pair.region->export_key();
  Blob longer = key;
  longer.push_back({});
  Blob other = key;
  other[0] ^= std::byte{1};
  for (const Blob& mangled : {Blob(), Blob(key.begin(), key.end() - 1), longer, other}) {
    const auto imported = pair.endpoint->import_region(mangled);
    ASSERT_FALSE(imported) << mangled.size();
    EXPECT_EQ(imported.error().code, Errc::protocol);
  }
}

}  // namespace
}  // namespace gdrx::test
