// SPDX-License-Identifier: Apache-2.0
// What one rank cannot do after a call was made, where the others can: all hear of it at once. And
// what all cannot do alike, which harms nothing.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "tests/comm/thread_ranks.hpp"
#include "tests/gpu/no_path.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

class NeverReached final : public gpu::Event {
 public:
  Result<bool> reached() override { return false; }
  Result<void> hold(void*) override { return {}; }
};

/// A GPU that takes every call; rank 1's may refuse it.
class Path final : public gpu::NoPath {
 public:
  Path(int rank, Errc refusal) : refuses_(rank == 1), refusal_(refusal) {
    ticket_.process = 1;
    ticket_.processors = 132;
    ticket_.device[0] = static_cast<std::uint8_t>(rank);
  }
  Result<void> launch(const gpu::Work&, const gpu::Shape&, void*) override { return {}; }
  Result<std::unique_ptr<gpu::Event>> mark(void*) override {
    if (refuses_) return fail(refusal_, "not on this rank");
    return std::make_unique<NeverReached>();
  }

 private:
  bool refuses_;
  Errc refusal_;
};

class Refusal : public ThreadRanks, public testing::WithParamInterface<Errc> {
 protected:
  static Call nothing() {
    Call call;
    call.collective = Collective::all_reduce;
    return call;
  }
};

TEST_P(Refusal, OfOneRankAfterItHasBegunEndsTheCallOnAll) {
  make(2, [](int rank) { return std::make_unique<Path>(rank, GetParam()); });
  const auto begin = std::chrono::steady_clock::now();
  const auto posted = comms_[0]->post(nothing());
  ASSERT_TRUE(posted) << posted.error().what;
  EXPECT_FALSE(comms_[1]->post(nothing()));
  while (!comms_[0]->failure() && std::chrono::steady_clock::now() - begin < 5s) {
    std::this_thread::sleep_for(1ms);
  }
  const auto failure = comms_[0]->failure();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->what.find("not on this rank"), std::string::npos) << failure->what;
}

INSTANTIATE_TEST_SUITE_P(Codes, Refusal,
                         testing::Values(Errc::unsupported, Errc::invalid_argument, Errc::system));

class Patience : public ThreadRanks {};

TEST_F(Patience, WithAGpuThatNeverComesToACallHasAnEnd) {
  make(
      2, [](int rank) { return std::make_unique<Path>(-rank, Errc::system); },
      [](Config& config) { config.timeout = 100ms; });
  Call call;
  call.collective = Collective::all_reduce;
  const auto posted = comms_[0]->post(call);
  ASSERT_TRUE(posted) << posted.error().what;
  const auto begin = std::chrono::steady_clock::now();
  const auto waited = comms_[0]->wait(**posted);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, Errc::timeout);
  EXPECT_NE(waited.error().what.find("GDRX_TIMEOUT"), std::string::npos) << waited.error().what;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

}  // namespace
}  // namespace gdrx
