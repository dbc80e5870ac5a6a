// SPDX-License-Identifier: Apache-2.0
// What a child of fork() must not have. It inherits every descriptor, so a connection of a dead
// process would live on in a child that sleeps, and nobody would notice the death.
#pragma once

#include <cstdint>

namespace gdrx {

/// Descriptors in whose place a child of fork() finds a dead one of the same number: whoever still
/// uses them there gets an error, and hits no file that the child has opened since.
///
/// UCX's own are not entered. It closes them when it likes and tells nobody, so that the registry
/// would name files that the program has opened since under the same numbers. They hide no death:
/// they are of shared memory and datagrams between Unix sockets, of which no peer waits for an end.
class Unforked {
 public:
  /// No fork() comes between `make`, which returns a descriptor or -1 with errno set, and its entry
  /// here. `make` does not wait. Where the soft limit of descriptors is reached, it becomes the
  /// hard one, and `make` is called again.
  template <class Make>
  static int open(Make&& make) {
    const Hold hold;
    int fd = make();
    if (fd < 0 && limit_reached() && raise_limit()) fd = make();
    add(fd);
    return fd;
  }
  /// Enters one that is open already; again is no harm.
  static void keep(int fd) noexcept;
  static void close(int fd) noexcept;
  /// Leaves it to somebody else to close.
  static void forget(int fd) noexcept;
  /// Raises the soft limit of descriptors to the hard one. False if it was there.
  static bool raise_limit() noexcept;

 private:
  struct Hold {
    Hold() noexcept;
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
  };
  static bool limit_reached() noexcept;
  static void add(int fd) noexcept;
  static void remove(int fd) noexcept;
};

/// Marks the process in which an object is made. A child of fork() has the object's bytes, but
/// neither its threads nor its connections.
class Birthplace {
 public:
  Birthplace() noexcept;
  bool here() const noexcept { return forks_ == forks(); }

 private:
  static std::uint64_t forks() noexcept;
  std::uint64_t forks_;
};

/// How many descriptors this process may have open at once.
std::uint64_t descriptor_limit() noexcept;

}  // namespace gdrx
