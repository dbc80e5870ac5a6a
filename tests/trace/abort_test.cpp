// SPDX-License-Identifier: Apache-2.0
// A communicator that fails leaves a trace of what it waited for, before the error handler runs:
// the handler may end the process.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// The name of a span that had not ended, of the given kind; empty if there is none.
std::string open_span(const std::string& text, const std::string& kind) {
  const auto json = nlohmann::json::parse(text);
  for (const auto& event : json["traceEvents"]) {
    if (event.value("cat", "") == kind && event["args"].contains("open")) return event["name"];
  }
  return {};
}

class TraceOfAFailure : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "gdrx_trace_" + std::to_string(getpid()) + "_" + GetParam();
    std::filesystem::create_directories(folder_);
    setenv("GDRX_TRACE", (folder_ + "/t%r.json").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("GDRX_TRACE");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

TEST_P(TraceOfAFailure, ShowsWhomTheRankWaitedForWhenTheHandlerRuns) {
  struct Seen {
    std::string file;
    std::mutex mutex;  // the handler runs for both ranks
    std::string trace;
  } seen;
  seen.file = folder_ + "/t0.json";
  gdrxConfig_t config = with(GetParam());
  config.timeout_seconds = 0.3;
  config.on_error = [](gdrxResult_t, const char*, void* user) {
    auto* at = static_cast<Seen*>(user);
    const std::lock_guard lock(at->mutex);
    if (at->trace.empty()) at->trace = text_of(at->file);
  };
  config.on_error_user = &seen;
  {
    const World world(2, config);
    std::array<float, 1000> in{};
    std::array<float, 1000> out{};
    EXPECT_EQ(gdrxAllReduce(in.data(), out.data(), in.size(), gdrxFloat32, gdrxSum, world[0],
                            nullptr, nullptr),
              gdrxTimeout);
  }
  ASSERT_FALSE(seen.trace.empty());
  EXPECT_EQ(open_span(seen.trace, "call"), "gdrxAllReduce");
  EXPECT_EQ(open_span(seen.trace, "plan"), std::string("plan ") + GetParam());
  EXPECT_EQ(open_span(seen.trace, "wait"), "wait for rank 1");
  // After the communicator's end nothing is open any more.
  EXPECT_EQ(open_span(text_of(seen.file), "wait"), "");
}

INSTANTIATE_TEST_SUITE_P(OverBothPaths, TraceOfAFailure, testing::Values("ring", "one-shot"),
                         [](const auto& tested) {
                           return tested.param == std::string("ring") ? "messages" : "memory";
                         });

}  // namespace
}  // namespace gdrx::test
