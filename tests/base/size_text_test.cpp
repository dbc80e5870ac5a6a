// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.hpp"

#include <gtest/gtest.h>

namespace gdrx {
namespace {

TEST(ReadSize, TakesANumberWithABinaryUnit) {
  EXPECT_EQ(read_size("0"), 0u);
  EXPECT_EQ(read_size("4096"), 4096u);
  EXPECT_EQ(read_size("8B"), 8u);
  EXPECT_EQ(read_size("64K"), 65536u);
  EXPECT_EQ(read_size("64k"), 65536u);
  EXPECT_EQ(read_size("1MiB"), 1048576u);
  EXPECT_EQ(read_size("2G"), std::uint64_t{2} << 30);
  EXPECT_EQ(read_size("1024T"), std::uint64_t{1} << 50);
}

TEST(ReadSize, OfAnotherFormIsNone) {
  for (const char* text : {"", "K", "-1", "+1", "1.5M", "1Q", "1 M", " 1", "1KK", "1025T", "1MiBs",
                           "99999999999999999999", "0x10"}) {
    EXPECT_EQ(read_size(text), std::nullopt) << text;
  }
}

TEST(SizeText, IsShortAndSaysItsUnit) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(65536), "64 KiB");
  EXPECT_EQ(size_text(std::uint64_t{4} << 30), "4 GiB");
  EXPECT_EQ(size_text(1536), "1536 bytes");
  EXPECT_EQ(size_text(100'000'000), "95.4 MiB");
}

TEST(SizeText, OfARoundSizeIsReadBack) {
  for (const Bytes bytes : {Bytes{1} << 10, Bytes{3} << 20, Bytes{7} << 30, Bytes{1} << 40}) {
    std::string text = size_text(bytes);
    text.erase(text.find(' '), 1);
    EXPECT_EQ(read_size(text), bytes) << text;
  }
}

}  // namespace
}  // namespace gdrx
