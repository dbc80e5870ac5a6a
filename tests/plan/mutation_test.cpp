// SPDX-License-Identifier: Apache-2.0
// Keeps the verifier honest: every plan with one mistake in it must be refused.
//
// Left out, because the plan stays right: a copy or a wait done twice (the second changes nothing),
// and two children of a tree heard in the other order (a sum that one rank makes for all is the
// same everywhere; direct algorithms promise rank order, and there it is caught).
#include <gtest/gtest.h>

#include <functional>

#include "gdrx/plan.hpp"

namespace gdrx::plan {
namespace {

bool talks(const Op& op) {
  return op.kind == OpKind::send || op.kind == OpKind::recv_copy || op.kind == OpKind::recv_reduce;
}
bool reads_source(const Op& op) { return op.kind != OpKind::recv_copy; }
bool writes(const Op& op) { return op.kind != OpKind::send && op.kind != OpKind::wait; }
bool same(ChunkRef a, ChunkRef b) {
  return a.buffer == b.buffer && a.chunk < b.chunk + b.count && b.chunk < a.chunk + a.count;
}

// b after a is not the same as a after b.
bool dependent(const Op& a, const Op& b) {
  if (a.kind == OpKind::wait || b.kind == OpKind::wait) return false;
  if (a == b) return false;
  const bool same_flow = talks(a) && talks(b) && a.peer == b.peer &&
                         (a.kind == OpKind::send) == (b.kind == OpKind::send);
  const bool flow = writes(a) && reads_source(b) && same(a.dst, b.src);
  const bool anti = writes(b) && reads_source(a) && same(b.dst, a.src);
  const bool output = writes(a) && writes(b) && same(a.dst, b.dst);
  return same_flow || flow || anti || output;
}

class Mutants {
 public:
  explicit Mutants(Plan plan) : plan_(std::move(plan)) {}

  void run() {
    for (std::size_t rank = 0; rank < plan_.ranks.size(); rank += stride_) {
      for (std::size_t channel = 0; channel < plan_.ranks[rank].channels.size(); ++channel) {
        const std::size_t ops = plan_.ranks[rank].channels[channel].size();
        for (std::size_t i = 0; i < ops; i += stride_) mutate(rank, channel, i);
      }
    }
  }
  void sample_every(std::size_t stride) { stride_ = stride; }
  std::size_t made = 0;
  std::size_t survived = 0;
  std::string first_survivor;

 private:
  void attempt(std::size_t rank, std::size_t channel, std::size_t i, const char* what,
               const std::function<void(Channel&)>& change) {
    Channel& ops = plan_.ranks[rank].channels[channel];
    const Channel original = ops;
    change(ops);
    ++made;
    if (verify(plan_)) {
      ++survived;
      if (first_survivor.empty()) {
        first_survivor = std::string(what) + " at rank " + std::to_string(rank) + " channel " +
                         std::to_string(channel) + " op " + std::to_string(i);
      }
    }
    ops = original;
  }

  void mutate(std::size_t rank, std::size_t channel, std::size_t i) {
    const Op op = plan_.ranks[rank].channels[channel][i];
    const auto at = static_cast<std::ptrdiff_t>(i);
    if (op.kind == OpKind::wait) return;
    attempt(rank, channel, i, "dropped", [&](Channel& ops) { ops.erase(ops.begin() + at); });
    if (op.kind != OpKind::copy) {
      attempt(rank, channel, i, "doubled", [&](Channel& ops) { ops.insert(ops.begin() + at, op); });
    }
    if (talks(op)) {
      attempt(rank, channel, i, "wrong peer",
              [&](Channel& ops) { ops[i].peer = Rank{(index(op.peer) + 1) % plan_.spec.ranks}; });
    }
    attempt(rank, channel, i, "finish toggled", [&](Channel& ops) { ops[i].finish = !op.finish; });
    wrong_chunk(rank, channel, i, op);
    wrong_count(rank, channel, i, op);
    wrong_kind(rank, channel, i, op);
    const Channel& ops = plan_.ranks[rank].channels[channel];
    if (i + 1 < ops.size() && dependent(ops[i], ops[i + 1]) && !same_sum(ops[i], ops[i + 1])) {
      attempt(rank, channel, i, "swapped",
              [&](Channel& changed) { std::swap(changed[i], changed[i + 1]); });
    }
  }

