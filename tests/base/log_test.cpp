// SPDX-License-Identifier: Apache-2.0
#include "gdrx/log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gdrx/log_limit.hpp"

namespace gdrx {
namespace {

TEST(LogLimit, WritesTheFirstLinesAtOnceThenOneASecondWithTheCountOfTheOthers) {
  std::vector<std::string> lines;
  const Log log(Level::warn, [&](Level, std::string_view line) { lines.emplace_back(line); });
  LogLimit limit(2);
  const Instant start{std::chrono::hours(1)};
  for (int i = 0; i < 3000; ++i) limit.warn(log, start + std::chrono::milliseconds(i), "no {}", i);
  EXPECT_EQ(lines,
            (std::vector<std::string>{"no 0", "no 1", "no 1000 (and 998 such lines before it)",
                                      "no 2000 (and 999 such lines before it)"}));
  lines.clear();
  const Instant later = start + std::chrono::seconds(60);
  for (int i = 0; i < 100; ++i) limit.warn(log, later, "no {}", i);
  EXPECT_EQ(lines, (std::vector<std::string>{"no 0 (and 999 such lines before it)", "no 1"}));
}

TEST(StderrSink, ShowsWhatAPeerSaidInOneLineWithoutCommandsOfATerminal) {
  testing::internal::CaptureStderr();
  stderr_sink()(Level::warn, "rank 3 says: \x1b[2J\r\n[host:1] gdrx ERROR all is lost\x7f");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find('\x1b'), std::string::npos);
  EXPECT_EQ(written.find('\r'), std::string::npos);
  EXPECT_EQ(written.find('\x7f'), std::string::npos);
  EXPECT_EQ(written.find('\n'), written.size() - 1) << written;
  EXPECT_NE(written.find("rank 3 says:"), std::string::npos);
}

}  // namespace
}  // namespace gdrx
