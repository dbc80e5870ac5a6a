// SPDX-License-Identifier: Apache-2.0
// Picks an algorithm and a path by measured times or a cost model, and says why. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/comm/hierarchy.hpp"
#include "collectives/tune/tune_table.hpp"
#include "gdrx/plan.hpp"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx {

enum class PathKind : std::uint8_t { shm, fabric, gpu };

/// Where a communicator runs: the same on every rank.
struct Machine {
  int ranks = 1;
  int hosts = 1;
  int cpus = 1;               // that the ranks of one host may use together
  bool shm = false;           // every rank has mapped the arena
  bool fabric = false;        // every rank has opened the fabric
  int cma = 0;                // ranks may write each other's memory: 1: where faster, 2: always
  bool reproducible = false;  // allReduce adds in the order of ranks, whatever the size
  std::string fabric_name;
  Bytes arena_block = 256 * 1024;
  std::vector<tune::Curve> measured{};  // here, with so many ranks; empty: the model alone
  std::string measured_by{};            // "GDRX_TUNE_FILE=host.json"
  std::string measured_not{};           // why a table that was given has nothing

  /// A rank that waits keeps another from its core.
  bool share_cores() const noexcept { return ranks > cpus; }
};

struct Candidate {
  plan::Algorithm algorithm{};
  PathKind path{};
  double predicted_us = 0;
};

struct Choice {
  Candidate chosen;
  std::vector<Candidate> candidates;  // by predicted time
  bool measured = false;              // the times are of Machine::measured, all of them
};

/// Whether the algorithm that the user asked for, if any, adds in the order of ranks where it must.
Result<void> check_reproducible(bool reproducible, std::optional<plan::Algorithm> fixed);
/// Whether anything can, of any size; the same on every rank.
bool can_carry(const Machine& machine, Collective collective,
               std::optional<plan::Algorithm> fixed) noexcept;

/// What choose() is asked for a call.
struct Question {
  Collective collective{};
  Bytes bytes = 0;
  std::optional<plan::Algorithm> fixed;
  bool in_rank_order = false;
  bool in_one_block = false;  // one of those of exec/one_block.hpp
  friend bool operator==(const Question&, const Question&) = default;
};

/// `fixed`: the algorithm the user asked for. `in_rank_order`: only of those that reduce so,
/// whatever was asked for. Empty if nothing can carry the collective.
std::optional<Choice> choose(const Machine& machine, Collective collective, Bytes bytes,
                             std::optional<plan::Algorithm> fixed, bool in_rank_order = false);

/// Messages that start together, by the model: of a rank that sends, or gets, so many bytes.
double messages_us(const Machine& machine, Bytes bytes);

/// One block of shared memory, where the collective and the size are for that: before choose().
std::optional<Candidate> choose_one_block(const Machine& machine, const Question& question);

/// The same for a rail, which does the pieces one after the other: times are of all of them, and so
/// is the choice. `rail`: its ranks are hosts.
std::optional<Choice> choose_rail(const Machine& rail, const Pieces& pieces,
                                  std::optional<plan::Algorithm> fixed);

/// What the network of an exec::Rail takes for all pieces: L a + P S b, with S the bytes of a
/// rank's parts, a the latency of a message and b the time of a byte: the costs of choose() for any
/// fabric. Of H hosts: two-shot L = 2, ring 2 (H - 1), tree and halving-doubling 2 log2 H rounded
/// up; P = 2 (H - 1) / H, tree 2, halving-doubling of p < H hosts, a power of two, 2 (p - 1) / p
/// + 2. In each half of two-shot a rank posts H - 1 messages one after another, which share one
/// latency: the closed form under LogGP (Alexandrov et al., SPAA 1995), to which tests hold the
/// simulation of the plan. Pieces overlap: of several, each before the last has 512 KiB a rank at
/// least, which are on the wire for longer than the latencies of the next. The GPUs' sums, scatters
/// and gathers are not in it.
double direct_rail_us(const Machine& rail, const Pieces& pieces, plan::Algorithm algorithm);
/// Of every plan that rails may run, the quickest first.
std::vector<Candidate> direct_rail_ways(const Machine& rail, const Pieces& pieces);

/// Whether a two-shot over shared memory writes its results straight into the other processes.
bool writes_results(const Machine& machine, Bytes bytes) noexcept;

/// A candidate as a line of a table. `remark`: what stands behind its time.
std::string explain_row(const Machine& machine, const Candidate& candidate, bool chosen,
                        std::string_view remark);
/// All of them, in their order.
std::string explain_rows(const Machine& machine, const Choice& choice);
std::string explain(const Machine& machine, Collective collective, Bytes bytes,
                    const Choice& choice);
std::string_view path_name(const Machine& machine, PathKind path) noexcept;

}  // namespace gdrx
