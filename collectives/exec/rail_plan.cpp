// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/rail_plan.hpp"

#include <fmt/format.h>

#include <utility>

#include "collectives/exec/program.hpp"

namespace gdrx::exec {
namespace {

using Chunks = RailPlan::Chunks;

// In place: input and output are the part, and scratch the chunk that it is like.
Chunks place_of(const plan::ChunkRef& chunk) {
  if (chunk.buffer == plan::Buffer::scratch) return {chunk.like, 1};
  return {chunk.chunk, chunk.count};
}

bool same(const Chunks& a, const Chunks& b) { return a.first == b.first && a.count == b.count; }

/// A message on its way to a rank: where it lands there, and the level of what it carries.
struct Message {
  std::optional<std::uint32_t> landing;  // in chunks; empty: in place
  std::optional<std::uint32_t> level;    // empty: not sent yet
};

/// Of one rank, by the host that sends.
using Arrivals = std::vector<std::vector<Message>>;

/// The plan of one host's rank, as far as that needs no other rank's.
class HostPlan {
 public:
  HostPlan(const Program& program, int hosts, std::uint32_t chunks)
      : receive_ring(static_cast<std::size_t>(hosts)), levels_(chunks) {
    std::vector<std::uint32_t> sent(receive_ring.size());
    for (const ChannelProgram& channel : program.channels) add(channel, sent);
    next_.assign(plan.channels.size(), 0);
  }

  RailPlan plan;
  Arrivals receive_ring;
  std::uint32_t landings = 0;
  bool supported = true;

  /// Goes on as far as messages have come. False: nothing could be done.
  bool advance(int self, std::vector<HostPlan>& all) {
    bool advanced = false;
    for (std::size_t channel = 0; channel < plan.channels.size(); ++channel) {
      for (auto& next = next_[channel]; next < plan.channels[channel].size(); ++next) {
        if (!run(plan.channels[channel][next], self, all)) break;
        advanced = true;
      }
    }
    return advanced;
  }
  bool finished() const {
    for (std::size_t channel = 0; channel < next_.size(); ++channel) {
      if (next_[channel] < plan.channels[channel].size()) return false;
    }
    return true;
  }

 private:
  using Step = RailPlan::Step;

  void add(const ChannelProgram& channel, std::vector<std::uint32_t>& sent) {
    plan.channels.emplace_back();
    std::vector<std::uint32_t> before;  // messages of earlier channels, by host
    for (const auto& from : receive_ring) before.push_back(static_cast<std::uint32_t>(from.size()));
    for (const Instruction& instruction : channel.code) {
      switch (instruction.kind) {
        case Instruction::Kind::send: {
          const int host = index(instruction.peer);
          step(Step::Kind::send, plan.sends.size());
          plan.sends.push_back({host, sent[static_cast<std::size_t>(host)]++,
                                place_of(instruction.chunk), std::nullopt});
          break;
        }
        case Instruction::Kind::gather:
          gather(instruction, channel, before);
          break;
        case Instruction::Kind::wait:
          supported = false;
          break;
      }
    }
  }

  void step(Step::Kind kind, std::size_t at) {
    plan.channels.back().push_back({kind, static_cast<std::uint32_t>(at)});
  }

  void gather(const Instruction& instruction, const ChannelProgram& channel,
              const std::vector<std::uint32_t>& before) {
    RailPlan::Sum sum;
    sum.chunks = place_of(instruction.chunk);
    sum.finish = instruction.finish;
    int own = 0;
    for (std::uint32_t i = 0; i < instruction.source_count; ++i) {
      const Source& source = channel.sources[instruction.first_source + i];
      if (source.local) {
        ++own;
        sum.self = static_cast<int>(sum.arrivals.size());
        supported = supported && same(place_of(source.chunk), sum.chunks);
      } else {
        const int host = index(source.peer);
        const std::uint32_t number = before[static_cast<std::size_t>(host)] + source.index;
        auto& from = receive_ring[static_cast<std::size_t>(host)];
        from.resize(std::max<std::size_t>(from.size(), number + 1));
        sum.arrivals.push_back({host, number, sum.chunks});
      }
    }
    if (own == 1 && sum.arrivals.empty()) return;  // a copy onto itself
    if (own == 0 && sum.arrivals.size() == 1) {
      step(Step::Kind::arrival, plan.arrivals.size());
      plan.arrivals.push_back(sum.arrivals[0]);
      return;
    }
    supported = supported && own == 1;
    sum.landing = landings;
    for (const RailPlan::Arrival& arrival : sum.arrivals) {
      message(arrival).landing = landings;
      landings += sum.chunks.count;
    }
    step(Step::Kind::sum, plan.sums.size());
    plan.sums.push_back(std::move(sum));
  }

