// SPDX-License-Identifier: Apache-2.0
// The program's handlers that a thread is in, and what it destroys there. A communicator ends when
// its handlers have returned: so a handler that would wait for itself has to be told.
#pragma once

namespace gdrx {

class Ending;

/// While it lives this thread is in a handler of `owner`'s: of an operation's end, or of its
/// failure.
class InHandler {
 public:
  explicit InHandler(const void* owner, const Ending* ending = nullptr) noexcept;
  ~InHandler();
  InHandler(const InHandler&) = delete;
  InHandler& operator=(const InHandler&) = delete;

  static bool of(const Ending* ending) noexcept;
  /// Of one of its operations. Null: of anybody's.
  static bool of_operation(const void* owner) noexcept;

 private:
  friend class Destruction;
  static thread_local const InHandler* innermost_;
  const void* owner_;
  const Ending* ending_;  // null: of the failure
  const InHandler* outer_;
};

/// While it lives this thread destroys `what`, and waits for its handlers.
class Destruction {
 public:
  explicit Destruction(const void* what) noexcept;
  ~Destruction();
  Destruction(const Destruction&) = delete;
  Destruction& operator=(const Destruction&) = delete;

  /// It would wait for a handler that this thread is in, or that waits for one.
  bool waits_for_itself() const noexcept { return waits_for_itself_; }

 private:
  bool is_in(const void* owner) const noexcept;
  bool leads_to(const Destruction& end) noexcept;

  const void* what_;
  const InHandler* handlers_;  // null: nobody waits for this thread
  bool waits_for_itself_ = false;
  bool seen_ = false;
  Destruction* next_ = nullptr;  // of those in handlers, of all threads
};

}  // namespace gdrx
