// SPDX-License-Identifier: Apache-2.0
// What a communicator takes it gives back: a service makes and destroys them for weeks.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"

namespace gdrx::test {
namespace {

constexpr int kRanks = 3;

std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

struct Holdings {
  std::ptrdiff_t descriptors = entries_of("/proc/self/fd");
  std::ptrdiff_t threads = entries_of("/proc/self/task");
  std::size_t shared_mappings = 0;
  std::set<std::string> shared_files;  // with a name that others could open

  Holdings() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const auto path = line.find('/');
      if (path == std::string::npos || line[line.find(' ') + 4] != 's') continue;  // "... rw-s ..."
      ++shared_mappings;
      if (line.compare(path, 9, "/dev/shm/") == 0) shared_files.insert(line.substr(path));
    }
  }
  friend std::ostream& operator<<(std::ostream& out, const Holdings& h) {
    return out << h.descriptors << " descriptors, " << h.threads << " threads, "
               << h.shared_mappings << " shared mappings";
  }
};

// A thread that was joined is a moment longer in /proc.
Holdings holdings_at_rest(const Holdings& before) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (Holdings().threads > before.threads && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {};
}

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
