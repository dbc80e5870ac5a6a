// SPDX-License-Identifier: Apache-2.0
#include "base/system_library.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace gdrx {
namespace {

constexpr const char* kNone = "libgdrx-is-on-no-host.so.9";
constexpr const char* kMath = "libm.so.6";

TEST(SystemLibrary, IsTheFirstOfItsNamesThatIsThere) {
  const SystemLibrary library = SystemLibrary::open({kNone, kMath});
  EXPECT_TRUE(library.opened());
  EXPECT_STREQ(library.name(), kMath);
  EXPECT_EQ(library.version(), "6");
}

TEST(SystemLibrary, FillsATableAndLeavesWhatIsNewerEmpty) {
  SystemLibrary library = SystemLibrary::open({kMath});
  double (*cosine)(double) = nullptr;
  int (*newer)() = [] { return 1; };
  EXPECT_TRUE(library.take({{cosine, "cos"}, {newer, "gdrx_none", Symbol::Need::newer}}));
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(newer, nullptr);
}

TEST(SystemLibrary, NamesTheFirstThatItLacks) {
  SystemLibrary library = SystemLibrary::open({kMath});
  int (*first)() = nullptr;
  int (*second)() = nullptr;
  double (*cosine)(double) = nullptr;
  EXPECT_FALSE(library.take({{first, "gdrx_first"}, {second, "gdrx_second"}}));
  EXPECT_FALSE(library.take({{cosine, "cos"}})) << "what was missed stays missed";
  EXPECT_FALSE(library.whole());
  EXPECT_EQ(library.error().code, Errc::unsupported);
  EXPECT_EQ(library.error("install another").what,
            "libm.so.6 (6) is too old: it lacks gdrx_first; install another");
}

TEST(SystemLibrary, OfOtherSymbolVersionsIsTooOld) {
  SystemLibrary library = SystemLibrary::open({kMath});
  EXPECT_EQ(library.need("cos", "GDRX_1.0"), nullptr);
  EXPECT_NE(std::string(library.error().what).find("lacks cos@GDRX_1.0"), std::string::npos);
}

TEST(SystemLibrary, ThatIsNotThereSaysWhyAndHasNothing) {
  SystemLibrary library = SystemLibrary::open({kNone}, "install it");
  int (*function)() = [] { return 1; };
  EXPECT_FALSE(library.take({{function, "anything"}}));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(library.error().what, "libgdrx-is-on-no-host.so.9 cannot be loaded: install it");
  EXPECT_EQ(library.version(), "");
}

TEST(SystemLibrary, IsNotLoadedForAQuestion) {
  EXPECT_FALSE(SystemLibrary::open({"libnsl.so.1"}, "", SystemLibrary::If::loaded).opened());
  EXPECT_TRUE(SystemLibrary::open({"libc.so.6"}, "", SystemLibrary::If::loaded).opened());
}

TEST(SystemLibrary, MovesWithWhatItMissed) {
  SystemLibrary from = SystemLibrary::open({kMath});
  (void)from.need("gdrx_first");
  const SystemLibrary to = std::move(from);
  EXPECT_TRUE(to.opened());
  EXPECT_FALSE(to.whole());
}

}  // namespace
}  // namespace gdrx