  bool same_sum(const Op& a, const Op& b) const {
    const auto accumulates = [](const Op& op) {
      return op.kind == OpKind::recv_reduce && same(op.src, op.dst) && !op.finish;
    };
    return !in_rank_order(plan_.spec.collective, plan_.spec.algorithm) && accumulates(a) &&
           accumulates(b) && same(a.dst, b.dst);
  }

  void wrong_chunk(std::size_t rank, std::size_t channel, std::size_t i, const Op& op) {
    if (reads_source(op) && op.src.buffer != Buffer::scratch) {
      attempt(rank, channel, i, "wrong source", [&](Channel& ops) { ++ops[i].src.chunk; });
    }
    if (writes(op) && op.dst.buffer != Buffer::scratch) {
      attempt(rank, channel, i, "wrong target", [&](Channel& ops) { ++ops[i].dst.chunk; });
    }
  }

  void wrong_count(std::size_t rank, std::size_t channel, std::size_t i, const Op& op) {
    if (reads_source(op)) {
      attempt(rank, channel, i, "source one longer", [&](Channel& ops) { ++ops[i].src.count; });
      attempt(rank, channel, i, "source one shorter", [&](Channel& ops) { --ops[i].src.count; });
    }
    if (writes(op)) {
      attempt(rank, channel, i, "target one longer", [&](Channel& ops) { ++ops[i].dst.count; });
      attempt(rank, channel, i, "target one shorter", [&](Channel& ops) { --ops[i].dst.count; });
    }
    if (reads_source(op) && writes(op)) {
      attempt(rank, channel, i, "both one longer", [&](Channel& ops) {
        ++ops[i].src.count;
        ++ops[i].dst.count;
      });
    }
  }

  void wrong_kind(std::size_t rank, std::size_t channel, std::size_t i, const Op& op) {
    OpKind other = op.kind;
    switch (op.kind) {
      case OpKind::recv_copy:
        other = OpKind::recv_reduce;
        break;
      case OpKind::recv_reduce:
        other = OpKind::recv_copy;
        break;
      case OpKind::copy:
        other = OpKind::reduce;
        break;
      case OpKind::reduce:
        other = OpKind::copy;
        break;
      case OpKind::send:
        other = OpKind::wait;
        break;
      case OpKind::wait:
        return;
    }
    attempt(rank, channel, i, "wrong kind", [&](Channel& ops) { ops[i].kind = other; });
  }

  Plan plan_;
  std::size_t stride_ = 1;
};

class MutationOf : public testing::TestWithParam<Collective> {};

TEST_P(MutationOf, EveryPlanIsCaught) {
  std::size_t made = 0;
  for (const Algorithm algorithm : algorithms_of(GetParam())) {
    for (std::int32_t n = 2; n <= 33; ++n) {
      auto plan = build({GetParam(), algorithm, n, Rank{n / 2}});
      ASSERT_TRUE(plan);
      ASSERT_TRUE(verify(*plan)) << to_string(algorithm) << " n=" << n;
      Mutants mutants(std::move(*plan));
      if (n > 10) mutants.sample_every(static_cast<std::size_t>(n / 3) * 2 + 1);
      mutants.run();
      made += mutants.made;
      EXPECT_EQ(mutants.survived, 0u)
          << to_string(algorithm) << " n=" << n << ": " << mutants.first_survivor;
    }
  }
  RecordProperty("mutants", static_cast<int>(made));
  std::printf("%zu mutants\n", made);
}

TEST(Mutation, OfPlansWithAMessageAChunkIsCaught) {
  for (std::int32_t n = 2; n <= 33; ++n) {
    auto plan = build({Collective::all_reduce, Algorithm::halving_doubling, n, Rank{}});
    ASSERT_TRUE(plan);
    for (RankProgram& program : plan->ranks) program = split_ranges(program);
    Mutants mutants(std::move(*plan));
    if (n > 10) mutants.sample_every(static_cast<std::size_t>(n / 3) * 2 + 1);
    mutants.run();
    EXPECT_EQ(mutants.survived, 0u) << "n=" << n << ": " << mutants.first_survivor;
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, MutationOf, testing::ValuesIn(collectives_with_plans()));

}  // namespace
}  // namespace gdrx::plan
