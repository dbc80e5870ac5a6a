// SPDX-License-Identifier: Apache-2.0
// What peers of one device context may do to each other's connections.
#include "plugin/core/device_context.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "plugin/core/comm.hpp"

namespace gdrx::net {
namespace {

constexpr std::chrono::seconds kPatience{20};

/// A connection that counts what comes for it.
class Counting final : public Comm {
 public:
  Counting(std::shared_ptr<DeviceContext> device_context, Endpoint& from)
      : Comm(std::move(device_context)) {
    reached_over(from);
    EXPECT_TRUE(enter().has_value());
  }
  void on_immediate(std::uint16_t) override { ++heard; }
  void on_written(std::uint32_t) override {}
  Result<Answer> test(RequestId) override { return Answer{}; }
  std::string state() const override { return {}; }
  int heard = 0;
};

std::shared_ptr<DeviceContext> open_context() {
  Config config;
  config.socket_ifname = "lo";
  auto made = DeviceContext::open("tcp", NetDevice{}, config, Log(Level::error, stderr_sink()));
  EXPECT_TRUE(made.has_value()) << describe(made.error());
  return made ? *made : nullptr;
}

Endpoint* reach(DeviceContext& from, DeviceContext& to) {
  auto made = from.endpoint_to(to.id(), to.device().address());
  EXPECT_TRUE(made.has_value()) << describe(made.error());
  return made ? *made : nullptr;
}

// Every member of a job knows the numbers of the others' connections, or guesses them: 16 bits.
TEST(DeviceContextPeers, NoneCompletesAnothersReceive) {
  const auto device_context = open_context();
  const auto sender = open_context();
  const auto stranger = open_context();
  ASSERT_TRUE(device_context && sender && stranger);
  Endpoint* from = reach(*device_context, *sender);
  ASSERT_TRUE(from != nullptr && reach(*device_context, *stranger) != nullptr);
  Counting connection(device_context, *from);
  auto receive_ring = device_context->device().allocate_memory(4096);
  ASSERT_TRUE(receive_ring.has_value());

  const auto poll = [&] {
    for (const auto& each : {device_context, sender, stranger})
      EXPECT_TRUE(each->poll().has_value());
  };
  const auto until = [&](const auto& done) {
    const Instant end = steady_clock().now() + kPatience;
    bool is_done = done();
    for (; !is_done && steady_clock().now() < end; is_done = done()) poll();
    return is_done;
  };
  const auto write = [&](DeviceContext& by) {
    Endpoint* endpoint = reach(by, *device_context);
    const auto region = endpoint->import_region((*receive_ring)->export_key());
    ASSERT_TRUE(region.has_value());
    const std::array<std::byte, 8> word{std::byte{1}};
    (*receive_ring)->bytes()[0] = std::byte{0};
    WriteOp op;
    op.header = word;
    op.remote = *region;
    op.has_immediate = true;
    op.immediate = connection.index();
    ASSERT_TRUE(until([&] { return *endpoint->post(op) == Progress::done; }));
    ASSERT_TRUE(until([&] { return (*receive_ring)->bytes()[0] == std::byte{1}; }));
    for (int i = 0; i < 1000; ++i) poll();
  };
  write(*stranger);
  EXPECT_EQ(connection.heard, 0);
  write(*sender);
  EXPECT_EQ(connection.heard, 1);
}

}  // namespace
}  // namespace gdrx::net
