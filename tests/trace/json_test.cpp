// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "collectives/trace/span.hpp"

namespace gdrx::trace {
namespace {

TEST(TraceFile, IsNamedByRankAndProcess) {
  EXPECT_EQ(file_name("t.json", Rank{3}), "t.json.3");
  EXPECT_EQ(file_name("a/t%r.json", Rank{12}), "a/t12.json");
  EXPECT_EQ(file_name("%p-%r", Rank{0}), std::to_string(getpid()) + "-0");
  EXPECT_EQ(file_name("100%", Rank{1}), "100%.1");
}

TEST(TraceTitle, SaysWhatWithWhatAndWhom) {
  std::array<char, kTitle> text{};
  Event event;
  event.kind = Kind::chunk;
  event.name = "chunk";
  event.index = 3;
  EXPECT_EQ(title(event, text), "chunk 3");
  event.kind = Kind::wait;
  event.name = "wait for";
  event.peer = 2;
  EXPECT_EQ(title(event, text), "wait for rank 2");
  event.kind = Kind::plan;
  event.name = "plan";
  event.algorithm = "ring";
  event.peer = kNobody;
  EXPECT_EQ(title(event, text), "plan ring");
}

TEST(TraceTitle, IsCutAndNotOverrun) {
  const std::string longer(200, 'x');
  Event event;
  event.name = longer;
  event.algorithm = longer;
  std::array<char, kTitle> text{};
  text.back() = '!';
  EXPECT_EQ(title(event, text).size(), kTitle - 1);
  EXPECT_EQ(text.back(), '\0');
}

nlohmann::json parsed(const Ring& ring, Instant now) {
  return nlohmann::json::parse(to_json(ring.read(), Rank{5}, now));
}

TEST(TraceJson, HasTimesInMicrosecondsAndWhatTheSpanWas) {
  Ring ring(4);
  Event event;
  event.kind = Kind::wait;
  event.row = lane_row(1);
  event.name = "wait for";
  event.bytes = 4096;
  event.peer = 2;
  event.communicator = 1;
  event.begin = Instant(Duration(1'234'567));
  ring.end(ring.add(event), Duration(2'005));
  const auto json = parsed(ring, Instant(Duration(9'000'000)));
  EXPECT_EQ(json["otherData"]["dropped"], 0);
  nlohmann::json rows;
  nlohmann::json span;
  for (const auto& entry : json["traceEvents"]) {
    if (entry["name"] == "thread_name") rows = entry;
    if (entry["ph"] == "X") span = entry;
  }
  EXPECT_EQ(rows["args"]["name"], "communicator 1 lane 1");
  EXPECT_EQ(rows["tid"], span["tid"]);
  EXPECT_EQ(span["name"], "wait for rank 2");
  EXPECT_EQ(span["cat"], "wait");
  EXPECT_EQ(span["pid"], 5);
  EXPECT_DOUBLE_EQ(span["ts"].get<double>(), 1234.567);
  EXPECT_DOUBLE_EQ(span["dur"].get<double>(), 2.005);
  EXPECT_EQ(span["args"], (nlohmann::json{{"bytes", 4096}, {"peer", 2}}));
}

TEST(TraceJson, ASpanThatHasNotEndedLastsUntilNowAndSaysSo) {
  Ring ring(4);
  Event event;
  event.name = "plan";
  event.algorithm = "tree";
  event.begin = Instant(Duration(1'000));
  ring.add(event);
  const auto json = parsed(ring, Instant(Duration(4'000)));
  int spans = 0;
  for (const auto& entry : json["traceEvents"]) {
    if (entry["ph"] != "X") continue;
    ++spans;
    EXPECT_TRUE(entry["args"]["open"].get<bool>());
    EXPECT_EQ(entry["args"]["algorithm"], "tree");
    EXPECT_DOUBLE_EQ(entry["dur"].get<double>(), 3.0);
  }
  EXPECT_EQ(spans, 1);
}

TEST(TraceJson, IsValidWithoutEventsAndAfterMoreThanTheRingHolds) {
  Ring ring(2);
  EXPECT_EQ(parsed(ring, {})["otherData"]["events"], 0);
  Event event;
  event.name = "chunk";
  for (int i = 0; i < 5; ++i) ring.add(event);
  EXPECT_EQ(parsed(ring, {})["otherData"]["events"], 2);
  EXPECT_EQ(parsed(ring, {})["otherData"]["dropped"], 3);
}

TEST(Track, IsNotThereWhereNobodyWatches) {
  EXPECT_EQ(Track::create("", Rank{0}), nullptr);
  EXPECT_EQ(Track::process(), nullptr);
  Span none(nullptr, Row::calls, Kind::call, "nothing");
  EXPECT_FALSE(none.is_open());
}

TEST(Track, AFileThatCannotBeWrittenIsOneWarningAndNothingElse) {
  const auto track = Track::create("/nowhere/at/all/t", Rank{0});
  std::vector<std::string> lines;
  track->write(Log(Level::warn, [&](Level, std::string_view line) { lines.emplace_back(line); }));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("GDRX_TRACE: writing /nowhere/at/all/t.0"), std::string::npos)
      << lines[0];
}

}  // namespace
}  // namespace gdrx::trace
