// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/stream_calls.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <new>
#include <vector>

namespace gdrx {
namespace {

std::shared_ptr<Operation> operation() {
  return std::make_shared<Operation>(Call{}, std::chrono::milliseconds(0));
}

TEST(StreamCalls, WhatCannotBeQueuedForWantOfMemoryIsTakenLater) {
  StreamCalls calls;
  const std::vector<std::shared_ptr<Operation>> posted{operation(), operation(), operation()};
  for (const auto& one : posted) calls.post(one);
  std::vector<std::shared_ptr<Operation>> queued;
  const auto queue = [&](const std::shared_ptr<Operation>& one) {
    if (queued.size() == 1) throw std::bad_alloc();
    queued.push_back(one);
  };
  EXPECT_THROW(calls.take_posted(queue), std::bad_alloc);
  EXPECT_TRUE(calls.has_posted());
  queued.clear();
  calls.take_posted([&](const auto& one) { queued.push_back(one); });
  EXPECT_EQ(queued, (std::vector{posted[1], posted[2]}));
  EXPECT_EQ(calls.awaited.size(), posted.size());
  EXPECT_FALSE(calls.has_posted());
}

TEST(StreamCalls, WhatCannotBeQueuedEndsWithTheCommunicator) {
  StreamCalls calls;
  const auto one = operation();
  calls.post(one);
  EXPECT_THROW(calls.take_posted([](const auto&) { throw std::bad_alloc(); }), std::bad_alloc);
  calls.post(operation());
  EXPECT_EQ(calls.drop_posted(), one);
  EXPECT_NE(calls.drop_posted(), nullptr);
  EXPECT_EQ(calls.drop_posted(), nullptr);
}

}  // namespace
}  // namespace gdrx
