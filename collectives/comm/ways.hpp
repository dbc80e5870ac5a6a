// SPDX-License-Identifier: Apache-2.0
// What was chosen for calls: a program makes the same few again and again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "collectives/comm/tuner.hpp"
#include "gdrx/plan.hpp"

namespace gdrx {

/// Of one communicator, whose choices do not change. A new one may take another's place.
class Ways {
 public:
  struct Way {
    Candidate chosen;
    std::optional<plan::Traffic> planned{};  // empty until somebody has asked
  };
  /// Null: it is not known, or no longer.
  Way* find(const Question& question) noexcept {
    Entry& entry = entries_[place_of(question)];
    return entry.asked && *entry.asked == question ? &entry.way : nullptr;
  }
  Way& keep(const Question& question, const Candidate& chosen) noexcept {
    Entry& entry = entries_[place_of(question)];
    entry = {question, {chosen}};
    return entry.way;
  }

 private:
  static constexpr unsigned kBits = 5;
  struct Entry {
    std::optional<Question> asked;
    Way way{};
  };
  static std::size_t place_of(const Question& question) noexcept {
    // Apart, for small calls of several collectives come in turn.
    const auto both = question.bytes * 32 + static_cast<std::uint64_t>(question.collective);
    const auto mixed = both * 0x9E3779B97F4A7C15;  // Fibonacci hashing: the upper bits
    return static_cast<std::size_t>(mixed >> (64 - kBits));
  }
  std::array<Entry, 1U << kBits> entries_{};
};

}  // namespace gdrx
