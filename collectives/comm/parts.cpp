// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "gdrx/traits.hpp"

namespace gdrx {
namespace {

using exec::Part;
using exec::Range;

class Digest {
 public:
  void add(std::uint64_t number) noexcept { hash_ = (hash_ ^ number) * 0x100000001b3; }
  std::int32_t value() const noexcept { return static_cast<std::int32_t>(hash_ ^ hash_ >> 32); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

std::vector<Part> blocks(std::uint64_t count, int ranks) {
  std::vector<Part> parts;
  parts.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back({Rank{rank}, {static_cast<std::uint64_t>(rank) * count, count}});
  }
  return parts;
}

}  // namespace

exec::Parts equal_parts(const Call& call, Rank self, int ranks) {
  const bool root = call.root == self;
  const std::vector<Part> with_root{{call.root, {0, call.count}}};
  const std::vector<Part> all = blocks(call.count, ranks);
  const std::vector<Part> of_root = root ? all : std::vector<Part>{};
  const auto is = [&](Collective one, Collective other) {
    return call.collective == one || call.collective == other;
  };
  if (is(Collective::all_to_all, Collective::all_to_all_v)) return {all, all};
  if (is(Collective::gather, Collective::gather_v)) return {with_root, of_root};
  if (call.collective == Collective::all_gather_v) return {{}, all};
  if (call.collective == Collective::reduce_scatter_v) return {all, {}};
  return {of_root, with_root};  // scatter
}

void add_parts(Call& call, Rank self, int ranks) {
  if (call.parts || call.collective == Collective::send_recv) return;
  if (!plan::traits_of(call.collective).by_messages()) return;
  call.parts = std::make_shared<const exec::Parts>(equal_parts(call, self, ranks));
}

std::vector<Part> parts_of(const std::size_t* counts, const std::size_t* begins, int ranks,
                           std::vector<Part> parts) {
  parts.clear();
  parts.reserve(static_cast<std::size_t>(ranks));
  std::uint64_t end = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint64_t begin = begins == nullptr ? end : begins[rank];
    parts.push_back({Rank{rank}, {begin, counts[rank]}});
    end = begin + counts[rank];
  }
  return parts;
}

bool in_order(const std::vector<Part>& parts) noexcept {
  std::uint64_t end = 0;
  for (const Part& part : parts) {
    if (part.range.begin < end) return false;
    end = part.range.begin + part.range.count;
  }
  return true;
}

const std::vector<Part>& parts_alike(const Call& call) noexcept {
  return call.parts->receives.empty() ? call.parts->sends : call.parts->receives;
}

std::uint64_t own_count(const Call& call, Rank self) noexcept {
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  if (!traits.has_parts() || traits.by_messages()) return call.count;
  return parts_alike(call)[static_cast<std::size_t>(index(self))].range.count;
}

std::int32_t leaves_of(const Call& call, Rank rank) noexcept {
  return call.leaves ? (*call.leaves)[static_cast<std::size_t>(index(rank))] : 1;
}

std::int32_t all_leaves(const Call& call, int ranks) noexcept {
  return call.leaves ? std::accumulate(call.leaves->begin(), call.leaves->end(), 0) : ranks;
}

std::uint64_t extent_of(const std::vector<Part>& parts) noexcept {
  std::uint64_t end = 0;
  for (const Part& part : parts) {
    if (part.range.count > 0) end = std::max(end, part.range.begin + part.range.count);
  }
  return end;
}

std::uint64_t elements_of(const std::vector<Part>& parts) noexcept {
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum += part.range.count;
  return sum;
}

// FNV-1a, a length at a time.
std::int32_t digest_of(const std::vector<Part>& parts) noexcept {
  Digest digest;
  for (const Part& part : parts) digest.add(part.range.count);
  return digest.value();
}

std::int32_t digest_of_leaves(const std::vector<std::int32_t>& leaves) noexcept {
  Digest digest;
  for (const std::int32_t count : leaves) digest.add(static_cast<std::uint64_t>(count));
  return digest.value();
}

Result<std::vector<Range>> runs_of(const std::vector<Part>& parts, const char* buffer) {
  std::vector<Part> sorted;
  sorted.reserve(parts.size());
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(sorted),
               [](const Part& part) { return part.range.count > 0; });
  std::sort(sorted.begin(), sorted.end(),
            [](const Part& a, const Part& b) { return a.range.begin < b.range.begin; });
  std::vector<Range> runs;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const Range& next = sorted[i].range;
    const std::uint64_t end = runs.empty() ? 0 : runs.back().begin + runs.back().count;
    if (!runs.empty() && next.begin < end) {
      return fail(Errc::invalid_argument,
                  fmt::format("the parts of {} for ranks {} and {} overlap", buffer,
                              index(sorted[i - 1].peer), index(sorted[i].peer)));
    }
    if (!runs.empty() && next.begin == end) {
      runs.back().count += next.count;
    } else {
      runs.push_back(next);
    }
  }
  return runs;
}

}  // namespace gdrx
