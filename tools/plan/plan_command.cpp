// SPDX-License-Identifier: Apache-2.0
// gdrx plan: shows, proves and simulates the program that an algorithm is.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "gdrx/plan_simulate.hpp"
#include "gdrx/plan_text.hpp"
#include "gdrx/traits.hpp"
#include "tools/commands.hpp"
#include "tools/describe.hpp"
#include "tools/plan/plan_report.hpp"
#include "tools/support.hpp"
#include "tools/units.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kPlanExamples =
    "Examples:\n"
    "  gdrx plan --algo ring -n 8 --rank 0             what rank 0 of 8 does in a ring allReduce\n"
    "  gdrx plan --algo tree -n 7 --verify             proves it, and says no more\n"
    "  gdrx plan --algo two-shot -n 8 --simulate --alpha 2us --bandwidth 50 --size 1M\n"
    "                                                  predicted, not measured, time\n"
    "  gdrx plan --algo all -n 8 --simulate --size 64K  every algorithm, the fastest first\n"
    "  gdrx plan --algo ring -n 4 --format json > ring.json\n"
    "  gdrx plan --load ring.json --simulate           a plan from a file is always proved first\n"
    "  gdrx plan --collective broadcast --algo tree -n 5 --format dot > tree.dot\n"
    "With --format, stdout holds that format alone; --simulate --format json is the prediction.\n"
    "Exit status: 0, 1 if the plan does not hold or a file cannot be read, 2 for bad usage.\n";

struct PlanOptions {
  std::string collective = "allreduce";
  std::string algorithm = "ring";
  std::int32_t ranks = 8;
  std::int32_t root = 0;
  std::int32_t rank = -1;
  std::vector<std::int32_t> leaves;
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

// The names of the collectives that have plans of their own.
std::vector<std::string> with_plans() {
  std::vector<std::string> names;
  for (const Collective collective : plan::collectives_with_plans()) {
    names.emplace_back(to_string(collective));
  }
  return names;
}

plan::Spec spec_of(const PlanOptions& options) {
  plan::Spec spec;
  const auto collectives = plan::collectives_with_plans();
  const auto found =
      std::find_if(collectives.begin(), collectives.end(), [&](Collective collective) {
        return folded(to_string(collective)) == folded(options.collective);
      });
  if (found == collectives.end()) {
    throw Failure{kBadUsage, fmt::format("--collective does not know '{}'; it takes {}",
                                         options.collective, fmt::join(with_plans(), ", "))};
  }
  spec.collective = *found;
  const auto algorithms = plan::algorithms_of(spec.collective);
  const auto algorithm = options.algorithm == "all" ? std::optional(algorithms.front())
                                                    : plan::parse_algorithm(options.algorithm);
  if (!algorithm ||
      std::find(algorithms.begin(), algorithms.end(), *algorithm) == algorithms.end()) {
    std::string names;
    for (const plan::Algorithm a : algorithms) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", plan::to_string(a));
    }
    throw Failure{kBadUsage, fmt::format("--algo does not know '{}' for {}; it takes all, {}",
                                         options.algorithm, to_string(spec.collective), names)};
  }
  spec.algorithm = *algorithm;
  spec.ranks = options.ranks;
  spec.root = Rank{options.root};
  spec.leaves = options.leaves;
  return spec;
}

