// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::size_t kSize = 5000;

/// A link with room for `slots` messages at each end.
struct Grouped {
  Wired wired;
  std::size_t most;  // receives of a group

  static Result<Grouped> open(Session& session, std::size_t slots) {
    GDRX_TRY(ready(session));
    if (session.max_recvs() < 2) {
      return skipped("maxRecvs is 1: there are no groups");
    }
    Wired wired = GDRX_TRY(Wired::open(session, slots * kSize, slots * kSize));
    for (std::size_t slot = 0; slot < slots; ++slot) {
      fill(wired.from.bytes().subspan(slot * kSize, kSize), slot);
    }
    return Grouped{std::move(wired), static_cast<std::size_t>(std::min(session.max_recvs(), 8))};
  }
  Message source(std::size_t slot, int tag, std::size_t size = kSize) const {
    return part(wired.from, slot * kSize, size, tag);
  }
  Message target(std::size_t slot, int tag) const {
    return part(wired.to, slot * kSize, kSize, tag);
  }
  /// Slots [first, first + tags.size()) with these tags.
  std::vector<Message> targets(std::size_t first, const std::vector<int>& tags) const {
    std::vector<Message> group;
    for (std::size_t i = 0; i < tags.size(); ++i) {
      group.push_back(target(first + i, tags[i]));
    }
    return group;
  }
  Result<void> slot_holds(std::size_t slot, std::uint64_t seed) const {
    if (!holds(wired.to, slot * kSize, kSize, seed)) {
      return broken(fmt::format("receive {} did not get the message meant for it", slot));
    }
    return {};
  }
};

std::vector<int> distinct_tags(std::size_t count) {
  std::vector<int> tags(count);
  std::iota(tags.begin(), tags.end(), 100);
  return tags;
}

Result<void> one_order(Session& session, const Grouped& grouped, const std::vector<int>& order) {
  const std::vector<int> tags = distinct_tags(order.size());
  std::ranges::fill(grouped.wired.to.bytes(), kUntouched);
  Exchange exchange(session, grouped.wired.link);
  exchange.receive(grouped.targets(0, tags));
  for (const int slot : order) {
    const auto index = static_cast<std::size_t>(slot);
    exchange.send(grouped.source(index, tags[index]));
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t slot = 0; slot < order.size(); ++slot) {
    GDRX_TRY(grouped.slot_holds(slot, slot));
  }
  return {};
}

Result<void> any_order(Session& session) {
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 8));
  std::vector<int> order(std::min<std::size_t>(3, grouped.most));
  std::iota(order.begin(), order.end(), 0);
  do {
    GDRX_TRY(one_order(session, grouped, order));
  } while (std::ranges::next_permutation(order).found);
  std::vector<int> reversed(grouped.most);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return one_order(session, grouped, reversed);
}

Result<void> same_tags(Session& session) {
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 8));
  Exchange exchange(session, grouped.wired.link);
  exchange.receive(grouped.targets(0, std::vector<int>(grouped.most, 5)));
  for (std::size_t slot = 0; slot < grouped.most; ++slot) {
    exchange.send(grouped.source(slot, 5));
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t slot = 0; slot < grouped.most; ++slot) {
    GDRX_TRY(grouped.slot_holds(slot, slot));
  }
  return {};
}

Result<void> group_sizes(Session& session) {
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 8));
  const std::vector<int> tags = distinct_tags(grouped.most);
  Exchange exchange(session, grouped.wired.link);
  const auto receive = exchange.receive(grouped.targets(0, tags));
  const auto size_of = [](std::size_t slot) { return kSize - 7 * slot; };
  for (std::size_t slot = grouped.most; slot-- > 0;) {
    exchange.send(grouped.source(slot, tags[slot], size_of(slot)));
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t slot = 0; slot < grouped.most; ++slot) {
    if (exchange[receive].size_of(slot) != static_cast<int>(size_of(slot))) {
      return broken(fmt::format("receive {} of {} reports {} bytes of {}", slot, grouped.most,
                                exchange[receive].size_of(slot), size_of(slot)));
    }
  }
  return {};
}

Result<void> no_more_sizes(Session& session) {
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 8));
  const std::size_t count = std::min<std::size_t>(2, grouped.most);
  const std::vector<int> tags = distinct_tags(count);
  Exchange exchange(session, grouped.wired.link);
  const auto receive = exchange.receive(grouped.targets(0, tags));
  for (std::size_t slot = 0; slot < count; ++slot) {
    exchange.send(grouped.source(slot, tags[slot]));
  }
  GDRX_TRY(exchange.finish());
  const Sizes& sizes = exchange[receive].sizes;
  return expect(std::all_of(sizes.begin() + static_cast<std::ptrdiff_t>(count), sizes.end(),
                            [](int size) { return size == kPoison; }),
                "test of 2 receives wrote more than 2 sizes");
}

