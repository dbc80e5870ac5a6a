// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/waiting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

// Who drives looks for a question in every round, but for one in which he runs the user's code or
// waits for CUDA.
constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::milliseconds kBetweenLooks{1};

}  // namespace

Result<Waiting> WaitingQuestion::ask(Deadline deadline,
                                     const std::function<std::optional<Waiting>()>& look_myself) {
  const std::lock_guard one(asking_);
  asked_.store(true, std::memory_order_relaxed);
  std::optional<Waiting> answer;
  while (!answer && !deadline.passed(steady_clock().now())) {
    answer = look_myself();
    if (answer) break;
    std::unique_lock lock(mutex_);
    answered_.wait_for(lock, kBetweenLooks, [this] { return answer_.has_value(); });
    answer = std::exchange(answer_, std::nullopt);
  }
  asked_.store(false, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  answer_.reset();  // one that came too late
  if (answer) return *std::move(answer);
  return fail(Errc::timeout,
              "the thread that drives the communicator does not answer: it runs an operator of the "
              "program's, or waits for a GPU");
}

void WaitingQuestion::answer(Waiting waiting) {
  {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(waiting);
  }
  answered_.notify_one();
}

Result<Waiting> Communicator::waiting() {
  Result<Waiting> asked = progress_lock_.question.ask(
      Deadline::after(steady_clock(), kPatience), [this]() -> std::optional<Waiting> {
        const std::unique_lock lock(progress_lock_.mutex, std::try_to_lock);
        if (!lock.owns_lock()) return std::nullopt;
        return look_at_waiting();
      });
  Waiting all = asked ? *std::move(asked) : Waiting{};
  if (gpu_.path && !failure_.happened()) {
    gpu_.waits.look(
        *gpu_.path, gpu_.rails.ranks_of_host(size()),
        [this](Rank local) { return gpu_.rails.rank_of(local); }, all);
  }
  // Who drives may be waiting for CUDA because a kernel waits.
  if (!asked && all.calls.empty()) return tl::unexpected(asked.error());
  std::erase(all.ranks, rank_);
  std::sort(all.ranks.begin(), all.ranks.end());
  all.ranks.erase(std::unique(all.ranks.begin(), all.ranks.end()), all.ranks.end());
  return all;
}

void Communicator::answer_question() noexcept {
  try {
    progress_lock_.question.answer(look_at_waiting());
  } catch (const std::bad_alloc&) {  // who asked gives up, or asks again
  }
}

Waiting Communicator::look_at_waiting() {
  take_posted();
  Waiting all;
  const Instant now = steady_clock().now();
  streams_.look(all, now);
  if (!queue_.empty()) {
    const Operation& front = queue_.front();
    all.behind = queue_.size() - 1;
    if (front.execution) {
      all.calls.push_back(
          {fmt::format("{}: waits for {}", exec::describe(queue_.sequence.signature()),
                       front.execution->waiting_for()),
           now - front.began});
      all.ranks = front.execution->awaited();
    } else {
      ++all.behind;  // its stream has not come to it
    }
  }
  if (pairs_) {
    for (const auto& operation : pairs_->running()) {
      const exec::Flow& flow = operation->flow;
      all.calls.push_back({fmt::format("{} {} rank {}: waits for {}",
                                       exec::describe(flow.signature), flow.send ? "to" : "from",
                                       index(flow.peer), pairs_->flows().waiting_for(flow)),
                           now - operation->began});
      if (!flow.handed_over) all.ranks.push_back(flow.peer);
    }
  }
  return all;
}

}  // namespace gdrx
