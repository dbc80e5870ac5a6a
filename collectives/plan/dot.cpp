// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "gdrx/plan_text.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::plan {
namespace {

std::string node(std::size_t rank, std::size_t channel, std::size_t op) {
  return fmt::format("r{}c{}o{}", rank, channel, op);
}

/// Pairs the k-th send of a flow with its k-th receive.
class Edges {
 public:
  explicit Edges(const Plan& plan) {
    for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      for (std::size_t c = 0; c < plan.ranks[rank].channels.size(); ++c) {
        const Channel& channel = plan.ranks[rank].channels[c];
        for (std::size_t i = 0; i < channel.size(); ++i) add(rank, c, i, channel[i]);
      }
    }
  }

  std::string text() const {
    std::string text;
    for (const auto& [flow, ends] : flows_) {
      for (std::size_t k = 0; k < std::min(ends.sends.size(), ends.receives.size()); ++k) {
        text += fmt::format("  {} -> {} [style=dashed, constraint=false, color=blue];\n",
                            ends.sends[k], ends.receives[k]);
      }
    }
    return text;
  }

 private:
  struct Ends {
    std::vector<std::string> sends;
    std::vector<std::string> receives;
  };

  void add(std::size_t rank, std::size_t channel, std::size_t i, const Op& op) {
    const auto self = static_cast<std::int32_t>(rank);
    switch (op.kind) {
      case OpKind::send:
        flows_[{self, index(op.peer), channel}].sends.push_back(node(rank, channel, i));
        break;
      case OpKind::recv_copy:
      case OpKind::recv_reduce:
        flows_[{index(op.peer), self, channel}].receives.push_back(node(rank, channel, i));
        break;
      case OpKind::copy:
      case OpKind::reduce:
      case OpKind::wait:
        break;
    }
  }

  std::map<std::tuple<std::int32_t, std::int32_t, std::size_t>, Ends> flows_;
};

}  // namespace

std::string to_dot(const Plan& plan) {
  std::string text = fmt::format(
      "digraph plan {{\n  label=\"{} {}, {} ranks\";\n  labelloc=t;\n"
      "  node [shape=box, fontname=monospace, fontsize=10];\n",
      gdrx::to_string(plan.spec.collective), to_string(plan.spec.algorithm), plan.spec.ranks);
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    text += fmt::format("  subgraph cluster_{0} {{\n    label=\"rank {0}\";\n", rank);
    for (std::size_t c = 0; c < plan.ranks[rank].channels.size(); ++c) {
      const Channel& channel = plan.ranks[rank].channels[c];
      for (std::size_t i = 0; i < channel.size(); ++i) {
        text += fmt::format("    {} [label=\"{}\"];\n", node(rank, c, i), to_text(channel[i]));
        if (i > 0) text += fmt::format("    {} -> {};\n", node(rank, c, i - 1), node(rank, c, i));
      }
    }
    text += "  }\n";
  }
  return text + Edges(plan).text() + "}\n";
}

}  // namespace gdrx::plan
