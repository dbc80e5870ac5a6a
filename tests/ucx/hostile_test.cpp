// SPDX-License-Identifier: Apache-2.0
// A peer that lies about where it may write: refused by the side whose memory it is.
#include "tests/transport/device_rules.hpp"
#include "tests/ucx/pair.hpp"
#include "transport/ucx/wire.hpp"

namespace gdrx::test {
namespace {

using ucx::KeyHead;

class LyingPeer : public testing::TestWithParam<Lie<KeyHead>> {};

TEST_P(LyingPeer, IsRefusedAndWritesNothing) {
  Pair pair;
  expect_refusal(pair, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Kinds, LyingPeer, lies<KeyHead>(),
                         [](const auto& info) { return info.param.name; });

TEST(UcxRegions, ThatHaveEndedGiveTheirPlacesToOthers) {
  expect_places_to_be_used_again<KeyHead>(*Pair().receiver);
}

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
