// SPDX-License-Identifier: Apache-2.0
#include "topo/model/assign.hpp"

#include <limits>

namespace gdrx::topo {
namespace {

constexpr std::size_t kFree = std::numeric_limits<std::size_t>::max();

}  // namespace

// Kuhn 1955, in the shortest-augmenting-path form: potentials for rows and columns, one row more at
// a time. The virtual column `columns` holds the row that is being placed.
std::vector<std::size_t> assign(std::size_t rows, std::size_t columns,
                                const std::function<Weight(std::size_t, std::size_t)>& weight) {
  std::vector<Weight> row_potential(rows);
  std::vector<Weight> column_potential(columns + 1);
  std::vector<std::size_t> row_of(columns + 1, kFree);
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<Weight> slack(columns);
    std::vector<std::size_t> came_from(columns, kFree);
    std::vector<char> reached(columns, 0);
    std::vector<char> done(columns + 1, 0);
    std::size_t at = columns;
    row_of[at] = row;
    while (row_of[at] != kFree) {
      done[at] = 1;
      const std::size_t current = row_of[at];
      std::size_t next = kFree;
      for (std::size_t column = 0; column < columns; ++column) {
        if (done[column]) continue;
        const Weight reduced =
            weight(current, column) - row_potential[current] - column_potential[column];
        if (!reached[column] || reduced < slack[column]) {
          slack[column] = reduced;
          came_from[column] = at;
          reached[column] = 1;
        }
        if (next == kFree || slack[column] < slack[next]) next = column;
      }
      const Weight step = slack[next];
      for (std::size_t column = 0; column <= columns; ++column) {
        if (done[column]) {
          row_potential[row_of[column]] += step;
          column_potential[column] -= step;
        } else {
          slack[column] -= step;
        }
      }
      at = next;
    }
    while (at != columns) {
      const std::size_t before = came_from[at];
      row_of[at] = row_of[before];
      at = before;
    }
  }
  std::vector<std::size_t> column_of(rows, kFree);
  for (std::size_t column = 0; column < columns; ++column) {
    if (row_of[column] != kFree) column_of[row_of[column]] = column;
  }
  return column_of;
}

std::vector<std::size_t> balance(std::size_t agents, std::size_t targets,
                                 const std::function<Weight(std::size_t, std::size_t)>& weight) {
  // Slot k of a target costs k more: a convex load, so the smallest sum is the most even one.
  const auto slot = [&](std::size_t agent, std::size_t column) {
    Weight total = weight(agent, column % targets);
    total.of[3] += static_cast<std::int64_t>(column / targets);
    return total;
  };
  std::vector<std::size_t> chosen = assign(agents, targets * agents, slot);
  for (std::size_t& target : chosen) target %= targets;
  return chosen;
}

}  // namespace gdrx::topo
