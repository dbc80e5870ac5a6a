// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include <algorithm>

namespace gdrx_torch {
namespace {

constexpr double kLate = 0.75;     // seconds: with a look more it is told within one
constexpr double kBetween = 0.25;  // a look that counts for more was itself late
constexpr std::chrono::seconds kAgain{60};

}  // namespace

// Of a wait that is long and one that has just begun, elsewhere, the long one is told alone: nobody
// is late for a moment.
void Waits::add(const Waits& others) {
  running += others.running;
  behind += others.behind;
  const bool both = !late.empty() && !others.late.empty();
  if (both && seconds >= kLate && others.seconds < kLate) return;
  if (both && seconds < kLate && others.seconds >= kLate) {
    late = others.late;
    seconds = others.seconds;
    text = others.text;
    return;
  }
  late.insert(late.end(), others.late.begin(), others.late.end());
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  seconds = std::max(seconds, others.seconds);
  if (!text.empty() && !others.text.empty()) text += "\n";
  text += others.text;
}

Waits waits_of(gdrxComm_t comm, int ranks) {
  std::vector<char> text(16384);
  Waits waits;
  waits.late.resize(static_cast<std::size_t>(ranks));
  gdrxWaiting_t waiting{};
  waiting.size = sizeof waiting;
  waiting.ranks = waits.late.data();
  waiting.rank_capacity = ranks;
  waiting.text = text.data();
  waiting.text_capacity = text.size();
  if (gdrxCommGetWaiting(comm, &waiting) != gdrxSuccess) return {};
  waits.late.resize(static_cast<std::size_t>(std::min(waiting.rank_count, ranks)));
  waits.running = waiting.calls;
  waits.behind = waiting.behind;
  waits.seconds = waiting.seconds;
  waits.text = text.data();
  return waits;
}

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
