// SPDX-License-Identifier: Apache-2.0
#include "gdrx/text.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <type_traits>
#include <vector>

namespace gdrx {
namespace {

std::string long_words() { return std::string(100, 'a') + " text that no small string holds"; }

TEST(Text, ItsCopiesThrowNothing) {
  EXPECT_TRUE(std::is_nothrow_copy_constructible_v<Text>);
  EXPECT_TRUE(std::is_nothrow_copy_assignable_v<Text>);
  EXPECT_TRUE(std::is_nothrow_move_constructible_v<Text>);
}

TEST(Text, OutlivesWhatItWasMadeAndCopiedOf) {
  Text last;
  {
    std::string words = long_words();
    const Text first(words);
    words.assign(words.size(), 'b');
    last = first;
  }
  EXPECT_EQ(last, long_words());
  EXPECT_EQ(last.c_str()[last.size()], '\0');
}

TEST(Text, StaysWhenItIsAssignedToItself) {
  Text text(long_words());
  const Text& same = text;
  text = same;
  EXPECT_EQ(text, long_words());
}

TEST(Text, OfAnArrayThatMayChangeIsACopy) {
  char words[] = "first";
  const Text text(&words[0]);
  words[0] = 'F';
  EXPECT_EQ(text, "first");
}

TEST(Text, IsHeldByManyThreadsAtOnce) {
  std::vector<std::jthread> threads;
  {
    const Text text(long_words());
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([text] {
        for (int j = 0; j < 1000; ++j) {
          const Text copy = text;
          EXPECT_EQ(copy.size(), long_words().size());
        }
      });
    }
  }
}

TEST(Text, AddsUpWithStrings) {
  EXPECT_EQ("a " + Text("b") + " c", "a b c");
  const std::string made = Text("d");
  EXPECT_EQ(Text("c") + made, "cd");
}

}  // namespace
}  // namespace gdrx
