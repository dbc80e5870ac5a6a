// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/key.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <set>
#include <string>
#include <vector>

namespace gdrx {
namespace {

std::string hex(const Key& key) {
  std::string text;
  for (const std::byte b : key.bytes()) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

Key counting() {
  std::array<std::byte, Key::kBytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return Key(bytes);
}

// The value is Python's hmac module's, by RFC 5869's two steps.
TEST(Derivation, IsHkdfWithSha256) {
  const auto key = derive(counting(), "label", KeyContext().add(std::uint32_t{7}).add("text"));
  ASSERT_TRUE(key) << key.error().what;
  EXPECT_EQ(hex(*key), "d3741f9c46fe93cc387e5161b384d437ca57bce43edccdb15e45f7c4d885dab2");
}

TEST(Derivation, GivesAnotherKeyForEachKeyLabelAndContext) {
  const Key one = *derive(counting(), "a");
  const std::set<std::string> all{hex(counting()),
                                  hex(one),
                                  hex(*derive(one, "a")),
                                  hex(*derive(counting(), "b")),
                                  hex(*derive(counting(), "a", KeyContext().add(1))),
                                  hex(*derive(counting(), "a", KeyContext().add(std::int64_t{1}))),
                                  hex(*derive(counting(), "a", KeyContext().add("xy").add("z"))),
                                  hex(*derive(counting(), "a", KeyContext().add("x").add("yz"))),
                                  hex(*derive(counting(), "ax", KeyContext().add("yz")))};
  EXPECT_EQ(all.size(), 9u);
}

// Python's hashlib.scrypt() of the same parameters.
TEST(Stretching, IsScryptOf16Mebibytes) {
  const std::string_view secret = "a secret of sixteen bytes";
  const auto key = stretch(std::as_bytes(std::span(secret)), "gdrx secret");
  ASSERT_TRUE(key) << key.error().what;
  EXPECT_EQ(hex(*key), "f56c4936ff2445fafe3918be9d47ef4c6d5fe09c34beeaf845054f0a12534a4a");
}

// As much as a thousand ranks have to say.
TEST(Derivation, TakesAContextOfAnyLength) {
  std::vector<std::byte> said(128 << 10);
  const auto key_of = [&](std::size_t bytes) {
    return *derive(counting(), "a",
                   KeyContext().add(std::span<const std::byte>(said).first(bytes)));
  };
  const Key whole = key_of(said.size());
  EXPECT_EQ(whole, key_of(said.size()));
  EXPECT_FALSE(whole == key_of(said.size() - 1));
  EXPECT_FALSE(key_of(1016) == key_of(1017));
  said[70'000] = std::byte{1};
  EXPECT_FALSE(whole == key_of(said.size()));
}

TEST(Key, IsEqualToItsCopyAndDrawnAnewEachTime) {
  const auto one = Key::random();
  const auto other = Key::random();
  ASSERT_TRUE(one && other);
  EXPECT_TRUE(Key(*one) == *one);
  EXPECT_FALSE(*one == *other);
}

TEST(Key, IsWipedWhenItGoes) {
  alignas(Key) std::array<std::byte, sizeof(Key)> place{};
  Key* key = new (place.data()) Key(counting());
  key->~Key();
  EXPECT_EQ(place, (std::array<std::byte, sizeof(Key)>{}));
}

}  // namespace
}  // namespace gdrx
