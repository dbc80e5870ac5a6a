// SPDX-License-Identifier: Apache-2.0
// What a kernel and the thread that drives its network tell each other in pinned memory, as the
// sources of both stand, on machines that order nothing by themselves.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/gpu/path.hpp"
#include "collectives/trace/span.hpp"
#include "tests/memory_order/orders.hpp"
#include "tests/memory_order/plain.hpp"
#define GDRX_DEVICE_HEADER "tests/memory_order/device.hpp"
#include "collectives/kernels/flags.cuh"
// Behind all that has real atomics:
#include "tests/memory_order/atomics.hpp"
#define GpuFlags ModelGpuFlags  // the library has the other
#define GpuWatch ModelGpuWatch
#include "collectives/comm/gpu_flags.hpp"

namespace gdrx {
namespace {

using gpu::bit_of;
using gpu::Signal;
using gpu::WaitFlag;
using model::Named;
using model::require;

// Two calls between hosts of one piece: this host's part goes out, the others' come in and are
// added, the sum comes in.
struct FlagsWorld {
  gpu::Control control{};
  gpu::Flags flags{};
  gpu::Report report{};
  gpu::Call call{};
  std::uint64_t part = 0;   // the GPU's, then the network's, then the GPU's
  std::uint64_t parts = 0;  // of the other hosts
  model::PlainMemory plain;

  void begin() {
    control = {};
    flags = {};
    report = {};
    call.arena[0] = reinterpret_cast<std::uint8_t*>(&control);
    call.report = &report;
    call.ranks = 1;
    plain.begin();
    gpu::spots = {};
  }

  void kernel() {
    gpu::Stop stop(call, &flags);
    gpu::WaitGuard guard(call);
    plain.write(&flags.record, sizeof flags.record);
    stop.signal(bit_of(Signal::begun), {});
    plain.write(&part, sizeof part);
    stop.signal(bit_of(Signal::scattered), {});
    stop.wait(WaitFlag::add, guard);
    plain.read(&parts, sizeof parts);
    plain.write(&part, sizeof part);
    stop.signal(bit_of(Signal::added), {});
    stop.wait(WaitFlag::gather, guard);
    plain.read(&part, sizeof part);
    stop.signal(bit_of(Signal::gathered), {});
  }

  void host(GpuFlags& host) {
    while (!host.begun()) model::wait();
    plain.read(&flags.record, sizeof flags.record);
    host.take();
    await(host, Signal::scattered);
    plain.read(&part, sizeof part);
    plain.write(&parts, sizeof parts);
    host.allow(WaitFlag::add);
    await(host, Signal::added);
    plain.read(&part, sizeof part);
    plain.write(&part, sizeof part);
    host.allow(WaitFlag::gather);
    await(host, Signal::gathered);
    host.end();
  }
  static void await(const GpuFlags& host, Signal what) {
    while (host.count(what) == 0) model::wait();
  }
};

Named two_calls(FlagsWorld& world) {
  return {"a kernel and its network",
          {[&] { world.begin(); },
           {[&] {
              world.kernel();
              world.kernel();
            },
            [&] {
              GpuFlags host(world.flags);
              world.host(host);
              world.host(host);
            }},
           {}},
          {.preemptions = 2, .stale = 2}};
}

class GpuFlagOrders : public testing::Test {
 protected:
  FlagsWorld world_;
  std::array<Named, 1> scenarios_{two_calls(world_)};
};

TEST_F(GpuFlagOrders, EveryRunIsRight) { model::expect_right(scenarios_); }

TEST_F(GpuFlagOrders, EachIsNeeded) {
  constexpr std::string_view kSources[] = {"collectives/comm/gpu_flags.hpp",
                                           "collectives/kernels/flags.cuh"};
  model::expect_needed(scenarios_, kSources);
}

}  // namespace
}  // namespace gdrx
