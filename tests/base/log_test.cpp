// SPDX-License-Identifier: Apache-2.0
#include "gdrx/log.hpp"

#include <gtest/gtest.h>

namespace gdrx {
namespace {

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
