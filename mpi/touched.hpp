// SPDX-License-Identifier: Apache-2.0
// The bytes of a buffer that a call may write: what lies between them is the program's, also while
// the call is under way.
#pragma once

#include <cstddef>
#include <vector>

#include "mpi/call.hpp"

namespace gdrx::mpi {

struct Run {
  std::ptrdiff_t from = 0;  // from the buffer's address on
  std::ptrdiff_t to = 0;
};

/// Runs of one length, each as far behind the one before.
struct Rows {
  Run first;
  std::ptrdiff_t stride = 0;
  std::size_t count = 1;
};
std::vector<Rows> rows_of(const std::vector<Run>& runs);

class Touched {
 public:
  enum class Wants { bounds, runs };
  explicit Touched(Wants wants) noexcept : wants_(wants) {}

  /// `count` elements, `place` of them behind the address; `shift` bytes further. Nothing where MPI
  /// is to say what is wrong with the type. Throws std::bad_alloc, and std::runtime_error where MPI
  /// does not unpack the type.
  void add(MPI_Datatype type, std::ptrdiff_t place, std::ptrdiff_t count, std::ptrdiff_t shift = 0);
  void add(const Run& run);
  /// Blocks one behind another; at places in elements; each of a type of its own, at places in
  /// bytes.
  void add_blocks(MPI_Datatype type, std::ptrdiff_t count, int blocks);
  void add_blocks(MPI_Datatype type, List counts, List places, int blocks);
  void add_blocks(const MPI_Datatype* types, List counts, List places, int blocks);

  const Run& bounds() const noexcept { return bounds_; }
  /// Whether the gaps are much more than the data: then they are not worth a copy.
  bool is_sparse() const noexcept { return (bounds_.to - bounds_.from) / kWorth > bytes_; }
  std::vector<Run>& runs() noexcept { return runs_; }

 private:
  static constexpr std::ptrdiff_t kWorth = 4;  // bytes that are copied, for one that is wanted

  Wants wants_;
  Run bounds_;
  std::ptrdiff_t bytes_ = 0;
  std::vector<Run> runs_;
};

}  // namespace gdrx::mpi
