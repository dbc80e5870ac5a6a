// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/copy_apart.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gdrx {
namespace {

TEST(CopyApart, CopiesWhatItIsToldAndNoMoreWhereverItsEndsLie) {
  constexpr std::size_t kPage = 4096;
  std::vector<std::byte> source(5 * kPage);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 >> 3);
  for (const std::size_t bytes : {0U, 1U, 2047U, 2048U, 2049U, 4136U, 16384U}) {
    for (std::size_t behind = 0; behind <= 66; ++behind) {
      std::vector<std::byte> room(7 * kPage, std::byte{0xee});
      const auto at = reinterpret_cast<std::uintptr_t>(room.data());
      const auto from = reinterpret_cast<std::uintptr_t>(source.data());
      const std::size_t begin = (from + behind - at) % kPage;
      copy_apart(room.data() + begin, source.data(), bytes);
      const auto rest = room.begin() + static_cast<long>(begin + bytes);
      EXPECT_TRUE(std::equal(room.begin() + static_cast<long>(begin), rest, source.begin()))
          << bytes << " bytes, " << behind << " behind";
      const auto kept = [](std::byte byte) { return byte == std::byte{0xee}; };
      EXPECT_TRUE(std::all_of(rest, room.end(), kept));
      EXPECT_TRUE(std::all_of(room.begin(), room.begin() + static_cast<long>(begin), kept));
    }
  }
}

}  // namespace
}  // namespace gdrx
