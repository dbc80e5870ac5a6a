// SPDX-License-Identifier: Apache-2.0
// What a communicator takes it gives back: a service makes and destroys them for weeks.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/comm/holdings.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

constexpr int kRanks = 3;

void reduce_on(gdrxComm_t comm) {
  std::vector<float> data(20'000, 1.0F);
  ASSERT_EQ(gdrxAllReduce(data.data(), data.data(), data.size(), gdrxFloat32, gdrxSum, comm,
                          nullptr, nullptr),
            gdrxSuccess)
      << gdrxGetLastError(comm);
  EXPECT_EQ(data.back(), float{kRanks});
}

// Makes, uses and destroys; returns what was held in between.
Holdings live_once(const char* transport) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.transport = transport;
  std::vector<gdrxComm_t> comms(kRanks);
  EXPECT_EQ(gdrxCommInitAll(comms.data(), kRanks, &config), gdrxSuccess)
      << gdrxGetLastError(nullptr);
  {
    std::vector<std::jthread> ranks;
    for (gdrxComm_t comm : comms) ranks.emplace_back(reduce_on, comm);
  }
  const Holdings during;
  for (gdrxComm_t comm : comms) EXPECT_EQ(gdrxCommDestroy(comm), gdrxSuccess);
  return during;
}

class Leak : public testing::TestWithParam<const char*> {};

TEST_P(Leak, IsNoneAfter200Communicators) {
  for (int i = 0; i < 3; ++i) live_once(GetParam());  // what a library keeps from its first use
  const Holdings before;
  Holdings during = live_once(GetParam());
  EXPECT_GT(during.descriptors, before.descriptors) << "this test counts nothing";
  for (int i = 0; i < 200; ++i) during.shared_files.merge(live_once(GetParam()).shared_files);
  const Holdings after = holdings_at_rest(before);
  EXPECT_EQ(after.descriptors, before.descriptors) << after;
  EXPECT_EQ(after.threads, before.threads) << after;
  EXPECT_LE(after.shared_mappings, before.shared_mappings) << after;
  for (const std::string& file : during.shared_files) {
    EXPECT_FALSE(std::filesystem::exists(file)) << file;
  }
}

// How a communicator fails; each way ends with an error on every rank.
enum class Failure : std::uint8_t { abort_in_a_call, mismatch, timeout, abort_unused };
constexpr int kFailures = 4;

gdrxResult_t add(gdrxComm_t comm, std::size_t count) {
  std::array<float, 1000> data{};
  return gdrxAllReduce(data.data(), data.data(), count, gdrxFloat32, gdrxSum, comm, nullptr,
                       nullptr);
}

void fail(gdrxComm_t comm, int rank, Failure how) {
  const bool first = rank == 0;
  switch (how) {
    case Failure::abort_in_a_call:
      EXPECT_EQ(first ? gdrxCommAbort(comm) : add(comm, 1000), first ? gdrxSuccess : gdrxAborted);
      break;
    case Failure::mismatch:
      EXPECT_EQ(add(comm, first ? 500 : 1000), gdrxMismatch);
      break;
    case Failure::timeout:
      EXPECT_EQ(gdrxCommSetTimeout(comm, 0.005), gdrxSuccess);
      if (first) {
        EXPECT_EQ(add(comm, 1000), gdrxTimeout);
      }
      break;
    case Failure::abort_unused:
      if (first) {
        EXPECT_EQ(gdrxCommAbort(comm), gdrxSuccess);
      }
      break;
  }
  for (gdrxResult_t error = gdrxSuccess; error == gdrxSuccess; std::this_thread::yield()) {
    EXPECT_EQ(gdrxCommGetAsyncError(comm, &error), gdrxSuccess);
  }
}

// Makes one of two ranks, uses it, has it fail and destroys it.
void fail_once(gdrxComm_t parent, int rank, Failure how) {
  gdrxComm_t comm = nullptr;
  ASSERT_EQ(gdrxCommSplit(parent, 0, rank, &comm, nullptr), gdrxSuccess)
      << gdrxGetLastError(parent);
  if (how != Failure::abort_unused) {
    EXPECT_EQ(add(comm, 1000), gdrxSuccess) << gdrxGetLastError(comm);
  }
  EXPECT_EQ(gdrxBarrier(parent, nullptr, nullptr), gdrxSuccess);  // the other one is as far
  fail(comm, rank, how);
  EXPECT_NE(gdrxCommDestroy(comm), gdrxSuccess);
}

TEST_P(Leak, IsNoneAfterFailedCommunicators) {
  const int times = std::string(GetParam()) == "ucx" ? 200 : 1000;  // UCX's take ten times as long
  const World world(2, with("auto", GetParam()));
  const auto fail_all = [&](int times) {
    world.run([&](int rank, gdrxComm_t parent) {
      for (int i = 0; i < times; ++i) {
        fail_once(parent, rank, static_cast<Failure>(i % kFailures));
      }
    });
  };
  fail_all(40);  // what is kept for the next one
  const Holdings before;
  fail_all(times);
  const Holdings after = holdings_at_rest(before);
  EXPECT_EQ(after.descriptors, before.descriptors) << after;
  EXPECT_EQ(after.threads, before.threads) << after;
  EXPECT_LE(after.shared_mappings, before.shared_mappings) << after << "; before: " << before;
  EXPECT_LE(after.mappings, before.mappings + 60) << after << "; before: " << before;
  EXPECT_EQ(after.segments, before.segments) << after;
  EXPECT_EQ(after.shared_files, before.shared_files);
  EXPECT_LE(after.resident_bytes, before.resident_bytes + (16 << 20)) << after << "; " << before;
}

// Two ranks of this process, of which one comes late: until then the other is there for it.
void part_one_after_another(const char* transport, bool look) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.transport = transport;
  gdrxUniqueId id{};
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
  std::vector<gdrxComm_t> comms(2);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        EXPECT_EQ(gdrxCommInitRank(&comms[static_cast<std::size_t>(rank)], 2, id, rank, &config),
                  gdrxSuccess);
      });
    }
  }
  const auto settle = [&] {
    if (look) std::this_thread::sleep_for(std::chrono::seconds(1));  // the id's root ends, too
  };
  settle();
  const Holdings during;
  ASSERT_EQ(gdrxCommDestroy(comms[0]), gdrxSuccess);
  settle();
  const Holdings late;
  EXPECT_TRUE(!look || late.descriptors >= during.descriptors) << "it is gone: " << late;
  ASSERT_EQ(gdrxCommDestroy(comms[1]), gdrxSuccess);
}

TEST_P(Leak, IsNoneOfWhatWaitsForALateRank) {
  for (int i = 0; i < 3; ++i) part_one_after_another(GetParam(), false);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const Holdings before;
  part_one_after_another(GetParam(), true);
  for (int i = 0; i < 10; ++i) part_one_after_another(GetParam(), false);
  Holdings after = holdings_at_rest(before);
  for (int i = 0; i < 100 && after.descriptors > before.descriptors; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    after = Holdings();
  }
  EXPECT_LE(after.descriptors, before.descriptors) << after;
  EXPECT_LE(after.threads, before.threads) << after;
  EXPECT_LE(after.shared_mappings, before.shared_mappings) << after;
}

INSTANTIATE_TEST_SUITE_P(Transports, Leak, testing::Values("auto", "ucx"),
                         [](const auto& transport) { return std::string(transport.param); });

}  // namespace
}  // namespace gdrx::test
