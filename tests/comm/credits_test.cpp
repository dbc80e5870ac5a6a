// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/credits.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace gdrx::exec {
namespace {

// What was written, of an endpoint that takes a write only where it has room.
struct Written {
  int room = 0;
  std::vector<std::uint64_t> credits;
};

class Way final : public Endpoint {
 public:
  explicit Way(Written& written) : written_(written) {}
  Rank peer() const noexcept override { return Rank{1}; }
  Result<RemoteRegionId> import_region(std::span<const std::byte>) override { return {}; }
  Result<Progress> post(const WriteOp& op) override {
    if (written_.room == 0) return Progress::pending;
    --written_.room;
    std::uint64_t credit = 0;
    std::memcpy(&credit, op.header.data(), sizeof credit);
    written_.credits.push_back(credit);
    return Progress::done;
  }
  std::string describe() const override { return "a test's"; }
  void release_region(RemoteRegionId) noexcept override {}
  const Error* error() const noexcept override { return nullptr; }

 private:
  Written& written_;
};

class CreditsTest : public testing::Test {
 protected:
  void consume(std::uint64_t messages) {
    for (std::uint64_t i = 0; i < messages; ++i) {
      ASSERT_TRUE(credits_.give_back(send_ring_, 0, ++consumed_));
    }
  }
  Written written_;
  SendRing send_ring_{std::make_unique<Way>(written_), RemoteRegionId{}, RingShape{}, Rank{0}};
  Credits credits_;
  std::uint64_t consumed_ = 0;
};

TEST_F(CreditsTest, GoBackWithEverySecondMessage) {
  written_.room = 10;
  consume(6);
  EXPECT_EQ(written_.credits, (std::vector<std::uint64_t>{2, 4, 6}));
  EXPECT_FALSE(credits_.owes());
}

TEST_F(CreditsTest, ThatFoundNoRoomAreOwedUntilTheyArePaid) {
  consume(2);
  EXPECT_TRUE(credits_.owes());
  written_.room = 1;
  EXPECT_TRUE(credits_.pay());
  EXPECT_EQ(written_.credits, std::vector<std::uint64_t>{2});
  EXPECT_FALSE(credits_.owes());
}

// The peer would wait for ever for what it has been given already.
TEST_F(CreditsTest, NeverFallBehindThoseThatWentBefore) {
  consume(2);
  written_.room = 10;
  consume(2);
  EXPECT_TRUE(credits_.pay());
  EXPECT_EQ(written_.credits, std::vector<std::uint64_t>{4});
}

}  // namespace
}  // namespace gdrx::exec
