// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/unique_id.hpp"

#include <gtest/gtest.h>

#include "gdrx/bootstrap.hpp"

namespace gdrx {
namespace {

Blob bytes_of(const UniqueId& id) {
  const auto bytes = std::as_bytes(std::span(&id, 1));
  return Blob(bytes.begin(), bytes.end());
}

TEST(UniqueId, SurvivesItsBytes) {
  const auto id = make_id_for(loopback_address());
  ASSERT_TRUE(id);
  const auto decoded = decode_unique_id(bytes_of(*id));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->root, id->root);
  EXPECT_EQ(decoded->nonce[0], id->nonce[0]);
}

TEST(UniqueId, RefusesEveryFlippedByteOfItsContent) {
  const auto id = make_id_for(loopback_address());
  ASSERT_TRUE(id);
  for (std::size_t i = 0; i < offsetof(UniqueId, reserved); ++i) {
    Blob bytes = bytes_of(*id);
    bytes[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode_unique_id(bytes)) << i;
  }
}

TEST(UniqueId, RefusesShortLongAndEmptyOnes) {
  const auto id = make_id_for(loopback_address());
  ASSERT_TRUE(id);
  Blob bytes = bytes_of(*id);
  EXPECT_FALSE(decode_unique_id(std::span(bytes).first(127)));
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_unique_id(bytes));
  EXPECT_FALSE(decode_unique_id({}));
  EXPECT_FALSE(decode_unique_id(Blob(128)));
}

TEST(UniqueId, TwoAreNeverTheSame) {
  const auto a = make_id_for(loopback_address());
  const auto b = make_id_for(loopback_address());
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->nonce[0], b->nonce[0]);
}

}  // namespace
}  // namespace gdrx
