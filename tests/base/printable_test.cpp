// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gdrx {
namespace {

TEST(Printable, ControlCharactersBecomeBlanks) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a [2Jb  ");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m\xc3\xa9\xc2\xb5"),
            "  1m\xc3\xa9\xc2\xb5")
      << "letters stay";
  EXPECT_EQ(printable("\xc2"), "\xc2");
  EXPECT_EQ(printable("a\tb", '?'), "a?b");
}

TEST(Printable, TakesBytesWithZerosInThem) {
  constexpr std::array kBytes{std::byte{'a'}, std::byte{0}, std::byte{'b'}};
  EXPECT_EQ(printable(kBytes), "a b");
}

TEST(Printable, OfAsciiAloneIsWhatIsNoLetterAQuestionMark) {
  EXPECT_EQ(printable_ascii("a \xc3\xa9~\x7f\x01"), "a ??~??");
}

}  // namespace
}  // namespace gdrx
