// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include <algorithm>

namespace gdrx_torch {
namespace {

constexpr double kLate = 0.75;     // seconds: with a look more it is told within one
constexpr double kBetween = 0.25;  // a look that counts for more was itself late
constexpr std::chrono::seconds kAgain{60};

}  // namespace

bool Account::look(const std::vector<int>& late, double seconds, Clock::time_point now) {
  const double since = std::chrono::duration<double>(now - looked_).count();
  looked_ = now;
  for (const int rank : late) waited_[rank] += std::min({since, seconds, kBetween});
  // A job in which one rank saves a model is told once a minute of the others' waiting, not once a
  // call.
  if (late.empty() || seconds < kLate || (late == told_ && now < told_at_ + kAgain)) return false;
  told_ = late;
  told_at_ = now;
  return true;
}

}  // namespace gdrx_torch
