// SPDX-License-Identifier: Apache-2.0
// How a group ends.
//
// A rank may leave with receives open that nothing will come for, and may hold what a peer still
// needs. So all ranks meet in a barrier; after it nobody needs the communicator, and what is open
// ends by an abort. Ranks may end their groups in any order: who waits for long does so in a thread
// of its own, and the process waits for those threads before it ends.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine.hpp"

namespace gdrx_torch {
namespace {

constexpr Milliseconds kAtOnce{200};  // as long the caller waits himself
constexpr std::chrono::microseconds kLookAgain{200};

struct Departures {
  std::mutex mutex;
  std::condition_variable changed;
  int open = 0;
  std::vector<std::weak_ptr<Engine>> groups;  // of this process
  std::vector<Seen> last_words;               // of groups that failed, and are gone
};

// Never destroyed: a thread may outlive the end of main.
Departures& departures() {
  static auto* const all = new Departures;
  return *all;
}

}  // namespace

std::shared_ptr<Engine> enlist(std::shared_ptr<Engine> group) {
  Departures& all = departures();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.groups, [](const auto& other) { return other.expired(); });
  all.groups.push_back(group);
  return group;
}

std::vector<std::shared_ptr<Engine>> all_groups() {
  Departures& all = departures();
  const std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<Engine>> groups;
  for (const auto& group : all.groups) {
    if (auto here = group.lock(); here && here->is_mine()) groups.push_back(std::move(here));
  }
  return groups;
}

std::vector<Seen> look_at_groups() {
  const auto now = Clock::now();
  std::vector<Seen> seen;
  {
    Departures& all = departures();
    const std::lock_guard lock(all.mutex);
    seen.swap(all.last_words);
  }
  for (const auto& group : all_groups()) seen.push_back(group->look(now));
  for (Seen& one : seen) {
    if (!one.late.empty() || !one.failure.empty()) {
      one.name = Record::of_process().name_of(one.group);
    }
  }
  return seen;
}

// A program that destroys its group as soon as a call has raised leaves nothing to look at.
void Engine::say_last_word() {
  Seen seen = look(Clock::now());
  if (seen.failure.empty()) return;
  Departures& all = departures();
  const std::lock_guard lock(all.mutex);
  all.last_words.push_back(std::move(seen));
}

bool leave_all(Milliseconds grace, Milliseconds most) {
  Departures& all = departures();
  std::unique_lock lock(all.mutex);
  const auto groups = std::exchange(all.groups, {});
  lock.unlock();
  for (const auto& group : groups) {
    if (const auto here = group.lock()) here->shutdown(grace);
  }
  lock.lock();
  return all.changed.wait_for(lock, most, [&] { return all.open == 0; });
}

// False: somebody else has done so.
bool Engine::stop_driver() {
  std::thread driver;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(leaving_, true)) return false;
    driver.swap(driver_);
  }
  wake_.notify_all();
  if (!driver.joinable()) return true;
  if (driver.get_id() == std::this_thread::get_id()) {
    driver.detach();  // the last reference went in a callback
  } else {
    driver.join();
  }
  return true;
}

void Engine::shutdown(Milliseconds grace) {
  if (getpid() != process_) {
    if (driver_.joinable()) driver_.detach();  // the parent's
    return;
  }
  say_last_word();
  if (!stop_driver()) return;
  Record::of_process().end_group(number());
  gpu_->shutdown(grace);
  const auto now = Clock::now();
  const auto limit = now + grace;
  if (meet(std::min(limit, now + kAtOnce), limit)) return;
  Departures& all = departures();
  {
    const std::lock_guard lock(all.mutex);
    ++all.open;
  }
  std::thread([self = shared_from_this(), limit]() mutable {
    self->meet(limit, limit);
    self.reset();
    Departures& mine = departures();
    const std::lock_guard lock(mine.mutex);
    --mine.open;
    mine.changed.notify_all();
  }).detach();
}

// Waits in the barrier until `until`. False: not all have come, and `limit` is later.
bool Engine::meet(Clock::time_point until, Clock::time_point limit) {
  std::vector<WorkPtr> ended;
  std::unique_lock lock(mutex_);
  if (departure_ == nullptr && failure_.empty() && until < limit) {
    gdrxBarrier(comm_, nullptr, &departure_);
  }
  bool met = false;
  while (departure_ != nullptr && !met) {
    advance(ended);
    const gdrxResult_t result = gdrxTest(&departure_);
    met = result == gdrxSuccess;
    if (result != gdrxInProgress) break;
    const bool late = Clock::now() >= until;
    lock.unlock();
    for (const WorkPtr& work : ended) work->complete();
    ended.clear();
    if (late && until < limit) return false;
    std::this_thread::sleep_for(late ? std::chrono::microseconds(0) : kLookAgain);
    lock.lock();
    if (late) break;
  }
  lock.unlock();
  part(met, std::move(ended));
  return true;
}

void Engine::part(bool met, std::vector<WorkPtr> ended) {
  gdrxComm_t comm = nullptr;
  std::deque<WorkPtr> open;
  {
    const std::lock_guard lock(mutex_);
    if (!met || !mailbox_.idle()) gdrxCommAbort(comm_);
    comm = std::exchange(comm_, nullptr);
    if (failure_.empty()) failure_ = "the group was shut down";
    mailbox_.fail(failure_, ended);
    open.swap(collectives_);
    for (const WorkPtr& work : open) {
      work->error = std::string(work->call.title) + ": " + failure_;
      ended.push_back(work);
    }
  }
  gdrxCommDestroy(comm);
  if (departure_ != nullptr) gdrxTest(&departure_);
  for (const WorkPtr& work : open) {
    for (auto& request : work->requests) gdrxTest(&request);
  }
  mailbox_.take_back();
  for (const WorkPtr& work : ended) work->complete();
}

}  // namespace gdrx_torch
