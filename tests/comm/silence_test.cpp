// SPDX-License-Identifier: Apache-2.0
// A rank whose control connection is silent: whether it is lost, the data path says.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "tests/comm/thread_ranks.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

using Threads = std::set<int>;

Threads threads_here() {
  Threads found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    found.insert(std::stoi(entry.path().filename()));
  }
  return found;
}

void stand_still(int) { usleep(1'000'000); }  // ten times the silence

class Silence : public ThreadRanks {
 protected:
  /// Two ranks that take each other for ranks of other hosts, so that the kernel watches neither.
  void make_two_hosts() {
    const Threads before = threads_here();
    std::atomic<int> host{0};
    make(2, {}, [&](Config& config) {
      config.host_id = "host-" + std::to_string(host++);
      config.socket_ifname = "lo";
      config.transport = "tcp";
      config.heartbeat = 20ms;
      config.silence = 100ms;
    });
    for (const int thread : threads_here()) {
      if (!before.contains(thread)) mesh_ = thread;
    }
    ASSERT_GT(mesh_, 0);
  }
  /// One rank's control connections are served by nobody, its calls go on.
  void stop_a_mesh() const {
    signal(SIGTRAP, stand_still);  // gdrx's threads take no other signals than those of faults
    ASSERT_EQ(syscall(SYS_tgkill, getpid(), mesh_, SIGTRAP), 0);
  }
  void reduce_for(Duration time) {
    const Deadline end = Deadline::after(steady_clock(), time);
    for_each([&](std::size_t rank) {
      float sum = 0;
      for (float more = 1; more > 0;) {
        const float mine = rank == 0 && end.passed(steady_clock().now()) ? 0 : 1;
        if (!reduce(rank, &mine, &sum)) return;
        more = sum > 1 ? 1.0F : 0.0F;
      }
    });
  }

  int mesh_ = 0;  // the thread of one

 private:
  bool reduce(std::size_t rank, const float* mine, float* sum) {
    Call call;
    call.collective = Collective::all_reduce;
    call.input = reinterpret_cast<const std::byte*>(mine);
    call.output = reinterpret_cast<std::byte*>(sum);
    call.type = DataType::float32;
    call.count = 1;
    auto posted = comms_[rank]->post(std::move(call));
    const auto done = posted ? comms_[rank]->wait(**posted) : tl::unexpected(posted.error());
    EXPECT_TRUE(done) << done.error().what;
    return done.has_value();
  }
};

TEST_F(Silence, OfAControlConnectionEndsNobodyOfWhomTheDataPathHears) {
  make_two_hosts();
  if (HasFatalFailure()) return;
  stop_a_mesh();
  reduce_for(800ms);
}

TEST_F(Silence, OfBothIsALostRankAfterTheTimeThatIsSet) {
  make_two_hosts();
  if (HasFatalFailure()) return;
  stop_a_mesh();
  const Deadline limit = Deadline::after(steady_clock(), 900ms);
  std::optional<Error> failure;
  while (!failure && !limit.passed(steady_clock().now())) {
    std::this_thread::sleep_for(5ms);
    failure = comms_[0]->failure() ? comms_[0]->failure() : comms_[1]->failure();
  }
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, Errc::peer_lost);
  EXPECT_NE(failure->what.find("neither its control connection nor the data path"),
            std::string::npos)
      << failure->what;
}

}  // namespace
}  // namespace gdrx
