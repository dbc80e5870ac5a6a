// SPDX-License-Identifier: Apache-2.0
// allReduce on several hosts by GPUDirect, all of it but the kernels: HierarchicalDirect over
// simulated NICs, on GPUs that are none. Their kernels wait for each other as real ones do, and
// what stands behind one in a stream waits with it.
#include <fmt/format.h>

#include "collectives/comm/hierarchical_direct.hpp"
#include "collectives/reduce/reducer.hpp"
#include "mpi-tests/data.hpp"
#include "tests/fabric/rail_world.hpp"
#include "tests/gpu/no_path.hpp"

namespace gdrx::sim {
namespace {

class FakePath;

/// The kernels of a host's ranks: the n-th of each begin when all are there.
struct FakeHost {
  std::vector<FakePath*> paths;  // by local number
};

class FakePath final : public gpu::NoPath {
 public:
  FakePath(RailWorld& world, FakeHost& host, std::uint64_t seed)
      : world_(world), host_(host), local_(host.paths.size()), stream_(seed) {
    host.paths.push_back(this);
  }
  void tick() { stream_.tick(); }

  Result<void> launch(const gpu::Work& what, const gpu::Shape& shape, void*) override {
    const std::size_t number = launched_++;
    const bool scatters = shape.kernel == gpu::Kernel::reduce_scatter;
    stream_.push(
        [this, what, scatters, number] { scatters ? sum(what, number) : join(what, number); },
        [this, what, scatters, number] { return enter(what, scatters, number); });
    return {};
  }
  Result<void> step_flags(const gpu::FlagStep& step, void*) override {
    stream_.push([this, step] {
      if ((step.signals & gpu::bit_of(gpu::Signal::begun)) != 0) flags_.record = step.record;
      for (int what = 0; what < gpu::kSignals; ++what)
        flags_.signals[what] += step.signals >> what & 1;
    });
    if (step.waits_for >= 0) {
      stream_.push(
          [this, step] { ++taken_[step.waits_for]; },
          [this, step] { return flags_.wait_flags[step.waits_for] > taken_[step.waits_for]; });
    }
    return {};
  }
  Result<void> combine(const gpu::HostSum& what, void*) override {
    stream_.push([this, what] { add(what); });
    return {};
  }

 private:
  /// GPU memory, or a user's buffer, which is in host memory here.
  std::span<std::byte> seen(const void* at, Bytes bytes) const {
    auto* address = static_cast<std::byte*>(const_cast<void*>(at));
    const bool on_gpu = world_.gpu().calls().kind_of(at) == MemoryKind::cuda;
    return on_gpu ? world_.seen(address, bytes) : std::span(address, bytes);
  }
  static Bytes part_of(const gpu::Work& what, std::size_t local) {
    const Bytes before = std::min<Bytes>(what.bytes, local * what.block);
    return std::min<Bytes>(what.block, what.bytes - before);
  }
  // What it brings is taken when it begins: then it is on its way to the others.
  bool enter(const gpu::Work& what, bool scatters, std::size_t number) {
    if (brought_.size() == number) {
      const auto mine = seen(what.input, scatters ? what.bytes : part_of(what, local_));
      brought_.emplace_back(mine.begin(), mine.end());
    }
    return std::all_of(host_.paths.begin(), host_.paths.end(),
                       [&](const FakePath* path) { return path->brought_.size() > number; });
  }
  void sum(const gpu::Work& what, std::size_t number) {
    const Bytes bytes = part_of(what, local_);
    std::vector<const void*> sources;
    for (const FakePath* path : host_.paths) {
      sources.push_back(path->brought_[number].data() + local_ * what.block);
    }
    if (bytes == 0) return;
    reduce::reduce(seen(what.output, bytes).data(), sources, bytes / size_of(what.type), what.type,
                   what.op);
  }
  void join(const gpu::Work& what, std::size_t number) {
    const auto to = seen(what.output, what.bytes);
    for (std::size_t local = 0; local < host_.paths.size(); ++local) {
      const auto& from = host_.paths[local]->brought_[number];
      std::copy(from.begin(), from.end(),
                to.begin() + static_cast<std::ptrdiff_t>(std::min(what.bytes, local * what.block)));
    }
  }
  void add(const gpu::HostSum& what) {
    std::vector<const void*> sources;
    const std::uint8_t* landed = what.landed;
    for (int host = 0; host < what.hosts; ++host) {
      sources.push_back(seen(host == what.self ? what.own : landed, what.bytes).data());
      if (host != what.self) landed += what.stride;
    }
    reduce::reduce(seen(what.into, what.bytes).data(), sources, what.bytes / size_of(what.type),
                   what.type, what.op, what.finish_over);
  }

