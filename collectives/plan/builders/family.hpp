// SPDX-License-Identifier: Apache-2.0
// What a file of this folder says of a collective: its algorithms, a row each, and what must hold
// at their end. build.cpp and verify.cpp read it.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/plan/expression.hpp"
#include "gdrx/plan.hpp"
#include "gdrx/plan_effort.hpp"

namespace gdrx::plan {

class Interpreter;

namespace builders {

/// The program of one rank.
using Builder = RankProgram (*)(const Spec& spec, std::int32_t rank);

template <RankProgram (*kBuild)(std::int32_t n, std::int32_t rank)>
RankProgram no_root(const Spec& spec, std::int32_t rank) {
  return kBuild(spec.ranks, rank);
}
template <RankProgram (*kBuild)(std::int32_t n, std::int32_t rank, std::int32_t root)>
RankProgram at_root(const Spec& spec, std::int32_t rank) {
  return kBuild(spec.ranks, rank, index(spec.root));
}

/// How many chunks a vector of `n` ranks has.
using Chunks = std::int32_t (*)(std::int32_t n) noexcept;
inline std::int32_t one(std::int32_t) noexcept { return 1; }
inline std::int32_t two(std::int32_t) noexcept { return 2; }
inline std::int32_t each(std::int32_t n) noexcept { return n; }

/// What it costs `n` ranks: messages one after another, bytes sent, bytes added.
using Cost = Effort (*)(double n);
inline double rounds(double n) { return std::ceil(std::log2(n)); }
inline Effort once_around(double n) { return {n - 1, (n - 1) / n, 1}; }
inline Effort twice_around(double n) { return {2 * (n - 1), 2 * (n - 1) / n, 1}; }
inline Effort in_a_chain(double n) { return {n - 1, 1, 1}; }
inline Effort up_and_down(double n) { return {2 * rounds(n), 2, 2}; }
inline Effort by_halves(double n) { return {2 * rounds(n), 2 * (n - 1) / n, 1}; }
inline Effort one_by_one(double n) { return {n - 1, n - 1, n}; }
inline Effort all_at_once(double n) { return {1, n - 1, n}; }

enum class Order : std::uint8_t {
  any,       // of reduction
  of_ranks,  // absolute, whatever the size
};

/// An algorithm of a collective.
struct Row {
  Algorithm algorithm;
  Builder build;
  Cost cost;
  Order order = Order::any;
  Chunks chunks = one;  // buffers with a block for each rank have a chunk a block
  std::uint32_t channels = 1;
};

/// A chunk of a rank's output after a run, to be asked what it holds.
class Ending {
 public:
  Ending(const Plan& plan, Interpreter& interpreter, std::int32_t of_rank, std::uint32_t of_chunk);

  /// The contribution of `source` to `its_chunk`, and no other.
  bool is(std::int32_t source, std::uint32_t its_chunk) const;
  /// 0 (op) 1 (op) ... (op) count - 1, in this order, of this chunk.
  bool is_sum_of_first(std::int32_t count) const;
  /// Every rank's contribution to `its_chunk`, once each, in the order of the algorithm's row.
  bool is_sum(std::uint32_t its_chunk) const;
  /// Every leaf of this chunk, along their tree.
  bool is_tree_of_leaves() const;
  /// The same reduction on every rank, so the same bits: is_sum on rank 0, and elsewhere as there.
  bool is_same_sum() const;

  const std::int32_t rank;
  const std::uint32_t chunk;
  const std::int32_t ranks;
  const std::int32_t root;

 private:
  const Plan& plan_;
  Interpreter& interpreter_;
  ExpressionId got_;
};

/// A collective that has plans of its own.
struct Family {
  /// `rows` outlive it.
  template <std::size_t kRows>
  constexpr Family(Collective its, const std::array<Row, kRows>& its_rows,
                   bool (*must_hold)(const Ending&), bool first_gets_nothing = false)
      : collective(its), rows(its_rows), holds(must_hold), first_has_none(first_gets_nothing) {
    static_assert(kRows <= kAlgorithmNames.size());
    for (std::size_t i = 0; i < kRows; ++i) algorithms[i] = its_rows[i].algorithm;
  }

  Collective collective;
  std::span<const Row> rows;
  std::array<Algorithm, kAlgorithmNames.size()> algorithms{};  // of the rows
  bool (*holds)(const Ending& ending);  // of each chunk of each rank that has an output
  bool first_has_none;                  // rank 0 has no output: a single rank does nothing
};

/// One for each row of collectives.def that names its own plans; others have none.
namespace families {
#define GDRX_COLLECTIVE(value, ...) extern const Family value;
#include "gdrx/collectives.def"
}  // namespace families

}  // namespace builders

/// Whose plans run `collective`; where that is another, its family's rows are not its own.
const builders::Family* family_of(Collective collective) noexcept;

}  // namespace gdrx::plan
