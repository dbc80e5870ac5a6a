// SPDX-License-Identifier: Apache-2.0
// The strict reader: everything that the writer would not write is an error that says where.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "collectives/plan/json_guard.hpp"
#include "collectives/plan/leaf_tree.hpp"
#include "collectives/plan/words.hpp"
#include "gdrx/plan_text.hpp"

namespace gdrx::plan {
namespace {

using nlohmann::json;

// plan > programs > rank > channels > channel > op > chunk
constexpr int kDeepest = 7;

tl::unexpected<Error> bad(const std::string& where, const std::string& what) {
  return fail(Errc::invalid_argument, fmt::format("plan JSON: {}: {}", where, what));
}

Result<json> parse(std::string_view text, const JsonLimits& limits) {
  // An op with all that it can have is 30 events; a rank and the plan have few besides.
  const std::size_t events = 32 * limits.ops + 64 * static_cast<std::size_t>(limits.ranks) + 64;
  auto parsed = parse_guarded(text, {events, kDeepest});
  if (!parsed) return bad(parsed.error().where, parsed.error().why);
  return *std::move(parsed);
}

/// An object whose every key must be asked for, once.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  Result<void> only(std::initializer_list<std::string_view> known) const {
    if (!object_.is_object()) return bad(where_, "an object is expected");
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        return bad(where_, "unknown key " + shown(key));
      }
    }
    return {};
  }
  bool has(const char* key) const { return object_.contains(key); }

  Result<std::uint32_t> number(const char* key, std::uint32_t least, std::uint32_t most) const {
    if (!has(key)) return missing(key);
    const json& value = object_[key];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
        value.get<std::uint64_t>() > most) {
      return bad(where_, fmt::format("{} is not a whole number from {} to {}", key, least, most));
    }
    return value.get<std::uint32_t>();
  }
  Result<bool> flag(const char* key) const {
    if (!has(key)) return false;
    if (!object_[key].is_boolean()) return bad(where_, fmt::format("{} is not true or false", key));
    return object_[key].get<bool>();
  }
  /// What `find` makes of a name.
  template <class Find>
  auto name(const char* key, Find find) const -> Result<typename decltype(find(""))::value_type> {
    if (!has(key)) return missing(key);
    if (!object_[key].is_string()) return bad(where_, fmt::format("{} is not a string", key));
    const auto& text = object_[key].get_ref<const std::string&>();
    const auto found = find(std::string_view(text));
    if (!found) return bad(where_, fmt::format("{} knows no {}", key, shown(text)));
    return *found;
  }
  Result<const json*> array(const char* key, std::size_t size) const {
    const json* list = GDRX_TRY(array(key));
    if (list->size() != size) {
      return bad(where_, fmt::format("{} has {} parts, {} are expected", key, list->size(), size));
    }
    return list;
  }
  Result<const json*> object(const char* key) const {
    if (!has(key)) return missing(key);
    return &object_[key];
  }
  const std::string& where() const { return where_; }

 private:
  tl::unexpected<Error> missing(const char* key) const {
    return bad(where_, fmt::format("{} is missing", key));
  }
  Result<const json*> array(const char* key) const {
    if (!has(key)) return missing(key);
    if (!object_[key].is_array()) return bad(where_, fmt::format("{} is not a list", key));
    return &object_[key];
  }

  const json& object_;
  std::string where_;
};

constexpr std::uint64_t kMostChunks =
    1 << 22;  // of all ranks' inputs: the proof has a value for each
constexpr std::uint32_t kAny = std::numeric_limits<std::int32_t>::max();

Result<ChunkRef> read_chunk(const Fields& op, const char* key) {
  const Fields fields(*GDRX_TRY(op.object(key)), op.where() + " " + key);
  GDRX_TRY(fields.only({"buffer", "chunk", "count", "like"}));
  ChunkRef chunk;
  chunk.buffer = GDRX_TRY(fields.name(
      "buffer", [](std::string_view name) { return find_name<Buffer>(kBufferNames, name); }));
  chunk.chunk = GDRX_TRY(fields.number("chunk", 0, kAny));
  if (fields.has("count")) chunk.count = GDRX_TRY(fields.number("count", 1, kAny));
  if (fields.has("like")) chunk.like = GDRX_TRY(fields.number("like", 0, kAny));
  return chunk;
}

class Reader {
 public:
  explicit Reader(const JsonLimits& limits) : limits_(limits) {}