  Message& message(const RailPlan::Arrival& arrival) {
    return receive_ring[static_cast<std::size_t>(arrival.host)][arrival.number];
  }
  std::uint32_t& level(std::uint32_t chunk) { return levels_[chunk]; }
  std::uint32_t level_of(const Chunks& chunks) {
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < chunks.count; ++i) most = std::max(most, level(chunks.first + i));
    return most;
  }
  void set_level(const Chunks& chunks, std::uint32_t value) {
    for (std::uint32_t i = 0; i < chunks.count; ++i) level(chunks.first + i) = value;
  }

  bool run(const Step& step, int self, std::vector<HostPlan>& all) {
    if (step.kind == Step::Kind::send) {
      RailPlan::Send& send = plan.sends[step.at];
      Message& there =
          all[static_cast<std::size_t>(send.host)].receive_ring[static_cast<std::size_t>(self)].at(
              send.number);
      there.level = level_of(send.chunks);
      send.landing = there.landing;
      return true;
    }
    if (step.kind == Step::Kind::arrival) {
      const RailPlan::Arrival& arrival = plan.arrivals[step.at];
      if (!message(arrival).level) return false;
      set_level(arrival.chunks, *message(arrival).level);
      return true;
    }
    RailPlan::Sum& sum = plan.sums[step.at];
    std::uint32_t most = level_of(sum.chunks);
    for (const RailPlan::Arrival& arrival : sum.arrivals) {
      if (!message(arrival).level) return false;
      most = std::max(most, *message(arrival).level);
    }
    sum.level = most + 1;
    set_level(sum.chunks, sum.level);
    return true;
  }

  std::vector<std::uint32_t> levels_;  // by chunk: that of its last sum
  std::vector<std::size_t> next_;      // step, by channel
};

// Sums of one level need none of each other.
void sort_by_level(RailPlan& plan) {
  std::vector<std::uint32_t> order(plan.sums.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return plan.sums[a].level < plan.sums[b].level;
  });
  std::vector<RailPlan::Sum> sums;
  std::vector<std::uint32_t> now(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    now[order[i]] = i;
    sums.push_back(std::move(plan.sums[order[i]]));
  }
  plan.sums = std::move(sums);
  for (auto& channel : plan.channels) {
    for (RailPlan::Step& step : channel) {
      if (step.kind == RailPlan::Step::Kind::sum) step.at = now[step.at];
    }
  }
}

}  // namespace

Result<RailPlan> RailPlan::create(plan::Algorithm algorithm, int hosts, int self) {
  const auto no = [&] {
    return fail(Errc::unsupported,
                fmt::format("GPUs of {} hosts do not run {}", hosts, plan::to_string(algorithm)));
  };
  if (hosts > kMostHosts) return no();
  const plan::Spec spec{Collective::all_reduce, algorithm, hosts, Rank{}};
  const plan::Shape shape = GDRX_TRY(plan::shape_of(spec));
  if (shape.input_chunks != shape.output_chunks) return no();
  std::vector<HostPlan> ranks;
  for (int host = 0; host < hosts; ++host) {
    const auto program = GDRX_TRY(plan::build_rank(spec, Rank{host}));
    ranks.emplace_back(compile(program), hosts, shape.input_chunks);
    if (!ranks.back().supported) return no();
  }
  for (bool advanced = true; advanced;) {
    advanced = false;
    for (int host = 0; host < hosts; ++host) {
      advanced = ranks[static_cast<std::size_t>(host)].advance(host, ranks) || advanced;
    }
  }
  RailPlan& plan = ranks[static_cast<std::size_t>(self)].plan;
  plan.chunks = shape.input_chunks;
  for (const HostPlan& rank : ranks) {
    if (!rank.finished()) return fail(Errc::internal, "a plan that was proven does not end");
    plan.landings = std::max(plan.landings, rank.landings);
    for (const Sum& sum : rank.plan.sums) plan.levels = std::max(plan.levels, sum.level);
    for (const auto& from : rank.receive_ring) {
      plan.messages = std::max(plan.messages, static_cast<std::uint32_t>(from.size()));
    }
  }
  sort_by_level(plan);
  return std::move(plan);
}

Bytes RailPlan::most_part(const RailLayout& layout) const noexcept {
  if (landings == 0) return layout.part_room();
  const Bytes chunk = layout.landing_room() / landings / RailLayout::kUnit * RailLayout::kUnit;
  return std::min(layout.part_room(), chunk * chunks);
}

plan::Traffic RailPlan::traffic(Bytes part) const noexcept {
  plan::Traffic all;
  for (const Send& send : sends) all.sends += share(part, send.chunks).bytes > 0 ? 1 : 0;
  for (const Arrival& one : arrivals) all.receives += share(part, one.chunks).bytes > 0 ? 1 : 0;
  for (const Sum& sum : sums) {
    if (share(part, sum.chunks).bytes > 0) all.receives += sum.arrivals.size();
  }
  return all;
}

}  // namespace gdrx::exec
