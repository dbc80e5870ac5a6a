// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/in_handler.hpp"

#include <mutex>

namespace gdrx {
namespace {

// Never destroyed: a thread may be in a handler when the process ends.
struct All {
  std::mutex mutex;
  Destruction* first = nullptr;
};
All& all() {
  static All& instance = *new All;
  return instance;
}

}  // namespace

thread_local const InHandler* InHandler::innermost_ = nullptr;

InHandler::InHandler(const void* owner, const Ending* ending) noexcept
    : owner_(owner), ending_(ending), outer_(innermost_) {
  innermost_ = this;
}

InHandler::~InHandler() { innermost_ = outer_; }

bool InHandler::of(const Ending* ending) noexcept {
  for (const InHandler* mine = innermost_; mine != nullptr; mine = mine->outer_) {
    if (mine->ending_ == ending) return true;
  }
  return false;
}

bool InHandler::of_operation(const void* owner) noexcept {
  for (const InHandler* mine = innermost_; mine != nullptr; mine = mine->outer_) {
    if (mine->ending_ != nullptr && (owner == nullptr || mine->owner_ == owner)) return true;
  }
  return false;
}

Destruction::Destruction(const void* what) noexcept
    : what_(what), handlers_(what != nullptr ? InHandler::innermost_ : nullptr) {
  if (handlers_ == nullptr) return;
  const std::lock_guard lock(all().mutex);
  for (Destruction* one = all().first; one != nullptr; one = one->next_) one->seen_ = false;
  waits_for_itself_ = leads_to(*this);
  if (waits_for_itself_) return;  // it will not be
  next_ = all().first;
  all().first = this;
}

Destruction::~Destruction() {
  if (handlers_ == nullptr || waits_for_itself_) return;
  const std::lock_guard lock(all().mutex);
  Destruction** place = &all().first;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
}

bool Destruction::is_in(const void* owner) const noexcept {
  for (const InHandler* one = handlers_; one != nullptr; one = one->outer_) {
    if (one->owner_ == owner) return true;
  }
  return false;
}

// By the handlers of what it destroys, and by what is destroyed in these.
bool Destruction::leads_to(const Destruction& end) noexcept {
  if (end.is_in(what_)) return true;
  seen_ = true;
  for (Destruction* one = all().first; one != nullptr; one = one->next_) {
    if (!one->seen_ && one->is_in(what_) && one->leads_to(end)) return true;
  }
  return false;
}

}  // namespace gdrx