Result<void> waits_for_all(Session& session) {
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 8));
  const std::vector<int> tags = distinct_tags(grouped.most);
  Exchange exchange(session, grouped.wired.link);
  const auto receive = exchange.receive(grouped.targets(0, tags));
  for (std::size_t slot = 0; slot + 1 < grouped.most; ++slot) {
    exchange.send(grouped.source(slot, tags[slot]));
  }
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::milliseconds(50));
  while (!deadline.passed(steady_clock().now())) {
    GDRX_TRY(exchange.step());
    GDRX_TRY(expect(!exchange[receive].done, "a group was done before its last message"));
  }
  exchange.send(grouped.source(grouped.most - 1, tags.back()));
  return exchange.finish();
}

Result<void> empty_parts(Session& session) {
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 8));
  const std::vector<int> tags = distinct_tags(grouped.most);
  Exchange exchange(session, grouped.wired.link);
  exchange.receive(grouped.targets(0, tags));
  for (std::size_t slot = 0; slot < grouped.most; ++slot) {
    exchange.send(grouped.source(slot, tags[slot], slot % 2 == 0 ? 0 : kSize));
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t slot = 1; slot < grouped.most; slot += 2) {
    GDRX_TRY(grouped.slot_holds(slot, slot));
  }
  return {};
}

/// Two groups of the same tags: the first message of a tag belongs to the first group.
Result<void> groups_in_order(Session& session) {
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 8));
  Exchange exchange(session, grouped.wired.link);
  exchange.sends_in_any_order();
  for (std::size_t first = 0; first < 8; first += 2) {
    exchange.receive(grouped.targets(first, {1, 2}));
  }
  for (std::size_t slot = 0; slot < 8; slot += 2) {
    exchange.send(grouped.source(slot, 1));
    GDRX_TRY(exchange.until_posted(exchange.send(grouped.source(slot + 1, 2))));
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t slot = 0; slot < 8; ++slot) {
    GDRX_TRY(grouped.slot_holds(slot, slot));
  }
  return {};
}

/// Peers that share a communicator are not in step: one sends for the second group already.
Result<void> ahead(Session& session) {
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 4));
  Exchange exchange(session, grouped.wired.link);
  exchange.sends_in_any_order();
  exchange.receive(grouped.targets(0, {1, 2}));
  exchange.receive(grouped.targets(2, {3, 4}));
  for (const std::size_t slot : {2U, 3U, 1U, 0U}) {
    exchange.send(grouped.source(slot, static_cast<int>(slot) + 1));
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t slot = 0; slot < 4; ++slot) {
    GDRX_TRY(grouped.slot_holds(slot, slot));
  }
  return {};
}

Result<void> mixed_counts(Session& session) {
  constexpr std::size_t kCounts[] = {1, 2, 1, 2, 2};
  const Grouped grouped = GDRX_TRY(Grouped::open(session, 8));
  Exchange exchange(session, grouped.wired.link);
  std::size_t first = 0;
  for (const std::size_t count : kCounts) {
    const std::vector<int> tags = distinct_tags(count);
    exchange.receive(grouped.targets(first, tags));
    for (std::size_t i = 0; i < count; ++i) {
      exchange.send(grouped.source(first + i, tags[i]));
    }
    first += count;
  }
  GDRX_TRY(exchange.finish());
  for (std::size_t slot = 0; slot < first; ++slot) {
    GDRX_TRY(grouped.slot_holds(slot, slot));
  }
  return {};
}

constexpr Severity kMust = Severity::must;
constexpr const char* kOne = "transfer.one";
constexpr const char* kWrong = "gives a rank another rank's data";

constexpr Rule kRules[] = {
    {"group.any-order", kMust, "messages find their receive of a group by tag, in any order",
     kWrong, kOne, any_order},
    {"group.same-tags", kMust, "with one tag in all of a group, messages come in order", kWrong,
     kOne, same_tags},
    {"group.sizes", kMust, "each receive of a group reports its own size", "takes them as steps",
     kOne, group_sizes},
    {"group.no-more-sizes", kMust, "test of n receives writes n sizes",
     "sums the array: what is too much decides on flushes", kOne, no_more_sizes},
    {"group.waits-for-all", kMust, "a group is done when its last message is there",
     "hands all of its memory on at once", kOne, waits_for_all},
    {"group.empty-parts", kMust, "messages of 0 bytes count in a group", "hangs", kOne,
     empty_parts},
    {"group.in-order", kMust, "the first group gets the first message of a tag", kWrong, kOne,
     groups_in_order},
    {"group.ahead", kMust, "a message for a later group waits or keeps its place",
     "has peers that are not in step on one communicator", kOne, ahead},
    {"group.mixed-counts", kMust, "groups of different sizes follow each other", kWrong, kOne,
     mixed_counts},
};

}  // namespace

std::span<const Rule> group_rules() { return kRules; }

}  // namespace gdrx::conformance
