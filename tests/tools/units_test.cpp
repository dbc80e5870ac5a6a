// SPDX-License-Identifier: Apache-2.0
#include "tools/units.hpp"

#include <gtest/gtest.h>

namespace gdrx::tools {
namespace {

TEST(Size, IsReadWithItsBinarySuffix) {
  EXPECT_EQ(parse_size("-b", "0").value(), 0u);
  EXPECT_EQ(parse_size("-b", "4096").value(), 4096u);
  EXPECT_EQ(parse_size("-b", "8B").value(), 8u);
  EXPECT_EQ(parse_size("-b", "64K").value(), 65536u);
  EXPECT_EQ(parse_size("-b", "64k").value(), 65536u);
  EXPECT_EQ(parse_size("-b", "1MiB").value(), 1048576u);
  EXPECT_EQ(parse_size("-b", "2G").value(), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_size("-b", "1024T").value(), std::uint64_t{1} << 50);
}

TEST(Size, OfAnotherFormIsRefusedWithTheOptionsName) {
  for (const char* text : {"", "K", "-1", "+1", "1.5M", "1Q", "1 M", "1KK", "1025T", "1MiBs",
                           "99999999999999999999", "0x10"}) {
    const auto size = parse_size("--size", text);
    ASSERT_FALSE(size) << text;
    EXPECT_TRUE(size.error().what.starts_with("--size takes a size")) << size.error().what;
  }
}

TEST(Duration, IsReadInMicroseconds) {
  EXPECT_DOUBLE_EQ(parse_us("-a", "2").value(), 2);
  EXPECT_DOUBLE_EQ(parse_us("-a", "2us").value(), 2);
  EXPECT_DOUBLE_EQ(parse_us("-a", "300ns").value(), 0.3);
  EXPECT_DOUBLE_EQ(parse_us("-a", "1.5ms").value(), 1500);
  EXPECT_DOUBLE_EQ(parse_us("-a", "1s").value(), 1e6);
  EXPECT_DOUBLE_EQ(parse_us("-a", "0").value(), 0);
}

TEST(Duration, OfAnotherFormIsRefused) {
  for (const char* text : {"", "us", "-1us", "2 us", "2min", "inf", "nan", "1e999"}) {
    EXPECT_FALSE(parse_us("--alpha", text)) << text;
  }
}

TEST(Positive, IsANumberOverZero) {
  EXPECT_DOUBLE_EQ(parse_positive("-w", "0.5").value(), 0.5);
  for (const char* text : {"", "0", "-1", "inf", "nan", "5x"}) {
    EXPECT_FALSE(parse_positive("--bandwidth", text)) << text;
  }
}

}  // namespace
}  // namespace gdrx::tools
