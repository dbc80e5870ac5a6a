// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/credits.hpp"

namespace gdrx::exec {

Result<void> Credits::give_back(SendRing& to, std::uint32_t lane, std::uint64_t consumed) {
  // Every second message returns two credits: half the messages, and two slots stay usable.
  if (consumed % (kSlots / 2) != 0) return {};
  // An older one that waits becomes this one: it must not come after it.
  for (Owed& one : owed_) {
    if (one.to != &to || one.lane != lane) continue;
    one.consumed = consumed;
    return {};
  }
  if (GDRX_TRY(to.return_credit(lane, consumed)) == Progress::pending) {
    owed_.push_back({&to, lane, consumed});
  }
  return {};
}

Result<void> Credits::pay() {
  for (std::size_t i = 0; i < owed_.size();) {
    const Owed& one = owed_[i];
    if (GDRX_TRY(one.to->return_credit(one.lane, one.consumed)) == Progress::pending) {
      ++i;
    } else {
      owed_[i] = owed_.back();
      owed_.pop_back();
    }
  }
  return {};
}

}  // namespace gdrx::exec
