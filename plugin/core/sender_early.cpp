// SPDX-License-Identifier: Apache-2.0
// Small messages that go before their receive is known: no round trip for the clear-to-send. The
// n-th message of a tag belongs to the n-th receive of that tag, early or not, so that both sides
// find the same one without a word.
#include <algorithm>

#include "plugin/core/sender.hpp"

namespace gdrx::net {

bool Sender::may_go_early(std::span<const std::byte> bytes, const Memory* memory) const noexcept {
  return early_ && early_count_ < kMostEarly && bytes.size() <= kEarlyBytes &&
         (memory == nullptr || !memory->gpu);
}

Result<void> Sender::settle_early() {
  std::size_t i = 0;
  while (i < early_count_) {
    const Group* group = GDRX_TRY(open_group());
    if (group == nullptr) return {};
    const auto item = open_item(*group, early_tags_[i]);
    if (!item) {
      ++i;
      continue;
    }
    take_item(*item);
    std::copy(early_tags_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              early_tags_.begin() + static_cast<std::ptrdiff_t>(early_count_),
              early_tags_.begin() + static_cast<std::ptrdiff_t>(i));
    --early_count_;
    i = 0;  // the next group may have what earlier ones wait for
  }
  return {};
}

}  // namespace gdrx::net
