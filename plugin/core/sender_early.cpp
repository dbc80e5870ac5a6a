// SPDX-License-Identifier: Apache-2.0
// Small messages that go before their receive is known: no round trip for the clear-to-send. The
// n-th message of a tag belongs to the n-th receive of that tag, early or not, so that both sides
// find the same one without a word.
#include "plugin/core/sender.hpp"

namespace gdrx::net {

bool Sender::may_go_early(std::span<const std::byte> bytes, const Memory* memory) const noexcept {
  return early_ && !early_tags_.full() && bytes.size() <= kEarlyBytes &&
         (memory == nullptr || !memory->gpu);
}

Result<void> Sender::settle_early() {
  return early_tags_.settle([this](int tag) -> Result<bool> {
    const Group* group = GDRX_TRY(open_group());
    if (group == nullptr) return false;
    const auto item = open_item(*group, tag);
    if (!item) return false;
    take_item(*item);
    return true;
  });
}

}  // namespace gdrx::net
