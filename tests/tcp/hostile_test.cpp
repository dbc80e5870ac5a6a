// SPDX-License-Identifier: Apache-2.0
// A peer that lies about where it may write: refused by the side whose memory it is.
#include "tests/tcp/pair.hpp"
#include "transport/tcp/wire.hpp"

namespace gdrx::test {
namespace {

using tcp::RegionKey;

struct Lie {
  const char* name;
  void (*tell)(RegionKey&);
  Bytes offset;
  const char* refusal;
};

class LyingTcpPeer : public testing::TestWithParam<Lie> {};

TEST_P(LyingTcpPeer, IsRefusedAndWritesNothing) {
  TcpPair pair(false);
  Blob key = pair.region->export_key();
  RegionKey head;
  std::memcpy(&head, key.data(), sizeof head);
  GetParam().tell(head);
  std::memcpy(key.data(), &head, sizeof head);
  const RemoteRegionId remote = pair.endpoint->import_region(key).value();
  const Blob payload(64, std::byte{0x77});
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, remote, GetParam().offset)));
  const auto got = pair.receive();
  ASSERT_TRUE(got) << "neither a message nor an error";
  ASSERT_FALSE(*got) << "the write was taken";
  EXPECT_EQ((*got).error().code, Errc::protocol);
  EXPECT_NE((*got).error().what.find(GetParam().refusal), std::string::npos) << (*got).error().what;
  EXPECT_TRUE(pair.untouched());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LyingTcpPeer,
    testing::Values(Lie{"Nonce", [](RegionKey& head) { head.nonce ^= 1; }, 0, "not there"},
                    Lie{"Region", [](RegionKey& head) { head.region = 12345; }, 0, "not there"},
                    Lie{"Length", [](RegionKey& head) { head.length = ~0ull; },
                        TcpPair::kBytes - 63, "of a region"},
                    Lie{"Offset", [](RegionKey& head) { head.length = ~0ull; }, ~0ull - 64,
                        "of a region"}),
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