  RailWorld& world_;
  FakeHost& host_;
  std::size_t local_;
  GpuStream stream_;
  std::size_t launched_ = 0;
  std::uint64_t taken_[gpu::kWaitFlags] = {};
  std::vector<std::vector<std::byte>> brought_;  // by kernel
  std::string name_ = "none";
};

struct Layout {
  int hosts = 2;
  int locals = 1;
  plan::Algorithm algorithm = plan::Algorithm::two_shot;
};

struct CallOf {
  DataType type{};
  ReduceOp op{};
  std::uint64_t count = 0;
  bool in_place = false;
};

/// All ranks, in calls one after another; no rank waits for the others between two.
class DirectWorld {
 public:
  DirectWorld(Layout layout, std::uint64_t seed)
      : layout_(layout),
        random_(seed),
        world_(settings(layout, seed), kRailLayout, layout.locals),
        hosts_(static_cast<std::size_t>(layout.hosts)),
        members_(static_cast<std::size_t>(world_.size())) {
    std::vector<exec::RailAdder*> adders;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      Member& member = members_[rank];
      member.path = std::make_unique<FakePath>(
          world_, hosts_[rank / static_cast<std::size_t>(layout.locals)], random_.next());
      member.flags = std::make_unique<GpuFlags>(member.path->flags());
      member.adder = std::make_unique<GpuAdder>(*member.flags);
      adders.push_back(member.adder.get());
      const int host = static_cast<int>(rank) / layout.locals;
      member.plan = *exec::RailPlan::create(layout.algorithm, layout.hosts, host);
    }
    world_.make_rails(adders);
    world_.network().set_fault(Fault::gpu_hold, 0.3);
    world_.network().set_fault(Fault::scatter, 0.5);
    world_.network().set_fault(Fault::delay, 0.02);
  }

  /// Empty: every rank has every sum, bit by bit.
  std::string run(const std::vector<CallOf>& calls) {
    const Instant end = world_.network().now() + std::chrono::seconds(60);
    const auto done = [&](const Member& member) { return member.call == calls.size(); };
    while (!std::all_of(members_.begin(), members_.end(), done)) {
      if (world_.network().now() >= end) {
        const auto& first = members_[0].execution;
        return "hangs: " + (first ? first->waiting_for() : "for the stream");
      }
      world_.network().run_for(std::chrono::microseconds(5));
      for (std::size_t rank = 0; rank < members_.size(); ++rank) {
        members_[rank].path->tick();
        if (random_.chance(0.1)) continue;
        auto moved = round(static_cast<int>(rank), calls);
        if (!moved) return fmt::format("rank {}: {}", rank, describe(moved.error()));
        if (!moved->empty()) return *moved;
      }
    }
    return {};
  }

