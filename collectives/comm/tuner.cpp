// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/exec/one_block.hpp"
#include "gdrx/plan_effort.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {
namespace {

using plan::Algorithm;

// Measured on 2 cores of an AMD EPYC (Zen 4), 2 and 16 ranks; microseconds, and us per byte. They
// rank algorithms; a figure in a report is never one of these.
struct Costs {
  double message;  // one hop: a signal, or a message with its header
  double wire;     // a byte moved between ranks
  double reduce;   // a byte read by the reducer
  double copy;     // a byte copied
};
constexpr Costs kShm{0.3, 0.0, 0.00001, 0.000027};
constexpr Costs kFabric{2.0, 0.0001, 0.00001, 0.000027};
// Messages by stores, without another host: 0.4 us and a turn of the plan; copied in and out.
constexpr Costs kStores{0.5, 0.00006, 0.00001, 0.000027};
constexpr double kStoresShared = 1.2;  // a hop, when ranks share a core
// Beyond the caches a byte of output costs this much more; two-shot writes round them.
constexpr double kCacheBytes = 48.0 * 1024 * 1024;
constexpr double kFarOneShot = 0.00005;
constexpr double kFarTwoShot = 0.0001;
// Results that the kernel writes into the other processes, a byte; it pays from slices of some
// pages on, while buffers stay in the caches.
constexpr double kWriteOut = 0.000035;
constexpr double kLeastSlice = 64.0 * 1024;
constexpr double kSwitch = 2.2;  // a context switch, when ranks share a core

double log2_ceil(int n) { return n <= 1 ? 0 : std::ceil(std::log2(n)); }

// How much longer everything takes when ranks take turns on a core.
double sharing(const Machine& machine) {
  const double per_host = std::ceil(static_cast<double>(machine.ranks) / machine.hosts);
  return std::max(1.0, per_host / machine.cpus);
}

// Waiting for every rank of the host once: a signal, or a round of everybody's turn.
double sync_us(const Machine& machine) {
  const double turns = sharing(machine);
  return turns > 1 ? kSwitch * turns : kShm.message * (1 + log2_ceil(machine.ranks) / 2);
}

bool beyond_caches(const Machine& machine, double bytes) {
  return 2 * machine.ranks * bytes > kCacheBytes;
}

double shm_us(const Machine& machine, Algorithm algorithm, double bytes) {
  const double n = machine.ranks;
  const double blocks = std::max(1.0, std::ceil(bytes / static_cast<double>(machine.arena_block)));
  const double work = algorithm == Algorithm::one_shot
                          ? kShm.copy * bytes + kShm.reduce * n * bytes
                          : kShm.copy * bytes * (1 - 1 / n) + kShm.reduce * bytes +
                                (writes_results(machine, static_cast<Bytes>(bytes))
                                     ? kWriteOut * bytes * (1 - 1 / n)
                                     : kShm.copy * bytes);
  const double far_us =
      !beyond_caches(machine, bytes)
          ? 0
          : bytes * (algorithm == Algorithm::one_shot ? kFarOneShot : kFarTwoShot);
  const double syncs = blocks + (algorithm == Algorithm::one_shot ? 0 : 1);
  return syncs * sync_us(machine) + sharing(machine) * (work + far_us);
}

double fabric_us(const Machine& machine, bool stores, Algorithm algorithm, Collective collective,
                 double bytes) {
  const plan::Effort effort = plan::effort_of(collective, algorithm, machine.ranks);
  const double turns = sharing(machine);
  const Costs& costs = stores ? kStores : kFabric;
  const double hop = stores && turns > 1 ? kStoresShared : costs.message;
  return effort.hops * hop * turns +
         turns * bytes * (effort.moved * costs.wire + effort.reduced * costs.reduce);
}

// A measured time is compared with measured times, the model's with the model's: where one way was
// not measured, the model decides among all.
bool use_measured(const Machine& machine, Bytes bytes, std::vector<Candidate>& candidates) {
  std::vector<Candidate> timed = candidates;
  for (Candidate& candidate : timed) {
    const auto points =
        tune::find(machine.measured, path_name(machine, candidate.path), candidate.algorithm);
    const auto us = tune::time_of(points, bytes);
    if (!us) return false;
    candidate.predicted_us = *us;
  }
  candidates = std::move(timed);
  return true;
}

bool is_direct(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::one_shot || algorithm == Algorithm::two_shot;
}

void sort_by_time(Choice& choice) {
  std::stable_sort(
      choice.candidates.begin(), choice.candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.predicted_us < b.predicted_us; });
  choice.chosen = choice.candidates.front();
}

}  // namespace

