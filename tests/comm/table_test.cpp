// SPDX-License-Identifier: Apache-2.0
// Every collective with every setting that changes how it runs, on 1 to 9 ranks: a setting may make
// a call slower, and never make it fail.
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using Settings = std::map<std::string, std::string>;

/// The environment of one world.
class Environment {
 public:
  explicit Environment(const Settings& settings) : settings_(settings) {
    for (const auto& [name, value] : settings_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& setting : settings_) unsetenv(setting.first.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const Settings& settings_;
};

/// One rank's calls; each compared with what it should give.
class Calls {
 public:
  Calls(int rank, int ranks, gdrxComm_t comm, std::string way)
      : rank_(rank), ranks_(ranks), root_(ranks - 1), comm_(comm), way_(std::move(way)) {}

  void all(std::size_t count) {
    all_reduce(count);
    reduce_scatter(count);
    all_gather(count);
    broadcast(count);
    reduce(count);
    exchange(count);
    expect("barrier", gdrxBarrier(comm_, nullptr, nullptr));
  }

 private:
  void all_reduce(std::size_t count) {
    std::vector<float> data = of(rank_, count);
    if (expect("allReduce", gdrxAllReduce(data.data(), data.data(), count, gdrxFloat32, gdrxSum,
                                          comm_, nullptr, nullptr))) {
      EXPECT_EQ(data, sum(count, 0)) << "allReduce of " << count << way_;
    }
  }
  void reduce_scatter(std::size_t count) {
    const std::vector<float> in = of(rank_, count * static_cast<std::size_t>(ranks_));
    std::vector<float> out(count);
    if (expect("reduceScatter", gdrxReduceScatter(in.data(), out.data(), count, gdrxFloat32,
                                                  gdrxSum, comm_, nullptr, nullptr))) {
      EXPECT_EQ(out, sum(count, count * static_cast<std::size_t>(rank_)))
          << "reduceScatter of " << count << way_;
    }
  }
  void all_gather(std::size_t count) {
    std::vector<float> expected;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::vector<float> theirs = of(rank, count);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    const std::vector<float> in = of(rank_, count);
    std::vector<float> out(expected.size());
    if (expect("allGather",
               gdrxAllGather(in.data(), out.data(), count, gdrxFloat32, comm_, nullptr, nullptr))) {
      EXPECT_EQ(out, expected) << "allGather of " << count << way_;
    }
  }
  void broadcast(std::size_t count) {
    std::vector<float> data = of(rank_, count);
    if (expect("broadcast", gdrxBroadcast(data.data(), data.data(), count, gdrxFloat32, root_,
                                          comm_, nullptr, nullptr))) {
      EXPECT_EQ(data, of(root_, count)) << "broadcast of " << count << way_;
    }
  }
  void reduce(std::size_t count) {
    const std::vector<float> in = of(rank_, count);
    std::vector<float> out(count);
    if (expect("reduce", gdrxReduce(in.data(), out.data(), count, gdrxFloat32, gdrxSum, root_,
                                    comm_, nullptr, nullptr)) &&
        rank_ == root_) {
      EXPECT_EQ(out, sum(count, 0)) << "reduce of " << count << way_;
    }
  }
  void exchange(std::size_t count) {
    const int previous = (rank_ + ranks_ - 1) % ranks_;
    const std::vector<float> out = of(rank_, count);
    std::vector<float> in(count);
    gdrxGroupStart();
    gdrxSend(out.data(), count, gdrxFloat32, (rank_ + 1) % ranks_, comm_, nullptr, nullptr);
    gdrxRecv(in.data(), count, gdrxFloat32, previous, comm_, nullptr, nullptr);
    if (expect("send and receive", gdrxGroupEnd())) {
      EXPECT_EQ(in, of(previous, count)) << "send and receive of " << count << way_;
    }
  }

  bool expect(const char* what, gdrxResult_t result) {
    EXPECT_EQ(result, gdrxSuccess) << what << way_ << ": " << gdrxGetLastError(comm_);
    return result == gdrxSuccess;
  }
  static std::vector<float> of(int rank, std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
    return values;
  }
  std::vector<float> sum(std::size_t count, std::size_t from) const {
    std::vector<float> total(count);
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::size_t i = 0; i < count; ++i) total[i] += value_of(rank, from + i);
    }
    return total;
  }

  int rank_;
  int ranks_;
  int root_;
  gdrxComm_t comm_;
  std::string way_;
};

void run(int ranks, const Settings& settings) {
  const Environment environment(settings);
  std::string way = " with";
  for (const auto& [name, value] : settings) way += " " + name + "=" + value;
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 20;
  const World world(ranks, config);
  if (world[0] == nullptr) return;
  world.run([&](int rank, gdrxComm_t comm) {
    Calls calls(rank, ranks, comm, way);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5003}}) {
      calls.all(count);
    }
  });
}

class Table : public testing::TestWithParam<int> {};

// The other settings take turns, each pair of them with each algorithm in some size of the table.
TEST_P(Table, EveryCollectiveWorksWithEveryAlgorithmAndItsSettings) {
  const bool whole = std::getenv("GDRX_TEST_WHOLE_TABLE") != nullptr;
  const std::vector<std::string> lanes{"1", "2", "3", "0", "16"};
  const std::vector<std::string> slices{"1024", "0"};
  std::size_t turn = static_cast<std::size_t>(GetParam());
  for (const char* algorithm :
       {"auto", "ring", "tree", "halving-doubling", "one-shot", "two-shot", "direct"}) {
    for (const char* shm : {"0", "1"}) {
      const std::size_t others = lanes.size() * slices.size();
      for (std::size_t i = 0; i < (whole ? others : 1); ++i) {
        const std::size_t at = whole ? i : turn++;
        run(GetParam(), {{"GDRX_ALGO", algorithm},
                         {"GDRX_SHM", shm},
                         {"GDRX_LANES", lanes[at % lanes.size()]},
                         {"GDRX_SLICE", slices[at / lanes.size() % slices.size()]},
                         {"GDRX_ARENA_BLOCK", "4096"},
                         {"GDRX_CMA", std::to_string(at % 3)}});
      }
    }
  }
}

TEST_P(Table, EveryCollectiveWorksInTheOrderOfRanks) {
  for (const char* algorithm : {"auto", "one-shot", "two-shot"}) {
    for (const char* shm : {"0", "1"}) {
      run(GetParam(), {{"GDRX_ALGO", algorithm},
                       {"GDRX_SHM", shm},
                       {"GDRX_LANES", "1"},
                       {"GDRX_REPRODUCIBLE", "1"}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Table, testing::Range(1, 10));

}  // namespace
}  // namespace gdrx::test
