// SPDX-License-Identifier: Apache-2.0
// Calls whose counts have 64 bits, where MPI has none such (MPICH 3): by those of ints. A program
// asks by weak references whether there are some, and finds ours.
#pragma once

#include <vector>

#include "mpi/call.hpp"

namespace gdrx::mpi {

/// `prefix`: MPI_ or PMPI_, of the function that has the call. What an int does not count is
/// MPI_ERR_COUNT, by the communicator's error handler. Lists of a nonblocking call are kept until
/// the program ends, equal ones once: nobody says when MPI's request is done.
int pass_on_narrow(const Call& call, const char* prefix) noexcept;

/// For a message of `name` that an int does not count: a line, and the error handler of
/// MPI_COMM_WORLD.
int refuse_count(const char* name) noexcept;

/// Of a message or its like: whether ints count it. Null lists are MPI's to refuse.
inline bool fits(std::ptrdiff_t number) noexcept { return number == static_cast<int>(number); }
bool fits(List numbers, int count) noexcept;
/// Numbers as ints, for as long as an expression; null where there are none.
class Narrowed {
 public:
  Narrowed(List numbers, int count) noexcept;
  const int* at() const noexcept { return is_list_ ? ints_.data() : nullptr; }

 private:
  std::vector<int> ints_;
  bool is_list_;
};
/// The same until the program ends: equal ones are there once.
const int* kept(List numbers, int count) noexcept;
/// A place that a call moves on.
class NarrowPlace {
 public:
  explicit NarrowPlace(MPI_Count* place) noexcept : place_(place), at_(static_cast<int>(*place)) {}
  ~NarrowPlace() { *place_ = at_; }
  NarrowPlace(const NarrowPlace&) = delete;
  NarrowPlace& operator=(const NarrowPlace&) = delete;
  int* at() noexcept { return &at_; }

 private:
  MPI_Count* place_;
  int at_;
};

}  // namespace gdrx::mpi
