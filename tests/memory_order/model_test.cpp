// SPDX-License-Identifier: Apache-2.0
// The model: what C++ allows happens in some run, what it does not in none.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>

#include "tests/memory_order/orders.hpp"
// Behind all that has real atomics:
#include "tests/memory_order/atomics.hpp"

namespace gdrx::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kSeqCst = std::memory_order_seq_cst;

class Model : public testing::Test {
 protected:
  std::atomic<int> x_;
  std::atomic<int> y_;
  int left_ = 0;
  int right_ = 0;

  // Whether some run ends with these two.
  bool ends(std::function<void()> left, std::function<void()> right, int a, int b) {
    bool seen = false;
    const Scenario scenario{
        [] {}, {std::move(left), std::move(right)}, [&] { seen |= left_ == a && right_ == b; }};
    const Outcome outcome = explore(scenario, {});
    EXPECT_TRUE(outcome.whole);
    EXPECT_EQ(outcome.wrong, "");
    return seen;
  }
};

TEST_F(Model, StoresPassLoadsUnlessBothAreSeqCst) {
  const auto run = [&](std::memory_order order) {
    const auto load = order == kSeqCst ? kSeqCst : kRelaxed;
    return ends([&, load] { x_.store(1, load), left_ = y_.load(load); },
                [&, load] { y_.store(1, load), right_ = x_.load(load); }, 0, 0);
  };
  EXPECT_TRUE(run(kRelaxed));
  EXPECT_FALSE(run(kSeqCst));
  const auto fenced = [&](std::memory_order order) {
    return ends(
        [&, order] {
          x_.store(1, kRelaxed);
          std::atomic_thread_fence(order);
          left_ = y_.load(kRelaxed);
        },
        [&, order] {
          y_.store(1, kRelaxed);
          std::atomic_thread_fence(order);
          right_ = x_.load(kRelaxed);
        },
        0, 0);
  };
  EXPECT_TRUE(fenced(std::memory_order_acq_rel));
  EXPECT_FALSE(fenced(kSeqCst));
}

TEST_F(Model, AMessageComesWithWhatWasBeforeIt) {
  const auto run = [&](std::memory_order store, std::memory_order load) {
    return ends([&, store] { x_.store(1, kRelaxed), y_.store(1, store); },
                [&, load] { left_ = y_.load(load), right_ = x_.load(kRelaxed); }, 1, 0);
  };
  EXPECT_FALSE(run(kRelease, kAcquire));
  EXPECT_TRUE(run(kRelaxed, kAcquire));
  EXPECT_TRUE(run(kRelease, kRelaxed));
}

TEST_F(Model, OneLocationNeverGoesBack) {
  EXPECT_FALSE(ends([&] { x_.store(1, kRelaxed), x_.store(2, kRelaxed); },
                    [&] { left_ = x_.load(kRelaxed), right_ = x_.load(kRelaxed); }, 2, 1));
}

TEST_F(Model, AStoreComesBehindWhatItsThreadKnowsAndNothingElse) {
  const auto run = [&](std::memory_order store, std::memory_order load) {
    return ends([&, store] { x_.store(2, kRelaxed), y_.store(1, store); },
                [&, load] {
                  left_ = y_.load(load);
                  x_.store(1, kRelaxed);
                  right_ = x_.load(kRelaxed);
                },
                1, 2);
  };
  EXPECT_FALSE(run(kRelease, kAcquire));
  EXPECT_TRUE(run(kRelaxed, kAcquire));
  EXPECT_TRUE(run(kRelease, kRelaxed));
  EXPECT_FALSE(ends([&] { x_.store(1, kRelaxed), left_ = x_.load(kRelaxed); },
                    [&] { x_.store(2, kRelaxed), right_ = x_.load(kRelaxed); }, 2, 1));
}

TEST_F(Model, NothingComesBetweenAValueAndWhatChangesIt) {
  EXPECT_FALSE(ends([&] { left_ = x_.fetch_add(1, kRelaxed); },
                    [&] { right_ = x_.fetch_add(1, kRelaxed); }, 0, 0));
  const auto both = [&](int& won) {
    return [&] {
      int expected = 0;
      won = x_.compare_exchange_strong(expected, 1, kAcquire, kRelaxed) ? 1 : 0;
    };
  };
  EXPECT_FALSE(ends(both(left_), both(right_), 1, 1));
  EXPECT_FALSE(ends(both(left_), both(right_), 0, 0));
  EXPECT_TRUE(ends(both(left_), both(right_), 0, 1));
}

TEST_F(Model, WhoIsNeverToldWaitsForEver) {
  const Scenario scenario{[] {},
                          {[&] { x_.store(1, kRelease); },
                           [&] {
                             while (y_.load(kAcquire) == 0) wait();
                           }},
                          {}};
  EXPECT_EQ(explore(scenario, {}).wrong, "a thread waits for ever");
}

// A bell that is read and put back in two steps, where the mailbox has one.
TEST_F(Model, AnAlarmThatIsLostIsFound) {
  const Scenario scenario{[] {},
                          {[&] {
                             x_.store(1, kRelease);
                             y_.store(1, kRelease);
                             x_.store(2, kRelease);
                             y_.store(1, kRelease);
                           },
                           [&] {
                             while (true) {
                               while (y_.load(kAcquire) == 0) wait();
                               if (x_.load(kAcquire) == 2) return;
                               y_.store(0, kRelease);
                             }
                           }},
                          {}};
  EXPECT_EQ(explore(scenario, {}).wrong, "a thread waits for ever");
}

}  // namespace
}  // namespace gdrx::model
