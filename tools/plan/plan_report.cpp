// SPDX-License-Identifier: Apache-2.0
#include "tools/plan/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gdrx/plan_text.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::tools {
namespace {

constexpr std::size_t kShownPath = 24;  // ops of a critical path: enough to see its pattern

const plan::Op& op_of(const plan::Plan& plan, const plan::Moment& at) {
  return plan.ranks[static_cast<std::size_t>(index(at.rank))].channels[at.channel][at.op];
}

void print_path(const plan::Plan& plan, const std::vector<plan::Moment>& path) {
  fmt::print("critical path, {} ops, from and to in us:\n", path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path.size() > kShownPath && i == kShownPath / 2) {
      fmt::print("  ... {} more\n", path.size() - kShownPath);
      i += path.size() - kShownPath;
    }
    const plan::Moment& at = path[i];
    fmt::print("  {:>10.3f} {:>10.3f}  rank {} channel {} op {}: {}\n", at.begin_us, at.end_us,
               index(at.rank), at.channel, at.op, plan::to_text(op_of(plan, at)));
  }
}

}  // namespace

void print_proof(const plan::Plan& plan, const plan::Proof& proof) {
  fmt::print("{} {}, {} ranks: holds; {} messages\n", to_string(plan.spec.collective),
             plan::to_string(plan.spec.algorithm), plan.spec.ranks, proof.messages);
}

void print_prediction(const plan::Plan& plan, Bytes size, const plan::Prediction& prediction) {
  const auto [first, last] =
      std::minmax_element(prediction.finish_us.begin(), prediction.finish_us.end());
  fmt::print("simulated, not measured: {} {} of {} bytes, {} ranks: {:.3f} us\n",
             to_string(plan.spec.collective), plan::to_string(plan.spec.algorithm), size,
             plan.spec.ranks, prediction.time_us);
  fmt::print("ranks finish between {:.3f} and {:.3f} us; {} messages, {:.0f} bytes on links\n",
             *first, *last, prediction.messages, prediction.bytes);
  print_path(plan, prediction.critical_path);
}

void print_json(const plan::Plan& plan, Bytes size, const plan::Prediction& prediction) {
  using nlohmann::ordered_json;
  auto path = ordered_json::array();
  for (const plan::Moment& at : prediction.critical_path) {
    path.push_back(ordered_json{{"rank", index(at.rank)},
                                {"channel", at.channel},
                                {"op", at.op},
                                {"begin_us", at.begin_us},
                                {"end_us", at.end_us},
                                {"text", plan::to_text(op_of(plan, at))}});
  }
  const ordered_json all{{"simulated", true},
                         {"collective", to_string(plan.spec.collective)},
                         {"algorithm", plan::to_string(plan.spec.algorithm)},
                         {"ranks", plan.spec.ranks},
                         {"size", size},
                         {"time_us", prediction.time_us},
                         {"messages", prediction.messages},
                         {"bytes_on_links", prediction.bytes},
                         {"finish_us", prediction.finish_us},
                         {"critical_path", path}};
  fmt::print("{}\n", all.dump(2));
}

void print_comparison(const plan::Spec& spec, Bytes size, std::vector<Compared> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Compared& a, const Compared& b) {
    return a.prediction.time_us < b.prediction.time_us;
  });
  fmt::print("simulated, not measured: {} of {} bytes, {} ranks\n", to_string(spec.collective),
             size, spec.ranks);
  fmt::print("{:<17} {:>12} {:>10} {:>16}\n", "ALGORITHM", "US", "MESSAGES", "BYTES ON LINKS");
  for (const Compared& row : rows) {
    fmt::print("{:<17} {:>12.3f} {:>10} {:>16.0f}\n", plan::to_string(row.algorithm),
               row.prediction.time_us, row.prediction.messages, row.prediction.bytes);
  }
}

}  // namespace gdrx::tools
