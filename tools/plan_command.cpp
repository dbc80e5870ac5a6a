// SPDX-License-Identifier: Apache-2.0
// gdrx plan: shows, proves and simulates the program that an algorithm is.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "gdrx/plan_simulate.hpp"
#include "gdrx/plan_text.hpp"
#include "tools/commands.hpp"
#include "tools/units.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  gdrx plan --algo ring -n 8 --rank 0             what rank 0 of 8 does in a ring allReduce\n"
    "  gdrx plan --algo tree -n 7 --verify             proves it, and says no more\n"
    "  gdrx plan --algo two-shot -n 8 --simulate --alpha 2us --bandwidth 50 --size 1M\n"
    "                                                  predicted, not measured, time\n"
    "  gdrx plan --algo ring -n 4 --format json > ring.json\n"
    "  gdrx plan --load ring.json --simulate           a plan from a file is always proved first\n"
    "  gdrx plan --collective broadcast --algo tree -n 5 --root 2 --format dot | dot -Tsvg > "
    "t.svg\n"
    "Exit status: 0, 1 if the plan does not hold or a file cannot be read, 2 for bad usage.\n";

struct Options {
  std::string collective = "allreduce";
  std::string algorithm = "ring";
  std::int32_t ranks = 8;
  std::int32_t root = 0;
  std::int32_t rank = -1;
  std::string format;
  std::string load;
  bool verify = false;
  bool simulate = false;
  std::string alpha = "2us";
  std::string overhead = "0";
  std::string bandwidth = "50";
  std::string reduce_bandwidth;
  std::string size = "1M";
  std::string links = "port";
};

// "all-reduce", "allReduce" and "ALLREDUCE" are one word.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_') out += static_cast<char>(std::tolower(c));
  }
  return out;
}

plan::Spec spec_of(const Options& options) {
  std::string known;
  plan::Spec spec;
  bool found = false;
  for (std::size_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (plan::algorithms_of(collective).empty()) continue;
    if (folded(to_string(collective)) == folded(options.collective)) {
      spec.collective = collective;
      found = true;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", to_string(collective));
  }
  if (!found) {
    throw Failure{kBadUsage, fmt::format("--collective does not know '{}'; it takes {}",
                                         options.collective, known)};
  }
  const auto algorithm = plan::parse_algorithm(options.algorithm);
  const auto algorithms = plan::algorithms_of(spec.collective);
  if (!algorithm ||
      std::find(algorithms.begin(), algorithms.end(), *algorithm) == algorithms.end()) {
    std::string names;
    for (const plan::Algorithm a : algorithms) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", plan::to_string(a));
    }
    throw Failure{kBadUsage, fmt::format("--algo does not know '{}' for {}; it takes {}",
                                         options.algorithm, to_string(spec.collective), names)};
  }
  spec.algorithm = *algorithm;
  spec.ranks = options.ranks;
  spec.root = Rank{options.root};
  return spec;
}

std::string read_file(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw Failure{kFailed, describe({Errc::system, "open " + path, errno})};
  std::string text;
  std::array<char, 65536> block{};
  const std::size_t most = plan::JsonLimits{}.bytes;
  while (text.size() <= most) {  // one block more, and from_json says that it is too much
    const std::size_t got = std::fread(block.data(), 1, block.size(), file);
    if (got == 0) break;
    text.append(block.data(), got);
  }
  const int error = std::ferror(file) != 0 ? errno : 0;
  if (file != stdin) std::fclose(file);
  if (error != 0) throw Failure{kFailed, describe({Errc::system, "read " + path, error})};
  return text;
}

plan::Costs costs_of(const Options& options) {
  plan::Costs costs;
  costs.alpha_us = value_or_fail(parse_us("--alpha", options.alpha));
  costs.overhead_us = value_or_fail(parse_us("--overhead", options.overhead));
  costs.beta_us = 1e-3 / value_or_fail(parse_positive("--bandwidth", options.bandwidth));
  if (!options.reduce_bandwidth.empty()) {
    costs.gamma_us =
        1e-3 / value_or_fail(parse_positive("--reduce-bandwidth", options.reduce_bandwidth));
  }
  costs.links = options.links == "pair" ? plan::Links::pair : plan::Links::port;
  return costs;
}

void print_simulation(const plan::Plan& plan, const Options& options) {
  constexpr std::size_t kShown = 24;  // of the critical path: enough to see its pattern
  const Bytes size = value_or_fail(parse_size("--size", options.size));
  const auto p = value_or_fail(plan::simulate(plan, size, costs_of(options)), kFailed);
  const auto [first, last] = std::minmax_element(p.finish_us.begin(), p.finish_us.end());
  fmt::print("simulated, not measured: {} {} of {} bytes, {} ranks: {:.3f} us\n",
             to_string(plan.spec.collective), plan::to_string(plan.spec.algorithm), size,
             plan.spec.ranks, p.time_us);
  fmt::print("ranks finish between {:.3f} and {:.3f} us; {} messages, {:.0f} bytes on links\n",
             *first, *last, p.messages, p.bytes);
  const auto& path = p.critical_path;
  fmt::print("critical path, {} ops:\n", path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path.size() > kShown && i == kShown / 2) {
      fmt::print("  ... {} more\n", path.size() - kShown);
      i += path.size() - kShown;
    }
    const plan::Moment& at = path[i];
    const plan::Op& op =
        plan.ranks[static_cast<std::size_t>(index(at.rank))].channels[at.channel][at.op];
    fmt::print("  {:>10.3f} to {:>10.3f}  rank {} channel {} op {}: {}\n", at.begin_us, at.end_us,
               index(at.rank), at.channel, at.op, plan::to_text(op));
  }
}

