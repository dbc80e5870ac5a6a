// SPDX-License-Identifier: Apache-2.0
// Spans of calls on the GPU, with a made-up clock of the GPU.
#include "collectives/comm/gpu_spans.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/gpu/no_path.hpp"

namespace gdrx {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;

struct Gpu {
  std::array<gpu::Timer::Times, GpuSpans::kInFlight> times;
  bool captured = false;
  int timers = 0;
};

class FakeTimer final : public gpu::Timer {
 public:
  explicit FakeTimer(Gpu& gpu) : gpu_(gpu) {}
  bool begin(std::uint32_t slot, void*) noexcept override {
    gpu_.times[slot] = {};
    return !gpu_.captured;
  }
  bool end(std::uint32_t, void*) noexcept override { return true; }
  Times read(std::uint32_t slot) noexcept override { return gpu_.times[slot]; }
  Duration precision() const noexcept override { return microseconds(5); }

 private:
  Gpu& gpu_;
};

class FakePath final : public gpu::NoPath {
 public:
  explicit FakePath(Gpu& gpu) : gpu_(gpu) {}
  Result<std::unique_ptr<gpu::Timer>> timer(std::uint32_t slots) override {
    EXPECT_EQ(slots, GpuSpans::kInFlight);
    ++gpu_.timers;
    return std::make_unique<FakeTimer>(gpu_);
  }

 private:
  Gpu& gpu_;
};

class SpansOfGpuCalls : public testing::Test {
 protected:
  void SetUp() override {
    static int made = 0;  // a process has one recording of a name
    file_ = testing::TempDir() + "gdrx_gpu_spans_" + std::to_string(getpid()) + "_" +
            std::to_string(made++) + "_%r";
    track_ = trace::Track::create(file_, Rank{0});
    FakePath path(gpu_);
    spans_ = GpuSpans::create(path, track_.get(), Log());
    ASSERT_TRUE(spans_);
  }
  void TearDown() override { std::filesystem::remove(trace::file_name(file_, Rank{0})); }

  bool launch(std::string_view kernel = "ring") {
    const std::uint32_t call = spans_->next_call();
    if (!spans_->begin(nullptr)) return false;
    spans_->end(nullptr, kernel, 64, call);
    return true;
  }
  nlohmann::json written(Instant by = Instant::max()) {
    spans_->show(by);
    track_->write(Log());
    std::ifstream file(trace::file_name(file_, Rank{0}));
    return nlohmann::json::parse(file);
  }
  /// The file's spans, in the order of calls.
  static std::vector<nlohmann::json> spans_in(const nlohmann::json& file) {
    std::vector<nlohmann::json> spans;
    for (const auto& event : file["traceEvents"]) {
      if (event["ph"] == "X") spans.push_back(event);
    }
    return spans;
  }
  static double us(Instant instant) {
    return std::chrono::duration<double, std::micro>(instant.time_since_epoch()).count();
  }
  static double end_of(const nlohmann::json& span) {
    return span["ts"].get<double>() + span["dur"].get<double>();
  }

  std::string file_;
  Gpu gpu_;
  std::unique_ptr<trace::Track> track_;
  std::unique_ptr<GpuSpans> spans_;
};

constexpr double kNanosecond = 0.002;  // of the file's texts, in microseconds

TEST_F(SpansOfGpuCalls, AreNamedForTheKernelAndHaveBytesAndNumber) {
  ASSERT_TRUE(launch("one-shot"));
  const Instant begin = steady_clock().now() + microseconds(100);
  gpu_.times[0] = {begin, begin + microseconds(30)};
  const auto spans = spans_in(written());
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0]["name"], "one-shot");
  EXPECT_EQ(spans[0]["cat"], "kernel");
  EXPECT_EQ(spans[0]["args"], (nlohmann::json{{"bytes", 64}, {"index", 0}}));
  EXPECT_NEAR(spans[0]["ts"].get<double>(), us(begin), kNanosecond);
  EXPECT_NEAR(spans[0]["dur"].get<double>(), 30, kNanosecond);
}

TEST_F(SpansOfGpuCalls, BeginNeitherBeforeTheirLaunchNorInTheOneBefore) {
  const Instant before = steady_clock().now();
  ASSERT_TRUE(launch());
  ASSERT_TRUE(launch());
  gpu_.times[0] = {before - hours(1), before + hours(1)};
  gpu_.times[1] = {before + hours(1) - microseconds(3), before + hours(1) + microseconds(7)};
  const auto spans = spans_in(written());
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_GE(spans[0]["ts"].get<double>(), us(before) - kNanosecond);
  EXPECT_NEAR(end_of(spans[0]), us(before + hours(1)), kNanosecond);
  EXPECT_NEAR(spans[1]["ts"].get<double>(), us(before + hours(1)), kNanosecond);
  EXPECT_NEAR(spans[1]["dur"].get<double>(), 7, kNanosecond);
}

