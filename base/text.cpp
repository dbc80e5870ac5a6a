// SPDX-License-Identifier: Apache-2.0
#include "gdrx/text.hpp"

#include <atomic>
#include <cstdint>
#include <utility>

namespace gdrx {

struct Text::Shared {
  explicit Shared(std::string text) noexcept : words(std::move(text)) {}
  const std::string words;
  std::atomic<std::uint32_t> holders{1};
};

Text::Text(std::string text) : shared_(new Shared(std::move(text))) {
  std::string_view::operator=(shared_->words);
}

void Text::hold() const noexcept { shared_->holders.fetch_add(1, std::memory_order_relaxed); }

// The last one sees what the others did before.
void Text::let_go() noexcept {
  if (shared_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared_;
}

}  // namespace gdrx
