// SPDX-License-Identifier: Apache-2.0
// Registered memory for payloads that the caller has not registered. A registration made behind the
// caller's back would go stale when he frees the memory, and write into somebody else's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/verbs/buffer.hpp"
#include "transport/verbs/context.hpp"

namespace gdrx::verbs {

class Staging {
 public:
  static constexpr std::size_t kBlock = 16 * 1024;

  Result<void> open(std::size_t bytes, std::span<const std::shared_ptr<ProtectionDomain>> rails) {
    memory_ = GDRX_TRY(Buffer::create(bytes));
    for (const auto& rail : rails) {
      registrations_.push_back(
          GDRX_TRY(rail->register_memory(memory_.bytes(), IBV_ACCESS_LOCAL_WRITE)));
    }
    used_.assign(bytes / kBlock, false);
    return {};
  }
  std::size_t capacity() const noexcept { return used_.size() * kBlock; }

  /// Contiguous, or nothing when there is no room now. Next fit: what was freed last is cold.
  std::byte* take(std::size_t bytes) noexcept {
    const std::size_t need = blocks(bytes);
    std::size_t run = 0;
    for (std::size_t i = 0; i < used_.size() + need; ++i) {
      const std::size_t at = (next_ + i) % used_.size();
      if (at == 0) run = 0;
      run = used_[at] ? 0 : run + 1;
      if (run < need) continue;
      const std::size_t first = at + 1 - need;
      for (std::size_t j = first; j <= at; ++j) used_[j] = true;
      next_ = (at + 1) % used_.size();
      return memory_.data() + first * kBlock;
    }
    return nullptr;
  }
  void give_back(const std::byte* place, std::size_t bytes) noexcept {
    const auto first = static_cast<std::size_t>(place - memory_.data()) / kBlock;
    for (std::size_t j = 0; j < blocks(bytes); ++j) used_[first + j] = false;
  }
  std::uint32_t lkey(std::size_t rail) const noexcept { return registrations_[rail]->lkey(); }

 private:
  static std::size_t blocks(std::size_t bytes) noexcept { return (bytes + kBlock - 1) / kBlock; }
  Buffer memory_;
  std::vector<std::unique_ptr<Registration>> registrations_;
  std::vector<bool> used_;
  std::size_t next_ = 0;
};

}  // namespace gdrx::verbs
