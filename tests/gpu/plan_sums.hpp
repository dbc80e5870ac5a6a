// SPDX-License-Identifier: Apache-2.0
// What a plan's own result is, bit by bit: the reduction expressions that verify() proves, of
// floats.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

#include "collectives/plan/interpreter.hpp"
#include "gdrx/plan.hpp"

namespace gdrx::gpu {

/// Sums of these depend on their order in nearly every element.
inline std::vector<float> noise(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::uniform_real_distribution<float> exponent(-12, 12);
  std::vector<float> values(count);
  for (float& value : values) {
    value = std::exp2(exponent(random)) * (random() % 2 == 0 ? 1.0F : -1.0F);
  }
  return values;
}

/// By position, of what is by rank.
inline std::vector<std::vector<float>> in_order(const std::vector<std::vector<float>>& by_rank,
                                                std::span<const std::int32_t> ranks) {
  std::vector<std::vector<float>> by_position;
  for (const std::int32_t rank : ranks) {
    by_position.push_back(by_rank[static_cast<std::size_t>(rank)]);
  }
  return by_position;
}

/// The all-reduce of `inputs`, by the plan's positions, of which chunk c is the c-th of equal
/// parts.
inline std::vector<float> sums_by_plan(plan::Algorithm algorithm,
                                       const std::vector<std::vector<float>>& inputs) {
  const auto proven = [](auto result) {
    if (result) return;
    std::fprintf(stderr, "%s\n", describe(result.error()).c_str());
    std::abort();
  };
  const auto made = plan::build(
      {Collective::all_reduce, algorithm, static_cast<std::int32_t>(inputs.size()), Rank{}});
  proven(made);
  proven(plan::verify(*made));
  plan::Interpreter interpreter(*made, false);
  proven(interpreter.run());
  const std::size_t part = inputs[0].size() / made->shape.output_chunks;
  std::vector<float> sums;
  for (std::uint32_t chunk = 0; chunk < made->shape.output_chunks; ++chunk) {
    const plan::ExpressionId sum = interpreter.value(0, {plan::Buffer::output, chunk, 0});
    for (std::size_t i = 0; i < part; ++i) {
      sums.push_back(interpreter.expressions().evaluate(
          sum,
          [&](std::int32_t position, std::uint32_t of) {
            return inputs[static_cast<std::size_t>(position)][of * part + i];
          },
          [](float a, float b) { return a + b; }));
    }
  }
  return sums;
}

}  // namespace gdrx::gpu
