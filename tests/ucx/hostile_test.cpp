// SPDX-License-Identifier: Apache-2.0
// A peer that lies about where it may write: refused by the side whose memory it is.
#include "tests/ucx/pair.hpp"
#include "transport/ucx/wire.hpp"

namespace gdrx::test {
namespace {

using ucx::KeyHead;

struct Lie {
  const char* name;
  void (*tell)(KeyHead&);
  Bytes offset;
  const char* refusal;
};

class LyingPeer : public testing::TestWithParam<Lie> {};

TEST_P(LyingPeer, IsRefusedAndWritesNothing) {
  Pair pair;
  Blob key = pair.region->export_key();
  KeyHead head;
  std::memcpy(&head, key.data(), sizeof head);
  GetParam().tell(head);
  std::memcpy(key.data(), &head, sizeof head);
  const RemoteRegionId remote = pair.import(key);
  const Blob payload(64, std::byte{0x77});
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, remote, GetParam().offset)));
  const auto got = pair.receive();
  ASSERT_TRUE(got) << "neither a message nor an error";
  ASSERT_FALSE(*got) << "the write was taken";
  EXPECT_EQ((*got).error().code, Errc::protocol);
  EXPECT_NE((*got).error().what.find(GetParam().refusal), std::string::npos) << (*got).error().what;
  for (const std::byte b : pair.region->bytes()) ASSERT_EQ(b, Pair::kCanary);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LyingPeer,
    testing::Values(
        Lie{"Nonce", [](KeyHead& head) { head.nonce ^= 1; }, 0, "not there"},
        Lie{"Region", [](KeyHead& head) { head.region = 12345; }, 0, "not there"},
        Lie{"Length", [](KeyHead& head) { head.length = ~0ull; }, Pair::kBytes - 63, "of a region"},
        Lie{"Offset", [](KeyHead& head) { head.length = ~0ull; }, ~0ull - 64, "of a region"}),
    [](const auto& info) { return info.param.name; });

class MangledKey : public testing::Test {};

TEST_F(MangledKey, IsRefusedByTheImporter) {
  Pair pair;
  const Blob key = pair.region->export_key();
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, sizeof(KeyHead) - 1, sizeof(KeyHead), key.size() - 1}) {
    const auto imported = pair.endpoint->import_region(std::span(key).first(length));
    ASSERT_FALSE(imported) << length;
    EXPECT_EQ(imported.error().code, Errc::protocol);
  }
}

}  // namespace
}  // namespace gdrx::test
