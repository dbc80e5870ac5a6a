// SPDX-License-Identifier: Apache-2.0
// What `gdrx perf --p2p` prints of a measurement.
#include "tools/perf/p2p_view.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace gdrx::perf {
namespace {

topo::Topology host(const char* words) {
  auto cluster = topo::parse_cluster(words);
  EXPECT_TRUE(cluster);
  return cluster->host;
}

// `count` Hoppers that reach each other at 400 GB/s.
P2pReport report_of(const topo::Topology& topology) {
  P2pReport report;
  const std::size_t count = topology.gpus().size();
  for (const topo::Gpu& gpu : topology.gpus()) {
    report.gpus.push_back({topology.nodes()[gpu.node].name, "NVIDIA H200", 90});
  }
  report.pairs.assign(count, std::vector<P2pPair>(count));
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a != b) report.pairs[a][b] = {true, true, {}, 400, 390, 363, 360, 371, 332, 1.5};
    }
  }
  return report;
}

std::size_t widest(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(P2pText, FitsEightyColumnsForAnyNumberOfGpus) {
  for (const char* words : {"1 H200", "2 H200", "8 H200", "16 H200"}) {
    const topo::Topology topology = host(words);
    EXPECT_LE(widest(p2p_text(report_of(topology), topology)), 80u) << words;
  }
}

TEST(P2pText, NamesAPairThatIsFarBelowItsLink) {
  const topo::Topology topology = host("4 H200");
  P2pReport report = report_of(topology);
  EXPECT_EQ(p2p_text(report, topology).find("low:"), std::string::npos);
  report.pairs[1][3].copy = 40;
  report.pairs[1][3].store = 38;
  EXPECT_NE(p2p_text(report, topology).find("low: GPU1 - GPU3: 40.0 GB/s of the 450 GB/s of NV18"),
            std::string::npos);
}

TEST(P2pText, SaysWhereThereIsNoAccess) {
  const topo::Topology topology = host("2 H200");
  P2pReport report = report_of(topology);
  report.pairs[0][1] = {};
  report.pairs[0][1].problem = "the bytes that arrived are others than those sent";
  const std::string text = p2p_text(report, topology);
  EXPECT_NE(text.find("no"), std::string::npos);
  EXPECT_NE(text.find("GPU0 to GPU1: the bytes that arrived"), std::string::npos);
}

TEST(P2pLimit, IsUnknownWhereTheHostHidesItsLinks) {
  const topo::Topology topology = host("2 H200");
  P2pReport report = report_of(topology);
  ASSERT_TRUE(p2p_limit(report, topology, 0, 1));
  report.gpus[1].bus = "00ff:00:00.0";  // not of this host
  EXPECT_FALSE(p2p_limit(report, topology, 0, 1));
}

TEST(P2pJson, HasEachOrderedPairWithItsLimit) {
  const topo::Topology topology = host("4 H200");
  const auto all = nlohmann::json::parse(p2p_json(report_of(topology), topology));
  ASSERT_EQ(all["pairs"].size(), 12u);
  EXPECT_EQ(all["pairs"][0]["link"], "NV18");
  EXPECT_EQ(all["pairs"][0]["limit_gbytes"], 450);
}

}  // namespace
}  // namespace gdrx::perf
