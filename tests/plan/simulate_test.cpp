// SPDX-License-Identifier: Apache-2.0
// The simulator against closed forms. Sources:
//   [TRG] Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
//   MPICH,
//         IJHPCA 19(1), 2005 (ring, binomial tree, recursive halving and doubling)
//   [PY]  Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
//         JPDC 69(2), 2009 (the ring's optimality, the lower bound)
//   [SST] Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and
//         scan, Parallel Computing 35(12), 2009
//   [LGP] Alexandrov et al.: LogGP, SPAA 1995 (messages that leave one after another share one
//         latency: one-shot, two-shot)
#include "gdrx/plan_simulate.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace gdrx::plan {
namespace {

constexpr Bytes kSize = 1 << 20;
constexpr double kS = static_cast<double>(kSize);
constexpr double kAlpha = 2;
constexpr double kBeta = 1e-3 / 50;  // 50 GB/s
constexpr double kGamma = 1e-3 / 400;

Costs costs(double gamma = kGamma, Links links = Links::port) {
  Costs costs;
  costs.alpha_us = kAlpha;
  costs.beta_us = kBeta;
  costs.gamma_us = gamma;
  costs.links = links;
  return costs;
}

Prediction predict(Collective collective, Algorithm algorithm, std::int32_t n,
                   const Costs& with = costs(), Bytes size = kSize) {
  const auto plan = build({collective, algorithm, n, Rank{}});
  if (!plan) throw std::runtime_error(plan.error().what);
  const auto prediction = simulate(*plan, size, with);
  if (!prediction) throw std::runtime_error(prediction.error().what);
  return *prediction;
}

double time_of(Collective collective, Algorithm algorithm, std::int32_t n,
               const Costs& with = costs()) {
  return predict(collective, algorithm, n, with).time_us;
}

void expect_near(double got, double wanted, std::int32_t n) {
  EXPECT_NEAR(got, wanted, 1e-9 * wanted + 1e-9) << "n=" << n;
}

TEST(Simulator, GivesTheRingItsClosedForm) {
  for (std::int32_t n = 2; n <= 33; ++n) {
    const double chunk = kS / n;
    const double hop = kAlpha + chunk * kBeta;
    // [TRG] 2(n-1) alpha + 2(n-1)/n S beta + (n-1)/n S gamma
    expect_near(time_of(Collective::all_reduce, Algorithm::ring, n),
                2 * (n - 1) * hop + (n - 1) * chunk * kGamma, n);
    expect_near(time_of(Collective::reduce_scatter, Algorithm::ring, n),
                (n - 1) * (hop + chunk * kGamma), n);
    expect_near(time_of(Collective::all_gather, Algorithm::ring, n), (n - 1) * hop, n);
    // A chain that is not pipelined: n - 1 hops of the whole vector.
    expect_near(time_of(Collective::broadcast, Algorithm::ring, n), (n - 1) * (kAlpha + kS * kBeta),
                n);
  }
}

TEST(Simulator, GivesTheBinomialTreeItsClosedForm) {
  for (std::int32_t log = 1; log <= 6; ++log) {
    const std::int32_t n = 1 << log;
    // [TRG] log2(n) (alpha + S beta), and gamma for a reduction
    expect_near(time_of(Collective::broadcast, Algorithm::tree, n), log * (kAlpha + kS * kBeta), n);
    expect_near(time_of(Collective::reduce, Algorithm::tree, n),
                log * (kAlpha + kS * kBeta + kS * kGamma), n);
  }
}

TEST(Simulator, GivesTheDoubleTreeItsClosedForm) {
  for (std::int32_t log = 1; log <= 6; ++log) {
    const std::int32_t n = 1 << log;
    const double half = kS / 2;
    // [SST] log2(n) levels up and down, half of the vector in each tree; every inner node but the
    // root combines two children. A link for each pair, so that siblings do not meet.
    expect_near(time_of(Collective::all_reduce, Algorithm::tree, n, costs(kGamma, Links::pair)),
                2 * log * (kAlpha + half * kBeta) + (2 * log - 1) * half * kGamma, n);
  }
}

TEST(Simulator, GivesHalvingDoublingItsClosedForm) {
  for (std::int32_t log = 1; log <= 6; ++log) {
    const std::int32_t n = 1 << log;
    const double moved = kS * (n - 1) / n;
    // [TRG] 2 log2(n) alpha + 2(n-1)/n S beta + (n-1)/n S gamma
    expect_near(time_of(Collective::all_reduce, Algorithm::halving_doubling, n),
                2 * log * kAlpha + 2 * moved * kBeta + moved * kGamma, n);
  }
}

TEST(Simulator, GivesDirectAlgorithmsTheirClosedForms) {
  for (std::int32_t n = 2; n <= 33; ++n) {
    const double chunk = kS / n;
    // [LGP] one latency, and n - 1 messages one after another through the port. Without gamma: the
    // overlap of combining with receiving depends on the rank.
    expect_near(time_of(Collective::all_reduce, Algorithm::one_shot, n, costs(0)),
                kAlpha + (n - 1) * kS * kBeta, n);
    expect_near(time_of(Collective::all_reduce, Algorithm::two_shot, n, costs(0)),
                2 * kAlpha + 2 * (n - 1) * chunk * kBeta, n);
    expect_near(time_of(Collective::all_gather, Algorithm::one_shot, n, costs(0)),
                kAlpha + (n - 1) * chunk * kBeta, n);
    expect_near(time_of(Collective::reduce, Algorithm::one_shot, n, costs(0, Links::pair)),
                kAlpha + kS * kBeta, n);
    expect_near(time_of(Collective::all_reduce, Algorithm::one_shot, n, costs(0, Links::pair)),
                kAlpha + kS * kBeta, n);
  }
}

TEST(Simulator, ChargesOverheadToEveryMessageOfALink) {
  Costs with = costs(0);
  with.overhead_us = 0.5;
  expect_near(time_of(Collective::all_reduce, Algorithm::one_shot, 8, with),
              kAlpha + 7 * (0.5 + kS * kBeta), 8);
}

TEST(Simulator, NeverBeatsTheBandwidthBoundOfOnePort) {
  for (const Algorithm algorithm : algorithms_of(Collective::all_reduce)) {
    for (std::int32_t n = 2; n <= 33; ++n) {
      // [PY] a rank must send, and receive, 2(n-1)/n S.
      const double bound = 2 * kS * (n - 1) / n * kBeta;
      EXPECT_GE(time_of(Collective::all_reduce, algorithm, n), bound * (1 - 1e-12))
          << to_string(algorithm) << " n=" << n;
    }
  }
}

TEST(Simulator, CountsMessagesAndBytes) {
  const Prediction ring = predict(Collective::all_reduce, Algorithm::ring, 8);
  EXPECT_EQ(ring.messages, 8u * 14u);
  EXPECT_DOUBLE_EQ(ring.bytes, 14 * kS);
}

TEST(Simulator, TakesNoTimeForOneRankOrForNothing) {
  EXPECT_EQ(time_of(Collective::all_reduce, Algorithm::ring, 1), 0);
  EXPECT_DOUBLE_EQ(predict(Collective::barrier, Algorithm::tree, 2, costs(), 0).time_us,
                   2 * kAlpha);
}

TEST(Simulator, GivesACriticalPathWithoutGaps) {
  for (const Algorithm algorithm : algorithms_of(Collective::all_reduce)) {
    for (const std::int32_t n : {2, 5, 8, 12}) {
      const Prediction p = predict(Collective::all_reduce, algorithm, n);
      ASSERT_FALSE(p.critical_path.empty());
      EXPECT_EQ(p.critical_path.front().begin_us, 0) << to_string(algorithm);
      EXPECT_EQ(p.critical_path.back().end_us, p.time_us) << to_string(algorithm);
      for (std::size_t i = 1; i < p.critical_path.size(); ++i) {
        EXPECT_LE(p.critical_path[i].begin_us, p.critical_path[i - 1].end_us)
            << to_string(algorithm) << " n=" << n << " step " << i;
        EXPECT_GE(p.critical_path[i].end_us, p.critical_path[i - 1].end_us)
            << to_string(algorithm) << " n=" << n << " step " << i;
      }
    }
  }
}

TEST(Simulator, IsMonotonicInTheSize) {
  for (const Algorithm algorithm : algorithms_of(Collective::all_reduce)) {
    double before = 0;
    for (Bytes size = 1; size <= (Bytes{1} << 30); size *= 8) {
      const double now = predict(Collective::all_reduce, algorithm, 13, costs(), size).time_us;
      EXPECT_GT(now, before) << to_string(algorithm);
      before = now;
    }
  }
}

TEST(Simulator, SeesADeadlock) {
  auto plan = build({Collective::all_reduce, Algorithm::ring, 3, Rank{}});
  ASSERT_TRUE(plan);
  for (RankProgram& program : plan->ranks)
    std::swap(program.channels[0][0], program.channels[0][1]);
  const auto prediction = simulate(*plan, kSize, costs());
  ASSERT_FALSE(prediction);
  EXPECT_NE(prediction.error().what.find("waits for ever"), std::string::npos);
}

TEST(Simulator, RefusesCostsAndPeersThatAreNone) {
  auto plan = build({Collective::all_reduce, Algorithm::ring, 3, Rank{}});
  ASSERT_TRUE(plan);
  Costs with = costs();
  with.alpha_us = -1;
  EXPECT_FALSE(simulate(*plan, kSize, with));
  with.alpha_us = std::nan("");
  EXPECT_FALSE(simulate(*plan, kSize, with));
  plan->ranks[1].channels[0][0].peer = Rank{3};
  EXPECT_FALSE(simulate(*plan, kSize, costs()));
  plan->ranks[1].channels.emplace_back();
  EXPECT_FALSE(simulate(*plan, kSize, costs()));
}

}  // namespace
}  // namespace gdrx::plan
