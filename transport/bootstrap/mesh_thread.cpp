// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_thread.hpp"

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>

namespace gdrx {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestSleep{1000};

}  // namespace

Result<void> MeshThread::start() {
  try {
    thread_ = OwnThread("gdrx-progress", [this] { run(); });
  } catch (const std::system_error& error) {
    return fail(Errc::system, "no thread for the control connections", error.code().value());
  }
  return {};
}

MeshThread::~MeshThread() {
  stop_.store(true);
  wire_.ring();
  if (thread_.joinable()) thread_.join();
  try {
    wire_.close();
  } catch (...) {  // out of memory: the peers take it for a death  NOLINT(bugprone-empty-catch)
  }
}

// Each side writes its own flag and then reads the other's, sequentially consistent: either the
// thread sees woken_ before it sleeps, or we see sleeping_ and ring.
void MeshThread::wake() noexcept {
  if (!woken_.exchange(true) && sleeping_.load()) wire_.ring();
}

// Nobody could take an exception: out of memory is the end of every communicator here, on every
// rank. The turns go on: who destroys a communicator that has failed waits for one.
void MeshThread::run() noexcept {
  wire_.belong_here();
  while (!stop_.load()) {
    try {
      turn();
      continue;
    } catch (const std::bad_alloc&) {
      wire_.fail_all("out of memory");
    } catch (...) {
      wire_.fail_all("an exception on the thread of the control connections");
    }
    std::this_thread::sleep_for(milliseconds(1));  // there may be memory at the next turn
  }
}

void MeshThread::turn() {
  woken_.store(false);  // before on_tick: what is asked for during it needs another one
  wait(tick());
  serve();
}

void MeshThread::serve() {
  wire_.pump();
  tell_news();
  wire_.beat();
}

// Of many that share the thread most have nothing to do when something comes for one.
Duration MeshThread::tick() {
  wire_.groups(groups_);
  Duration longest = kLongestSleep;
  int busy = 0;
  Instant now = steady_clock().now();
  for (const MeshWire::Group& group : groups_) {
    if (group->woken.exchange(false) || now >= group->due) {
      const std::lock_guard lock(group->calling);
      const Duration next = group->handlers.on_tick ? group->handlers.on_tick() : kLongestSleep;
      if (next <= Duration::zero()) ++busy;
      now = steady_clock().now();
      group->due = now + next;
    }
    longest = std::min<Duration>(longest, group->due - now);
  }
  groups_.clear();
  busy_.store(busy, std::memory_order_relaxed);
  return longest;
}

void MeshThread::tell_news() {
  while (const auto news = wire_.next_news()) {
    const std::lock_guard lock(news->group->calling);
    if (news->group->handlers.on_notice) news->group->handlers.on_notice(news->notice);
  }
}

void MeshThread::wait(Duration longest) {
  entries_.clear();
  const Duration most =
      std::min({heartbeat_, Duration(kLongestSleep), wire_.prepare_poll(entries_)});
  const auto limit = std::clamp<Duration>(longest, Duration::zero(), most);
  sleeping_.store(true);
  const auto ms = woken_.load() ? milliseconds(0) : std::chrono::ceil<milliseconds>(limit);
  poll(entries_.data(), entries_.size(), static_cast<int>(ms.count()));
  sleeping_.store(false);
  wire_.hush();
}

}  // namespace gdrx
