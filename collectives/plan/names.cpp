// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "gdrx/plan.hpp"

namespace gdrx::plan {
namespace {

constexpr std::array<std::string_view, kAlgorithmCount> kNames{"ring", "tree", "halving-doubling",
                                                               "one-shot", "two-shot"};

}  // namespace

std::string_view to_string(Algorithm algorithm) noexcept {
  const auto i = static_cast<std::size_t>(algorithm);
  return i < kNames.size() ? kNames[i] : "unknown algorithm";
}

std::optional<Algorithm> parse_algorithm(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

std::span<const Algorithm> algorithms_of(Collective collective) noexcept {
  static constexpr std::array kAllReduce{Algorithm::ring, Algorithm::tree,
                                         Algorithm::halving_doubling, Algorithm::one_shot,
                                         Algorithm::two_shot};
  static constexpr std::array kReduceScatter{Algorithm::ring, Algorithm::two_shot};
  static constexpr std::array kAllGather{Algorithm::ring, Algorithm::one_shot};
  static constexpr std::array kRooted{Algorithm::ring, Algorithm::tree};
  static constexpr std::array kBarrier{Algorithm::tree, Algorithm::halving_doubling};
  switch (collective) {
    case Collective::all_reduce:
      return kAllReduce;
    case Collective::reduce_scatter:
      return kReduceScatter;
    case Collective::all_gather:
      return kAllGather;
    case Collective::broadcast:
      return kRooted;
    case Collective::reduce:
      return kRooted;
    case Collective::barrier:
      return kBarrier;
    case Collective::send_recv:
      return {};
  }
  return {};
}

}  // namespace gdrx::plan