 private:
  struct Member {
    std::unique_ptr<FakePath> path;
    std::unique_ptr<GpuFlags> flags;
    exec::RailPlan plan;
    std::unique_ptr<GpuAdder> adder;
    std::unique_ptr<HierarchicalDirect> execution;
    std::vector<std::vector<std::byte>> inputs;  // of the calls that are in the stream
    std::vector<std::vector<std::byte>> outputs;
    std::size_t call = 0;
  };
  static ClusterSettings settings(Layout layout, std::uint64_t seed) {
    ClusterSettings made;
    made.hosts = layout.hosts;
    made.seed = seed;
    made.nics = 1;
    return made;
  }
  bench::DataKey key_of(const CallOf& call, std::size_t number) const {
    return {call.type, call.op, world_.size(), number};
  }
  // Two-shot adds in the order of hosts, which is compared bit by bit; what others add is exact in
  // any order.
  std::vector<std::byte> input_of(const CallOf& call, std::size_t number, int rank) const {
    std::vector<std::byte> data(call.count * size_of(call.type));
    if (layout_.algorithm != plan::Algorithm::two_shot) {
      bench::fill_input(key_of(call, number), rank, data.data(), call.count);
      return data;
    }
    Random random(number * 100 + static_cast<std::uint64_t>(rank));
    // Bytes below 60 are numbers of every type that neither overflow nor are NaN.
    for (std::byte& one : data) one = static_cast<std::byte>(random.below(60));
    return data;
  }
  static std::vector<std::byte> reduced(const CallOf& call,
                                        const std::vector<std::vector<std::byte>>& inputs,
                                        int over) {
    std::vector<const void*> sources;
    for (const auto& input : inputs) sources.push_back(input.data());
    std::vector<std::byte> sum(inputs[0].size());
    reduce::reduce(sum.data(), sources, call.count, call.type, call.op, over);
    return sum;
  }
  // The hosts' sums, added in the order of hosts.
  const std::vector<std::byte>& expected(const CallOf& call, std::size_t number) {
    if (expected_.size() > number) return expected_[number];
    if (layout_.algorithm != plan::Algorithm::two_shot) {
      expected_.emplace_back(call.count * size_of(call.type));
      bench::fill_expected(key_of(call, number), expected_.back().data(), 0, call.count);
      return expected_.back();
    }
    std::vector<std::vector<std::byte>> sums;
    for (int host = 0; host < layout_.hosts; ++host) {
      std::vector<std::vector<std::byte>> inputs;
      for (int local = 0; local < layout_.locals; ++local) {
        inputs.push_back(input_of(call, number, host * layout_.locals + local));
      }
      sums.push_back(reduced(call, inputs, 0));
    }
    expected_.push_back(reduced(call, sums, call.op == ReduceOp::avg ? world_.size() : 0));
    return expected_.back();
  }
  Result<std::string> round(int rank, const std::vector<CallOf>& calls) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    GDRX_TRY(world_.poll(rank, [&](std::uint64_t cookie) {
      if (member.execution) member.execution->on_write_done(cookie);
    }));
    if (member.call == calls.size()) return std::string();
    // Some calls ahead, and sometimes none.
    if (member.inputs.size() < std::min(calls.size(), member.call + 3) && random_.chance(0.2)) {
      GDRX_TRY(put_into_stream(rank, member, calls[member.inputs.size()]));
    }
    const CallOf& call = calls[member.call];
    if (!member.execution) {
      if (!member.flags->begun()) return std::string();
      GDRX_TRY(begin(rank, member, member.flags->take()));
    }
    if (GDRX_TRY(member.execution->step()) != exec::Step::done) return std::string();
    const exec::Counters counted = member.execution->counters();
    const plan::Traffic planned = member.execution->planned();
    if (counted.sent != planned.sends || counted.received != planned.receives) {
      return fmt::format("rank {}, call {}: sent {} of {} and received {} of {} messages", rank,
                         member.call, counted.sent, planned.sends, counted.received,
                         planned.receives);
    }
    member.execution.reset();
    const auto& right = expected(call, member.call);
    ++member.call;
    const auto& got = member.outputs[member.call - 1];
    if (std::equal(right.begin(), right.end(), got.begin())) return std::string();
    return fmt::format("rank {}, call {}: {} {} {}", rank, member.call - 1, call.count,
                       to_string(call.type), to_string(call.op));
  }
  Pieces pieces_of(Bytes bytes) const {
    return Pieces::cut(bytes, layout_.locals, members_[0].plan.most_part(kRailLayout));
  }
  int finish_over(ReduceOp op) const { return op == ReduceOp::avg ? world_.size() : 0; }

  Result<void> put_into_stream(int rank, Member& member, const CallOf& call) {
    member.inputs.push_back(input_of(call, member.inputs.size(), rank));
    const std::vector<std::byte>& input = member.inputs.back();
    member.outputs.push_back(call.in_place ? input : std::vector<std::byte>(input.size()));
    std::vector<std::byte>& output = member.outputs.back();
    exec::Rail& rail = world_.rail(rank);
    GpuPieces what;
    what.path = member.path.get();
    what.host.ranks = layout_.locals;
    what.work = {call.in_place ? output.data() : input.data(), output.data(), input.size(),
                 call.type, call.op};
    what.record = {call.count, static_cast<std::int32_t>(call.type),
                   static_cast<std::int32_t>(call.op), 0};
    what.pieces = pieces_of(input.size());
    what.part = [&](std::uint64_t piece) { return rail.part(piece); };
    what.levels = member.plan.levels;
    what.sums = levels_of(member.plan);
    what.sum = [&](std::uint64_t piece, std::uint32_t sum) {
      const Bytes part = what.pieces.piece(piece).part_of(rank % layout_.locals);
      const exec::Rail::Call how{call.type, call.op, finish_over(call.op), &member.plan};
      return host_sum(rail.sum(piece, part, how, member.plan.sums[sum]), 32);
    };
    return enqueue(what, nullptr);
  }
  // What the record of the stream says is all that is known of it.
  Result<void> begin(int rank, Member& member, const gpu::CallRecord& record) {
    const auto type = static_cast<DataType>(record.type);
    const auto op = static_cast<ReduceOp>(record.op);
    HierarchicalDirect::Setup setup;
    setup.flags = member.flags.get();
    setup.pieces = pieces_of(record.count * size_of(type));
    setup.local = rank % layout_.locals;
    setup.rail = &world_.rail(rank);
    setup.adder = member.adder.get();
    setup.plan = &member.plan;
    setup.finish_over = finish_over(op);
    setup.signature.collective = Collective::all_reduce;
    setup.signature.type = type;
    setup.signature.op = op;
    setup.signature.sequence = member.call;
    setup.signature.count = record.count;
    setup.links = &world_.links(rank);
    member.execution = GDRX_TRY(HierarchicalDirect::create(setup));
    return {};
  }