plan::Costs costs_of(const PlanOptions& options) {
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

// One rank's program alone is built without the others': at many more ranks.
void print_rank(const plan::RankProgram& program, const PlanOptions& options) {
  const std::string text = plan::to_text(program, Rank{options.rank});
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_plan(const plan::Plan& plan, const std::string& format) {
  const std::string text = format == "json"  ? plan::to_json(plan)
                           : format == "dot" ? plan::to_dot(plan)
                                             : plan::to_text(plan);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// What was asked for about one whole plan. With a format, stdout is that format alone.
void report(const plan::Plan& plan, const PlanOptions& options) {
  if (options.verify) {
    const auto proof = value_or_fail(plan::verify(plan), kFailed);
    if (options.format.empty()) print_proof(plan, proof);
  }
  if (options.simulate) {
    const Bytes size = value_or_fail(parse_size("--size", options.size));
    const auto prediction = value_or_fail(plan::simulate(plan, size, costs_of(options)), kFailed);
    if (options.format == "json") return print_json(plan, size, prediction);
    print_prediction(plan, size, prediction);
  }
  if (options.rank >= 0) {
    return print_rank(plan.ranks[static_cast<std::size_t>(options.rank)], options);
  }
  const bool asked = !options.format.empty() && !options.simulate;
  if (asked || (!options.verify && !options.simulate)) print_plan(plan, options.format);
}

// Whether one rank has an op or more for every other: else they are a logarithm's, or a few.
bool grows_with_ranks(const plan::Spec& spec) {
  return !plan::traits_of(spec.collective).rooted && spec.algorithm != plan::Algorithm::tree &&
         spec.algorithm != plan::Algorithm::halving_doubling;
}

void check_usage(const PlanOptions& options, const plan::Spec& spec) {
  // Whole plans take memory by the square of the ranks; one rank's program by the ranks, or less.
  constexpr std::int32_t kMostRanks = 1024;
  constexpr std::int32_t kMostOfOne = 1 << 20;  // some million ops
  const auto bad = [](std::string line) { throw Failure{kBadUsage, std::move(line)}; };
  if (options.rank >= spec.ranks) {
    bad(fmt::format("--rank {} is not one of {} ranks", options.rank, spec.ranks));
  }
  if (options.rank >= 0 && !options.format.empty() && options.format != "text") {
    bad(fmt::format("--rank shows text: --format {} is of whole plans", options.format));
  }
  if (options.simulate && options.format == "dot") bad("--simulate prints text or json, not dot");
  const bool whole = options.verify || options.simulate || options.rank < 0;
  if (whole && spec.ranks > kMostRanks) {
    bad(fmt::format("-n {}: whole plans end at {} ranks; --rank R shows one rank of more",
                    spec.ranks, kMostRanks));
  }
  if (grows_with_ranks(spec) && spec.ranks > kMostOfOne) {
    bad(fmt::format("-n {}: a rank's ops for {} grow with the ranks and end at {}", spec.ranks,
                    plan::to_string(spec.algorithm), kMostOfOne));
  }
}

// --algo all: what each algorithm of the collective would take, the fastest first.
void compare(const PlanOptions& options, plan::Spec spec) {
  if (!options.simulate || !options.format.empty() || options.rank >= 0 || options.verify) {
    throw Failure{kBadUsage, "--algo all compares: it takes --simulate and its costs alone"};
  }
  const Bytes size = value_or_fail(parse_size("--size", options.size));
  const plan::Costs costs = costs_of(options);
  std::vector<Compared> rows;
  for (const plan::Algorithm algorithm : plan::algorithms_of(spec.collective)) {
    spec.algorithm = algorithm;
    value_or_fail(plan::shape_of(spec));
    check_usage(options, spec);
    const auto plan = value_or_fail(plan::build(spec));
    rows.push_back({algorithm, value_or_fail(plan::simulate(plan, size, costs), kFailed)});
  }
  print_comparison(spec, size, std::move(rows));
}

// The file that a plan's error is in.
Result<plan::Plan> with_name(const std::string& file, Result<plan::Plan> plan) {
  if (!plan) plan.error().what = file + ": " + plan.error().what;
  return plan;
}

void run(const PlanOptions& options) {
  if (!options.load.empty()) {
    const auto text = value_or_fail(read_input(options.load, plan::JsonLimits{}.bytes), kFailed);
    const auto plan = value_or_fail(with_name(options.load, plan::from_json(text)), kFailed);
    check_usage(options, plan.spec);
    return report(plan, options);
  }
  if (options.algorithm == "all") return compare(options, spec_of(options));
  const plan::Spec spec = spec_of(options);
  value_or_fail(plan::shape_of(spec));
  check_usage(options, spec);
  if (options.rank >= 0 && !options.verify && !options.simulate) {
    return print_rank(value_or_fail(plan::build_rank(spec, Rank{options.rank})), options);
  }
  report(value_or_fail(plan::build(spec)), options);
}

}  // namespace

void add_plan(CLI::App& app) {
  auto* command = app.add_subcommand("plan", "shows, proves and simulates an algorithm's program");
  auto options = std::make_shared<PlanOptions>();
  PlanOptions& o = *options;
  std::vector<std::string> algorithms(plan::kAlgorithmNames.begin(), plan::kAlgorithmNames.end());
  const std::string joined = fmt::format("{}", fmt::join(algorithms, ", "));
  algorithms.emplace_back("all");
  takes_words(command->add_option("--algo", o.algorithm, joined + "; all: compares them")
                  ->capture_default_str(),
              algorithms);
  takes_words(command
                  ->add_option("--collective", o.collective,
                               fmt::format("{}", fmt::join(with_plans(), ", ")))
                  ->capture_default_str(),
              with_plans());
  command->add_option("-n,--ranks", o.ranks, "how many ranks")->capture_default_str();
  command->add_option("--root", o.root, "of broadcast and reduce")->capture_default_str();
  command->add_option("--leaves", o.leaves, "of allReduceLeaves: how many each rank holds (1)")
      ->delimiter(',');
  command->add_option("--rank", o.rank, "show this rank's program only")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--format", o.format, "text, json or dot (Graphviz)")
      ->check(CLI::IsMember({"text", "json", "dot"}));
  command->add_option("--load", o.load, "a plan as JSON from this file (- for stdin); proved first")
      ->excludes("--algo", "--collective", "--ranks", "--root", "--leaves");
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
  command->footer(kPlanExamples);
  command->callback([options] { run(*options); });
}

}  // namespace gdrx::tools
