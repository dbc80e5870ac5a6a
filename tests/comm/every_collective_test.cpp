// SPDX-License-Identifier: Apache-2.0
// Every row of collectives.def by its C function, with each algorithm, against what the verifier
// has proven of its plan. A new row is tested by itself.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/plan/interpreter.hpp"
#include "gdrx/plan.hpp"
#include "gdrx/traits.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

using plan::Extent;

constexpr std::array<std::size_t, 5> kCounts{0, 1, 7, 1009, 65'537};

struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
};
using Call = std::function<gdrxResult_t(const Buffers&, int root, gdrxComm_t)>;

// Of floats, and a sum, for the arguments that a row's function may have.
Call call_of(gdrxResult_t (*f)(const void*, void*, size_t, gdrxDataType_t, gdrxComm_t, gdrxStream_t,
                               gdrxRequest_t*)) {
  return [f](const Buffers& b, int, gdrxComm_t comm) {
    return f(b.input, b.output, b.count, gdrxFloat32, comm, nullptr, nullptr);
  };
}
Call call_of(gdrxResult_t (*f)(const void*, void*, size_t, gdrxDataType_t, int, gdrxComm_t,
                               gdrxStream_t, gdrxRequest_t*)) {
  return [f](const Buffers& b, int root, gdrxComm_t comm) {
    return f(b.input, b.output, b.count, gdrxFloat32, root, comm, nullptr, nullptr);
  };
}
Call call_of(gdrxResult_t (*f)(const void*, void*, size_t, gdrxDataType_t, gdrxRedOp_t, gdrxComm_t,
                               gdrxStream_t, gdrxRequest_t*)) {
  return [f](const Buffers& b, int, gdrxComm_t comm) {
    return f(b.input, b.output, b.count, gdrxFloat32, gdrxSum, comm, nullptr, nullptr);
  };
}
Call call_of(gdrxResult_t (*f)(const void*, void*, size_t, gdrxDataType_t, gdrxRedOp_t, int,
                               gdrxComm_t, gdrxStream_t, gdrxRequest_t*)) {
  return [f](const Buffers& b, int root, gdrxComm_t comm) {
    return f(b.input, b.output, b.count, gdrxFloat32, gdrxSum, root, comm, nullptr, nullptr);
  };
}

struct Tested {
  Collective what{};
  Call call;
};
const std::vector<Tested>& rows() {
  static const std::vector<Tested> all{
#define GDRX_COLLECTIVE_BY_HAND(...)  // api_test and parts_test
#define GDRX_COLLECTIVE(value, Function, ...) {Collective::value, call_of(&gdrx##Function)},
#include "gdrx/collectives.def"
  };
  return all;
}

// Whose contributions an output chunk is the sum of, and which chunks of their inputs.
using Sources = std::vector<std::pair<int, std::size_t>>;

// Of each chunk of a rank's output; none: it has no output. A vector that is not made of blocks is
// looked at where it is one chunk: whatever cuts it gives each part the same.
std::optional<std::vector<Sources>> proven(Collective what, int ranks, int rank, int root) {
  const plan::CollectiveTraits& traits = plan::traits_of(what);
  if (plan::elements(traits.output, 1, ranks, rank == root) == 0) return std::nullopt;
  const auto blocks = traits.is_all(traits.output) ? static_cast<std::size_t>(ranks) : 1;
  std::vector<Sources> chunks(blocks);
  if (traits.by_messages()) {
    for (std::size_t c = 0; c < blocks; ++c) {
      const auto block = traits.is_all(traits.input) ? static_cast<std::size_t>(rank) : 0;
      chunks[c] = {{traits.is_all(traits.output) ? static_cast<int>(c) : root, block}};
    }
    return chunks;
  }
  const auto plan = plan::build({what, plan::algorithms_of(what).front(), ranks, Rank{root}});
  EXPECT_TRUE(plan && plan::verify(*plan));
  plan::Interpreter interpreter(*plan, false);
  EXPECT_TRUE(interpreter.run());
  for (std::size_t c = 0; c < blocks; ++c) {
    const auto id =
        interpreter.value(rank, {plan::Buffer::output, static_cast<std::uint32_t>(c), 0});
    if (id == plan::kUndefined) return std::nullopt;
    chunks[c] = interpreter.expressions().evaluate(
        id,
        [](int source, std::uint32_t chunk) {
          return Sources{{source, chunk}};
        },
        [](Sources a, const Sources& b) {
          a.insert(a.end(), b.begin(), b.end());
          return a;
        });
  }
  return chunks;
}