bool writes_results(const Machine& machine, Bytes bytes) noexcept {
  if (!machine.shm || machine.cma != 1) return machine.shm && machine.cma == 2;
  const auto size = static_cast<double>(bytes);
  const double slice = std::min(size, static_cast<double>(machine.arena_block)) / machine.ranks;
  return slice >= kLeastSlice && sharing(machine) <= 1 && !beyond_caches(machine, size);
}

Result<void> check_reproducible(bool reproducible, std::optional<Algorithm> fixed) {
  if (!reproducible || !fixed || is_direct(*fixed)) return {};
  return fail(Errc::invalid_argument,
              fmt::format("GDRX_REPRODUCIBLE=1 adds in the order of ranks, {} does not: use auto, "
                          "one-shot or two-shot",
                          plan::to_string(*fixed)));
}

bool can_carry(const Machine& machine, Collective collective,
               std::optional<Algorithm> fixed) noexcept {
  if (collective == Collective::send_recv) return machine.fabric;
  if (machine.fabric || machine.ranks == 1) return true;
  if (collective == Collective::barrier) return machine.shm;
  return machine.shm && collective == Collective::all_reduce && (!fixed || is_direct(*fixed));
}

std::optional<Choice> choose(const Machine& machine, Collective collective, Bytes bytes,
                             std::optional<Algorithm> fixed, bool in_rank_order) {
  Choice choice;
  const auto size = static_cast<double>(bytes);
  const auto algorithms = plan::algorithms_of(collective);
  const bool stores = machine.ranks > 1 && machine.fabric_name == "shm";
  // An algorithm asked for is an allReduce's: other collectives have what they have.
  const bool known = fixed && (!in_rank_order || plan::in_rank_order(collective, *fixed)) &&
                     std::find(algorithms.begin(), algorithms.end(), *fixed) != algorithms.end();
  const bool ordered =
      in_rank_order || (machine.reproducible && collective == Collective::all_reduce);
  for (const Algorithm algorithm : algorithms) {
    const bool direct = is_direct(algorithm);
    if (ordered && !plan::in_rank_order(collective, algorithm)) continue;
    if (known && algorithm != *fixed) continue;
    if (machine.shm && direct && collective == Collective::all_reduce) {
      choice.candidates.push_back({algorithm, PathKind::shm, shm_us(machine, algorithm, size)});
    } else if (machine.fabric || machine.ranks == 1) {
      choice.candidates.push_back(
          {algorithm, PathKind::fabric, fabric_us(machine, stores, algorithm, collective, size)});
    }
  }
  if (choice.candidates.empty()) return std::nullopt;
  if (collective == Collective::all_reduce && !machine.measured.empty()) {
    choice.measured = use_measured(machine, bytes, choice.candidates);
  }
  sort_by_time(choice);
  return choice;
}

// An allReduce has its plans in blocks, whatever its size.
std::optional<Candidate> choose_one_block(const Machine& machine, const Question& question) {
  const Collective collective = question.collective;
  if (!machine.shm || !question.in_one_block || collective == Collective::all_reduce) {
    return std::nullopt;
  }
  const auto algorithms = plan::algorithms_of(collective);
  const bool other = question.fixed && std::find(algorithms.begin(), algorithms.end(),
                                                 *question.fixed) != algorithms.end();
  if (other) return std::nullopt;
  // Beyond it a rank publishes much that others do not need.
  const Bytes most = exec::ArenaLayout::shelf_bytes(machine.arena_block);
  const plan::CollectiveTraits& traits = plan::traits_of(collective);
  if (machine.ranks > exec::kMostRanksInOneHop ||
      exec::given_of(traits, question.bytes, machine.ranks) > most) {
    return std::nullopt;
  }
  const double us = shm_us(machine, Algorithm::one_shot, static_cast<double>(question.bytes));
  return Candidate{Algorithm::one_shot, PathKind::shm, us};
}

