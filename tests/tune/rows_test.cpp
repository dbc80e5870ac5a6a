// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/rows.hpp"

#include <gtest/gtest.h>

namespace gdrx::tools {
namespace {

std::string row(const std::string& algorithm, const std::string& transport, int bytes, double us,
                bool registered = false) {
  return R"({"ranks": 2, "hosts": 1, "algorithm": ")" + algorithm + R"(", "transport": ")" +
         transport + R"(", "bytes": )" + std::to_string(bytes) + R"(, "time_us": {"p50": )" +
         std::to_string(us) + R"(, "p99": 99}, "wrong": 0, "registered": )" +
         (registered ? "true}" : "false}");
}

TEST(TuneRows, BecomeCurvesInTheOrderOfSizeWithTheBetterTime) {
  tune::Table table{{"cpu", 2, ""}, {}};
  ASSERT_TRUE(add_rows("{\"rows\": [" + row("ring", "ucx", 64, 5) + "," + row("ring", "ucx", 8, 3) +
                           "," + row("one-shot", "shm", 8, 1) + "]}",
                       table));
  ASSERT_TRUE(add_rows(
      "{\"rows\": [" + row("ring", "ucx", 64, 4) + "," + row("ring", "ucx", 8, 9) + "]}", table));
  ASSERT_EQ(table.curves.size(), 2U);
  EXPECT_EQ(table.curves[0], (tune::Curve{"ucx", plan::Algorithm::ring, 2, 1, {{8, 3}, {64, 4}}}));
  EXPECT_EQ(table.curves[1], (tune::Curve{"shm", plan::Algorithm::one_shot, 2, 1, {{8, 1}}}));
  const std::string text = to_text(table);
  EXPECT_NE(text.find("one-shot over shm"), std::string::npos) << text;
  EXPECT_NE(text.find("ring over ucx 3.00"), std::string::npos) << text;
}

// The kernel that reads and writes peers' own buffers runs where they are registered alone.
TEST(TuneRows, OfRegisteredGpuMemoryAreAWayOfTheirOwn) {
  tune::Table table{{"cpu", 2, "gpu"}, {}};
  ASSERT_TRUE(add_rows("{\"rows\": [" + row("two-shot", "gpu", 64, 5) + "," +
                           row("two-shot", "gpu", 64, 3, true) + "," +
                           row("two-shot", "ucx", 64, 9, true) + "]}",
                       table));
  ASSERT_EQ(table.curves.size(), 3U);
  EXPECT_EQ(table.curves[0].transport, "gpu");
  EXPECT_EQ(table.curves[0].points[0].us, 5);
  EXPECT_EQ(table.curves[1].transport, "gpu-registered");
  EXPECT_EQ(table.curves[1].points[0].us, 3);
  EXPECT_EQ(table.curves[2].transport, "ucx");
  const std::string text = to_text(table);
  EXPECT_NE(text.find("two-shot over gpu-registered two-shot over gpu 5.00"), std::string::npos)
      << text;
}

TEST(TuneRows, OfAnotherFormAreRefused) {
  tune::Table table;
  for (const char* json : {"", "{}", "{\"rows\": 3}", "{\"rows\": [{}]}", "[]"}) {
    EXPECT_FALSE(add_rows(json, table)) << json;
  }
  EXPECT_FALSE(add_rows("{\"rows\": [" + row("rink", "ucx", 8, 1) + "]}", table));
}

TEST(TuneRows, ComeFromTheGpuThatTheRunNames) {
  EXPECT_EQ(gpu_of(R"({"gpu": "H200", "rows": []})"), "H200");
  for (const char* json : {"", "3", "[]", "{}", R"({"gpu": 3})"}) EXPECT_EQ(gpu_of(json), "");
}

}  // namespace
}  // namespace gdrx::tools