  Result<Plan> read(const json& root) {
    const Fields fields(root, "plan");
    GDRX_TRY(fields.only({"gdrx_plan", "collective", "algorithm", "ranks", "root", "leaves",
                          "input_chunks", "output_chunks", "channels", "credits", "programs"}));
    GDRX_TRY(fields.number("gdrx_plan", kJsonVersion, kJsonVersion));
    Plan plan;
    plan.spec.collective = GDRX_TRY(fields.name("collective", parse_collective));
    plan.spec.algorithm = GDRX_TRY(fields.name("algorithm", parse_algorithm));
    const std::uint32_t ranks =
        GDRX_TRY(fields.number("ranks", 1, static_cast<std::uint32_t>(limits_.ranks)));
    plan.spec.ranks = static_cast<std::int32_t>(ranks);
    plan.spec.root = Rank{static_cast<std::int32_t>(GDRX_TRY(fields.number("root", 0, ranks - 1)))};
    if (fields.has("leaves")) plan.spec.leaves = GDRX_TRY(read_leaves(fields, ranks));
    plan.shape.input_chunks = GDRX_TRY(fields.number("input_chunks", 1, kAny));
    plan.shape.output_chunks = GDRX_TRY(fields.number("output_chunks", 1, kAny));
    plan.shape.channels = GDRX_TRY(fields.number("channels", 1, kAny));
    plan.shape.credits = GDRX_TRY(fields.number("credits", 1, kAny));
    const auto known = shape_of(plan.spec);
    if (!known) return bad("plan", known.error().what);
    if (std::uint64_t{known->input_chunks} * ranks > kMostChunks) {
      return bad("plan", fmt::format("its inputs have more than {} chunks", kMostChunks));
    }
    if (!(plan.shape == *known)) {
      return bad("plan", "its chunks, channels or credits are not the algorithm's");
    }
    const json& programs = *GDRX_TRY(fields.array("programs", ranks));
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      plan.ranks.push_back(
          GDRX_TRY(read_program(Fields(programs[rank], fmt::format("rank {}", rank)), plan)));
    }
    return plan;
  }

 private:
  // With leaves, two for each node of the tree that the rank reduces.
  static std::size_t longest_channel(const Plan& plan) {
    const std::size_t all = kJsonOpsPerRank * (static_cast<std::size_t>(plan.spec.ranks) + 1);
    if (!traits_of(plan.spec.collective).has_leaves()) return all;
    return all + 2 * plan.shape.input_chunks + 4 * static_cast<std::size_t>(leaves_of(plan.spec));
  }
  // With leaves, one for each partial sum that is sent, and for those that wait for others.
  std::uint32_t most_scratch(const Plan& plan) const {
    if (!traits_of(plan.spec.collective).has_leaves()) return limits_.scratch_chunks;
    const std::uint64_t wanted = std::uint64_t{plan.shape.input_chunks} + limits_.scratch_chunks +
                                 2 * static_cast<std::uint64_t>(leaves_of(plan.spec));
    const auto ranks = static_cast<std::uint64_t>(plan.spec.ranks);
    return static_cast<std::uint32_t>(std::min(wanted, kMostChunks / ranks));
  }
  static Result<std::vector<std::int32_t>> read_leaves(const Fields& fields, std::uint32_t ranks) {
    std::vector<std::int32_t> leaves;
    for (const json& count : *GDRX_TRY(fields.array("leaves", ranks))) {
      if (!count.is_number_unsigned() || count.get<std::uint64_t>() > kMostLeaves) {
        return bad("plan", fmt::format("leaves are numbers from 0 to {}", kMostLeaves));
      }
      leaves.push_back(count.get<std::int32_t>());
    }
    return leaves;
  }
  Result<RankProgram> read_program(const Fields& fields, const Plan& plan) {
    GDRX_TRY(fields.only({"scratch_chunks", "channels"}));
    RankProgram program;
    program.scratch_chunks = GDRX_TRY(fields.number("scratch_chunks", 0, most_scratch(plan)));
    const json& channels = *GDRX_TRY(fields.array("channels", plan.shape.channels));
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const std::string where = fmt::format("{} channel {}", fields.where(), c);
      program.channels.push_back(GDRX_TRY(read_channel(channels[c], where, plan)));
    }
    return program;
  }

  Result<Channel> read_channel(const json& list, const std::string& where, const Plan& plan) {
    if (!list.is_array()) return bad(where, "a list of ops is expected");
    // The proof's work grows with the square of a channel's length.
    const std::size_t longest = longest_channel(plan);
    ops_ += list.size();
    if (list.size() > longest || ops_ > limits_.ops) {
      return bad(where,
                 fmt::format("more than {} ops in a channel, or {} in all", longest, limits_.ops));
    }
    Channel channel;
    channel.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      channel.push_back(
          GDRX_TRY(read_op(Fields(list[i], fmt::format("{} op {}", where, i)), plan)));
    }
    return channel;
  }

  static Result<Op> read_op(const Fields& fields, const Plan& plan) {
    GDRX_TRY(fields.only({"op", "peer", "src", "dst", "finish"}));
    Op op;
    op.kind = GDRX_TRY(
        fields.name("op", [](std::string_view name) { return find_name<OpKind>(kOpNames, name); }));
    for (const auto& [key, wanted] : {std::pair{"peer", has_peer(op.kind)},
                                      {"src", has_source(op.kind)},
                                      {"dst", has_target(op.kind)}}) {
      if (fields.has(key) && !wanted) {
        return bad(fields.where(), fmt::format("{} has no {}", name_of(op.kind), key));
      }
    }
    if (has_peer(op.kind)) {
      const auto last = static_cast<std::uint32_t>(plan.spec.ranks - 1);
      op.peer = Rank{static_cast<std::int32_t>(GDRX_TRY(fields.number("peer", 0, last)))};
    }
    if (has_source(op.kind)) op.src = GDRX_TRY(read_chunk(fields, "src"));
    if (has_target(op.kind)) op.dst = GDRX_TRY(read_chunk(fields, "dst"));
    op.finish = GDRX_TRY(fields.flag("finish"));
    return op;
  }

  JsonLimits limits_;
  std::size_t ops_ = 0;
};

}  // namespace

Result<Plan> from_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return bad("text", fmt::format("more than {} bytes", limits.bytes));
  }
  const json root = GDRX_TRY(parse(text, limits));
  Plan plan = GDRX_TRY(Reader(limits).read(root));
  GDRX_TRY(verify(plan));
  return plan;
}

}  // namespace gdrx::plan