TEST_F(SpansOfGpuCalls, AreOpenUntilTheyAreSeenToEnd) {
  const Instant before = steady_clock().now();
  ASSERT_TRUE(launch());
  ASSERT_TRUE(launch());
  gpu_.times[0].begin = steady_clock().now();
  const auto open = spans_in(written(steady_clock().now()));
  ASSERT_EQ(open.size(), 2U);
  EXPECT_TRUE(open[0]["args"].value("open", false));
  EXPECT_NEAR(open[0]["ts"].get<double>(), us(*gpu_.times[0].begin), kNanosecond);
  EXPECT_TRUE(open[1]["args"].value("open", false)) << "not begun, but launched";
  EXPECT_GE(open[1]["ts"].get<double>(), open[0]["ts"].get<double>());

  gpu_.times[0].end = before + hours(1);
  gpu_.times[1] = {before + hours(2), before + hours(3)};
  const auto closed = spans_in(written());
  ASSERT_EQ(closed.size(), 2U);
  for (const auto& span : closed) EXPECT_FALSE(span["args"].contains("open")) << span;
  EXPECT_NEAR(closed[1]["ts"].get<double>(), us(before + hours(2)), kNanosecond);
  EXPECT_NEAR(end_of(closed[1]), us(before + hours(3)), kNanosecond);
}

// A failure ends every kernel's wait: what ends by that is what hung.
TEST_F(SpansOfGpuCalls, AreOpenIfTheyEndedAfterTheFailure) {
  ASSERT_TRUE(launch());
  ASSERT_TRUE(launch());
  ASSERT_TRUE(launch());
  std::this_thread::sleep_for(microseconds(100));
  const Instant failed = steady_clock().now();
  gpu_.times[0] = {failed - microseconds(4), failed - microseconds(3)};
  gpu_.times[1] = {failed - microseconds(2), failed + microseconds(1)};
  gpu_.times[2] = {failed + microseconds(1), failed + microseconds(2)};
  const auto spans = spans_in(written(failed));
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_FALSE(spans[0]["args"].contains("open"));
  EXPECT_TRUE(spans[1]["args"].value("open", false));
  EXPECT_NEAR(spans[1]["ts"].get<double>(), us(failed - microseconds(2)), kNanosecond);
  EXPECT_TRUE(spans[2]["args"].value("open", false));
  EXPECT_NEAR(spans[2]["ts"].get<double>(), us(failed), kNanosecond);
  for (const auto& span : spans_in(written())) EXPECT_FALSE(span["args"].contains("open")) << span;
}

TEST_F(SpansOfGpuCalls, LeaveOutWhatIsMoreThanMayBeInFlightAndSayHowMany) {
  for (std::uint32_t i = 0; i < GpuSpans::kInFlight; ++i) ASSERT_TRUE(launch());
  EXPECT_FALSE(launch());
  EXPECT_FALSE(launch());
  const Instant end = steady_clock().now();
  gpu_.times[0] = {end, end};
  EXPECT_TRUE(launch()) << "the first has ended";
  const auto file = written();
  EXPECT_EQ(file["otherData"]["gpuCallsUntimed"], 2);
  const auto spans = spans_in(file);
  ASSERT_EQ(spans.size(), GpuSpans::kInFlight + 1);
  EXPECT_EQ(spans.back()["args"]["index"], GpuSpans::kInFlight + 2);
}

TEST_F(SpansOfGpuCalls, CapturedCallsHaveNoneAndAreNotCountedAsMissing) {
  gpu_.captured = true;
  EXPECT_FALSE(launch());
  const auto file = written();
  EXPECT_EQ(spans_in(file).size(), 0U);
  EXPECT_EQ(file["otherData"]["gpuCallsUntimed"], 0);
}

TEST_F(SpansOfGpuCalls, AreLookedForByTheTick) {
  ASSERT_TRUE(launch());
  const Instant begin = steady_clock().now();
  gpu_.times[0] = {begin, begin + microseconds(1)};
  spans_->look();
  track_->write(Log());
  std::ifstream file(trace::file_name(file_, Rank{0}));
  EXPECT_EQ(spans_in(nlohmann::json::parse(file)).size(), 1U);
}

TEST(GpuSpansWithoutAFile, MakeNoTimer) {
  Gpu gpu;
  FakePath path(gpu);
  EXPECT_EQ(GpuSpans::create(path, nullptr, Log()), nullptr);
  const trace::Track for_nvtx;
  EXPECT_FALSE(for_nvtx.has_file());
  trace::Track track;
  EXPECT_EQ(GpuSpans::create(path, &track, Log()), nullptr);
  EXPECT_EQ(gpu.timers, 0);
}

TEST(GpuSpansWithoutTimes, AreOneWarning) {
  gpu::NoPath path;
  const std::string file =
      testing::TempDir() + "gdrx_gpu_spans_" + std::to_string(getpid()) + "_none";
  const auto track = trace::Track::create(file, Rank{0});
  std::vector<std::string> lines;
  const Log log(Level::warn, [&](Level, std::string_view line) { lines.emplace_back(line); });
  EXPECT_EQ(GpuSpans::create(path, track.get(), log), nullptr);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("no times of the GPU"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace gdrx