std::optional<Choice> choose_rail(const Machine& rail, const Pieces& pieces,
                                  std::optional<Algorithm> fixed) {
  const std::uint64_t last = pieces.count() - 1;  // it alone may be shorter
  auto choice = choose(rail, Collective::all_reduce, pieces.piece(last).part, fixed);
  if (!choice || last == 0) return choice;
  const auto before = choose(rail, Collective::all_reduce, pieces.part, fixed);
  for (Candidate& candidate : choice->candidates) {
    const auto same = std::find_if(
        before->candidates.begin(), before->candidates.end(),
        [&](const Candidate& other) { return other.algorithm == candidate.algorithm; });
    candidate.predicted_us += static_cast<double>(last) * same->predicted_us;
  }
  sort_by_time(*choice);
  return choice;
}

double messages_us(const Machine& machine, Bytes bytes) {
  const Costs& costs = machine.shm ? kStores : kFabric;
  return sharing(machine) * (costs.message + static_cast<double>(bytes) * costs.wire);
}

double direct_rail_us(const Machine& rail, const Pieces& pieces, Algorithm algorithm) {
  const double hosts = rail.ranks;
  const std::uint64_t last = pieces.count() - 1;
  const auto bytes = static_cast<double>(last * pieces.part + pieces.piece(last).part);
  double latencies = 2;
  double passes = 2 * (hosts - 1) / hosts;
  if (algorithm == Algorithm::ring) latencies = 2 * (hosts - 1);
  if (algorithm == Algorithm::tree || algorithm == Algorithm::halving_doubling) {
    latencies = 2 * std::ceil(std::log2(hosts));
  }
  if (algorithm == Algorithm::tree) passes = 2;
  const double power = std::exp2(std::floor(std::log2(hosts)));
  if (algorithm == Algorithm::halving_doubling && power < hosts) {
    passes = 2 * (power - 1) / power + 2;
  }
  return latencies * kFabric.message + passes * bytes * kFabric.wire;
}

std::vector<Candidate> direct_rail_ways(const Machine& rail, const Pieces& pieces) {
  std::vector<Candidate> ways;
  for (const Algorithm algorithm : plan::algorithms_of(Collective::all_reduce)) {
    if (algorithm == Algorithm::one_shot) continue;  // rails do not run it
    if (rail.reproducible && algorithm != Algorithm::two_shot) continue;
    ways.push_back({algorithm, PathKind::fabric, direct_rail_us(rail, pieces, algorithm)});
  }
  std::stable_sort(ways.begin(), ways.end(), [](const Candidate& a, const Candidate& b) {
    return a.predicted_us < b.predicted_us;
  });
  return ways;
}

std::string_view path_name(const Machine& machine, PathKind path) noexcept {
  switch (path) {
    case PathKind::shm:
      return "shm";
    case PathKind::fabric:
      return machine.fabric_name;
    case PathKind::gpu:
      return "gpu";
  }
  return "?";
}

std::string explain_row(const Machine& machine, const Candidate& candidate, bool chosen,
                        std::string_view remark) {
  return fmt::format("  {} {:<17} over {:<5} predicted {:>10.1f} us{}\n", chosen ? "*" : " ",
                     plan::to_string(candidate.algorithm), path_name(machine, candidate.path),
                     candidate.predicted_us, remark);
}

std::string explain_rows(const Machine& machine, const Choice& choice) {
  std::string text;
  for (const Candidate& candidate : choice.candidates) {
    const bool chosen = &candidate == &choice.candidates.front();
    const double times = candidate.predicted_us / choice.chosen.predicted_us;
    text += explain_row(machine, candidate, chosen,
                        chosen ? "  <- chosen" : fmt::format("  {:.1f}x", times));
  }
  return text;
}

std::string explain(const Machine& machine, Collective collective, Bytes bytes,
                    const Choice& choice) {
  std::string text =
      fmt::format("{} of {} bytes, {} ranks on {} host(s), {} cpu(s) a host\n",
                  to_string(collective), bytes, machine.ranks, machine.hosts, machine.cpus);
  text += fmt::format("  times from {}\n", choice.measured ? machine.measured_by : "the model");
  if (!machine.measured_not.empty()) text += fmt::format("  {}\n", machine.measured_not);
  text += explain_rows(machine, choice);
  if (collective == Collective::all_reduce && writes_results(machine, bytes)) {
    text += "  two-shot over shm writes its results straight into the other processes (GDRX_CMA)\n";
  }
  if (machine.hosts > 1) text += "  shm left out: the ranks are on several hosts\n";
  return text;
}

}  // namespace gdrx
