// SPDX-License-Identifier: Apache-2.0
// Small messages that go before their receive is known: no round trip for the clear-to-send. The
// n-th message of a tag belongs to the n-th receive of that tag, eager or not, so that both sides
// find the same one without a word.
#include "plugin/core/sender.hpp"

namespace gdrx::net {

bool Sender::may_go_eagerly(std::span<const std::byte> bytes, const Memory* memory) const noexcept {
  return eager_ && !eager_tags_.full() && bytes.size() <= kEagerBytes &&
         (memory == nullptr || !memory->gpu);
}

Result<void> Sender::match_eager() {
  return eager_tags_.match([this](int tag) -> Result<bool> {
    const Group* group = GDRX_TRY(open_group());
    if (group == nullptr) return false;
    const auto item = open_item(*group, tag);
    if (!item) return false;
    take_item(*item);
    return true;
  });
}

}  // namespace gdrx::net