// One rank's program alone is built without the others': at any number of ranks.
void print_rank(const plan::Plan* plan, const plan::Spec& spec, std::int32_t rank) {
  if (rank < 0 || rank >= spec.ranks) {
    throw Failure{kBadUsage, fmt::format("--rank {} is not one of {} ranks", rank, spec.ranks)};
  }
  const auto program = plan != nullptr ? plan->ranks[static_cast<std::size_t>(rank)]
                                       : value_or_fail(plan::build_rank(spec, Rank{rank}));
  fmt::print("{}", plan::to_text(program, Rank{rank}));
}

void print(const plan::Plan& plan, const std::string& format) {
  const std::string text = format == "json"  ? plan::to_json(plan)
                           : format == "dot" ? plan::to_dot(plan)
                                             : plan::to_text(plan);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void run(const Options& options) {
  // Whole plans take memory by the square of the ranks; one rank's program does not.
  constexpr std::int32_t kMostRanks = 4096;
  const bool whole = options.verify || options.simulate || options.rank < 0;
  if (!options.load.empty()) {
    const auto plan = value_or_fail(plan::from_json(read_file(options.load)), kFailed);
    if (options.verify) fmt::print("{}: holds\n", options.load);
    if (options.simulate) print_simulation(plan, options);
    if (options.rank >= 0) print_rank(&plan, plan.spec, options.rank);
    if (options.rank < 0 && (!options.format.empty() || (!options.verify && !options.simulate))) {
      print(plan, options.format);
    }
    return;
  }
  const plan::Spec spec = spec_of(options);
  value_or_fail(plan::shape_of(spec));
  if (!whole) return print_rank(nullptr, spec, options.rank);
  if (spec.ranks > kMostRanks) {
    throw Failure{kBadUsage, fmt::format("-n {}: whole plans end at {} ranks; --rank R shows one "
                                         "rank of any number",
                                         spec.ranks, kMostRanks)};
  }
  const auto plan = value_or_fail(plan::build(spec));
  if (options.verify) {
    const auto proof = value_or_fail(plan::verify(plan), kFailed);
    fmt::print("{} {}, {} ranks: holds; {} messages\n", to_string(spec.collective),
               plan::to_string(spec.algorithm), spec.ranks, proof.messages);
  }
  if (options.simulate) print_simulation(plan, options);
  if (options.rank >= 0) return print_rank(&plan, spec, options.rank);
  if (!options.format.empty() || (!options.verify && !options.simulate))
    print(plan, options.format);
}

}  // namespace

void add_plan(CLI::App& app) {
  auto* command = app.add_subcommand("plan", "shows, proves and simulates an algorithm's program");
  auto options = std::make_shared<Options>();
  Options& o = *options;
  command->add_option("--algo", o.algorithm, "ring, tree, halving-doubling, one-shot, two-shot")
      ->capture_default_str();
  command
      ->add_option("--collective", o.collective,
                   "allReduce, reduceScatter, allGather, broadcast, reduce, barrier")
      ->capture_default_str();
  command->add_option("-n,--ranks", o.ranks, "how many ranks")->capture_default_str();
  command->add_option("--root", o.root, "of broadcast and reduce")->capture_default_str();
  command->add_option("--rank", o.rank, "show this rank's program only")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--format", o.format, "text, json or dot (Graphviz)")
      ->check(CLI::IsMember({"text", "json", "dot"}));
  command->add_option("--load", o.load, "a plan as JSON from this file (- for stdin); proved first")
      ->excludes("--algo", "--collective", "--ranks", "--root");
  command->add_flag("--verify", o.verify, "prove it by symbolic execution");
  command->add_flag("--simulate", o.simulate, "predict its time from the costs below");
  command->add_option("--alpha", o.alpha, "latency of a message")->capture_default_str();
  command->add_option("--overhead", o.overhead, "that a message keeps its link busy besides")
      ->capture_default_str();
  command->add_option("--bandwidth", o.bandwidth, "of a link, GB/s each way")
      ->capture_default_str();
  command->add_option("--reduce-bandwidth", o.reduce_bandwidth,
                      "of combining, GB/s; without it combining takes no time");
  command
      ->add_option("--links", o.links,
                   "port: a rank sends and receives one message at a time; pair: a link a pair")
      ->check(CLI::IsMember({"port", "pair"}))
      ->capture_default_str();
  command->add_option("--size", o.size, "of the full vector, bytes (K, M, G)")
      ->capture_default_str();
  command->footer(kExamples);
  command->callback([options] { run(*options); });
}

}  // namespace gdrx::tools
