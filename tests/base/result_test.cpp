// SPDX-License-Identifier: Apache-2.0
#include "gdrx/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <type_traits>

#include "gdrx/clock.hpp"

namespace gdrx {
namespace {

Result<std::unique_ptr<int>> make(bool works) {
  if (!works) return fail(Errc::system, "open /dev/x", ENOENT);
  return std::make_unique<int>(5);
}

Result<int> use(bool works) {
  const std::unique_ptr<int> made = GDRX_TRY(make(works));  // moved out, not copied
  return *made;
}

TEST(Try, GivesTheValueOrPassesTheErrorOn) {
  EXPECT_EQ(use(true).value(), 5);
  const auto failed = use(false);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().native, ENOENT);
  EXPECT_EQ(failed.error().code, Errc::system);
}

TEST(Describe, IsOneLineWithTheSystemsWords) {
  const std::string text = describe(use(false).error());
  EXPECT_NE(text.find("open /dev/x"), std::string::npos);
  EXPECT_NE(text.find("No such file"), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(Error, ItsCopyThrowsNothing) {
  EXPECT_TRUE(std::is_nothrow_copy_constructible_v<Error>);
  EXPECT_TRUE(std::is_nothrow_copy_assignable_v<Error>);
}

TEST(Deadline, PassesWhenItsTimeIsUpAndNeverIfItIsNever) {
  class Turned final : public Clock {
   public:
    Instant now() const noexcept override { return at; }
    Instant at{};
  } clock;
  const Deadline deadline = Deadline::after(clock, std::chrono::seconds(2));
  EXPECT_EQ(deadline.left(clock.now()), std::chrono::seconds(2));
  clock.at += std::chrono::seconds(1);
  EXPECT_FALSE(deadline.passed(clock.now()));
  clock.at += std::chrono::seconds(1);
  EXPECT_TRUE(deadline.passed(clock.now()));
  EXPECT_EQ(deadline.left(clock.now()), Duration::zero());
  EXPECT_FALSE(Deadline::never().passed(clock.now()));
}

}  // namespace
}  // namespace gdrx
