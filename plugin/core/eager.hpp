// SPDX-License-Identifier: Apache-2.0
// What both ends keep of eager messages whose receives are not known.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "gdrx/result.hpp"
#include "plugin/core/wire.hpp"

namespace gdrx::net {

template <class T>
class EagerList {
 public:
  std::size_t size() const noexcept { return count_; }
  bool full() const noexcept { return count_ == kMostEager; }
  void push_back(const T& one) noexcept { list_[count_++] = one; }

  /// Takes out, oldest first, what `match` finds a receive for (true), until it finds none.
  /// Whatever leaves may open a group that others wait for: then from the oldest again.
  template <class Match>
  Result<void> match(const Match& match) {
    std::size_t i = 0;
    while (i < count_) {
      if (!GDRX_TRY(match(list_[i]))) {
        ++i;
        continue;
      }
      const auto at = list_.begin() + static_cast<std::ptrdiff_t>(i);
      std::copy(at + 1, list_.begin() + static_cast<std::ptrdiff_t>(count_), at);
      --count_;
      i = 0;
    }
    return {};
  }

 private:
  std::array<T, kMostEager> list_{};
  std::size_t count_ = 0;
};

}  // namespace gdrx::net