std::vector<float> input_of(int rank, std::uint64_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

std::vector<float> sum_of(const std::vector<Sources>& chunks, std::size_t count) {
  std::vector<float> out(chunks.size() * count, 0.0F);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    for (const auto& [source, chunk] : chunks[c]) {
      for (std::size_t i = 0; i < count; ++i) {
        out[c * count + i] += value_of(source, chunk * count + i);
      }
    }
  }
  return out;
}

struct Way {
  const char* algorithm;
  const char* transport;
};

class EveryCollective : public testing::TestWithParam<std::tuple<int, Way>> {
 protected:
  static void run(const World& world, const Tested& tested, int root, std::size_t count) {
    const plan::CollectiveTraits& traits = plan::traits_of(tested.what);
    const int ranks = world.size();
    world.run([&](int rank, gdrxComm_t comm) {
      const auto room = [&](Extent extent) {
        return plan::elements(extent, count, ranks, rank == root);
      };
      const auto chunks = proven(tested.what, ranks, rank, root);
      const std::vector<float> in = input_of(rank, room(traits.input));
      std::vector<float> out(room(traits.output), -1.0F);
      const std::vector<float> expected = chunks ? sum_of(*chunks, count) : out;
      const auto call = [&](const void* input, void* output) {
        ASSERT_EQ(tested.call({input, output, count}, root, comm), gdrxSuccess)
            << gdrxGetLastError(comm);
      };
      call(in.data(), out.data());
      EXPECT_EQ(out, expected) << "rank " << rank << ", root " << root << ", count " << count;
      EXPECT_EQ(in, input_of(rank, in.size())) << "the input was changed";
      if (traits.input != traits.output) return;
      out = in;
      call(out.data(), out.data());
      EXPECT_EQ(out, chunks ? expected : in) << "in place, rank " << rank << ", count " << count;
    });
  }
};

TEST_P(EveryCollective, GivesWhatItsPlanIsProvenToGive) {
  const auto [ranks, way] = GetParam();
  const World world(ranks, with(way.algorithm, way.transport));
  for (const Tested& tested : rows()) {
    SCOPED_TRACE(plan::function_of(tested.what));
    const int roots = plan::traits_of(tested.what).rooted ? ranks : 1;
    for (int root = 0; root < roots; ++root) {
      for (const std::size_t count : kCounts) run(world, tested, root, count);
    }
  }
}

std::vector<Way> ways() {
  std::vector<Way> all{{"auto", "shm"}, {"auto", "ucx"}};
  for (const std::string_view name : plan::kAlgorithmNames) {
    for (const char* transport : {"shm", "ucx"}) all.push_back({name.data(), transport});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ways, EveryCollective,
                         testing::Combine(testing::Values(1, 2, 3, 5), testing::ValuesIn(ways())),
                         [](const auto& info) {
                           const Way way = std::get<1>(info.param);
                           std::string name = std::to_string(std::get<0>(info.param)) + "_" +
                                              way.algorithm + "_" + way.transport;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Ranks of another version know a row by its number.
TEST(Collectives, KeepTheirNumbers) {
  constexpr std::array kInOrder{
      "allReduce", "reduceScatter", "allGather", "broadcast",  "reduce",         "barrier",
      "sendRecv",  "allToAll",      "gather",    "scatter",    "scan",           "exscan",
      "allToAllv", "gatherv",       "scatterv",  "allGatherv", "reduceScatterv", "allReduceLeaves"};
  for (std::size_t i = 0; i < kInOrder.size(); ++i) {
    EXPECT_EQ(to_string(static_cast<Collective>(i)), kInOrder[i]);
  }
  constexpr std::array kAlgorithms{"ring", "tree", "halving-doubling", "one-shot", "two-shot"};
  for (std::size_t i = 0; i < kAlgorithms.size(); ++i) {
    EXPECT_EQ(to_string(static_cast<plan::Algorithm>(i)), kAlgorithms[i]);
  }
}

}  // namespace
}  // namespace gdrx::test