  Layout layout_;
  Random random_;
  RailWorld world_;
  std::vector<FakeHost> hosts_;
  std::vector<Member> members_;
  std::vector<std::vector<std::byte>> expected_;  // by call
};

TEST(Direct, EveryTypeAndOperatorIsRightOnEveryRank) {
  std::vector<CallOf> calls;
  for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
    for (std::size_t op = 0; op < kGpuOpCount; ++op) {
      calls.push_back({static_cast<DataType>(type), static_cast<ReduceOp>(op), 1 + 997 * op,
                       (type + op) % 2 == 0});
    }
  }
  for (const Layout layout : {Layout{2, 1}, Layout{3, 2}, Layout{3, 1, plan::Algorithm::ring}}) {
    DirectWorld world(layout, 5);
    EXPECT_EQ(world.run(calls), "") << layout.hosts << " x " << layout.locals;
  }
}

TEST(Direct, PiecesInFlightDoNotMeetWhateverTheOrderOfEvents) {
  const std::vector<CallOf> calls{{DataType::float32, ReduceOp::sum, 1'300'003, false},
                                  {DataType::bfloat16, ReduceOp::avg, 1'000'001, true},
                                  {DataType::float32, ReduceOp::sum, 3, false},
                                  {DataType::uint8, ReduceOp::max, 2'500'007, false},
                                  {DataType::float64, ReduceOp::prod, 131'072, true}};
  for (const Layout layout : {Layout{2, 1}, Layout{2, 3}, Layout{4, 1}, Layout{5, 2}}) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      DirectWorld world(layout, seed);
      ASSERT_EQ(world.run(calls), "")
          << layout.hosts << " x " << layout.locals << ", seed " << seed;
    }
  }
}

// The last host has no share of the first piece, but one of the shorter second.
TEST(Direct, HostsWithoutAShareOfSomePiecesAddTheOthers) {
  constexpr int kHosts = 65;
  const std::uint64_t bytes = (512 << 10) + 8500;
  DirectWorld world({kHosts, 1}, 1);
  const Bytes cut = Pieces::cut(bytes, 1, kRailLayout.part_room()).part;
  ASSERT_EQ(cut, 512U << 10);
  EXPECT_EQ(world.run({{DataType::uint8, ReduceOp::max, bytes, false}}), "");
}

TEST(Direct, EveryPlanOfARailIsRight) {
  const std::vector<CallOf> calls{{DataType::float32, ReduceOp::sum, 1'300'003, false},
                                  {DataType::bfloat16, ReduceOp::avg, 700'001, true},
                                  {DataType::uint8, ReduceOp::max, 5, false},
                                  {DataType::int32, ReduceOp::sum, 2'500'007, true}};
  for (const auto algorithm :
       {plan::Algorithm::ring, plan::Algorithm::tree, plan::Algorithm::halving_doubling}) {
    for (const auto& [hosts, locals] :
         {std::pair(2, 2), std::pair(3, 1), std::pair(4, 2), std::pair(5, 1), std::pair(7, 1)}) {
      DirectWorld world({hosts, locals, algorithm}, 3);
      ASSERT_EQ(world.run(calls), "")
          << plan::to_string(algorithm) << " of " << hosts << " x " << locals;
    }
  }
}

}  // namespace
}  // namespace gdrx::sim
