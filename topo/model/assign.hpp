// SPDX-License-Identifier: Apache-2.0
// The assignment problem with costs compared lexicographically.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

namespace gdrx::topo {

/// Weights that add up and compare element by element from the left: an ordered group, which is
/// all that the Hungarian method needs.
struct Weight {
  std::array<std::int64_t, 5> of{};
  auto operator<=>(const Weight&) const = default;
  Weight& operator+=(const Weight& other) {
    for (std::size_t i = 0; i < of.size(); ++i) of[i] += other.of[i];
    return *this;
  }
  Weight& operator-=(const Weight& other) {
    for (std::size_t i = 0; i < of.size(); ++i) of[i] -= other.of[i];
    return *this;
  }
  friend Weight operator+(Weight a, const Weight& b) { return a += b; }
  friend Weight operator-(Weight a, const Weight& b) { return a -= b; }
};

/// Gives each row its own column at the smallest sum of weights; rows <= columns. O(rows^2
/// columns).
std::vector<std::size_t> assign(std::size_t rows, std::size_t columns,
                                const std::function<Weight(std::size_t, std::size_t)>& weight);

/// Gives each of `agents` a target. weight(agent, target) counts first; then the k-th agent on one
/// target costs more than the k-1-th, which balances targets of equal weight; then `tie`.
std::vector<std::size_t> balance(std::size_t agents, std::size_t targets,
                                 const std::function<Weight(std::size_t, std::size_t)>& weight);

}  // namespace gdrx::topo
