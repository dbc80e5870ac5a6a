// SPDX-License-Identifier: Apache-2.0
// Host copies of what a call has on a GPU: of a call that blocks until it returns, else until its
// request is done.
#pragma once

#include <memory>
#include <vector>

#include "mpi/pinned.hpp"
#include "mpi/touched.hpp"

namespace gdrx::mpi {

/// Whether buffers on a GPU are copied before MPI sees them: the process has CUDA, and this MPI
/// knows no GPUs.
bool copies_for_mpi() noexcept;

/// What a call sends and what it receives. No memory ends the program with a line: the others are
/// in the call already.
class Copies {
 public:
  /// Host memory for what is sent, or receives: `at` itself, if that is no memory of a GPU, or
  /// `peer` is nobody.
  const void* send(const void* at, std::ptrdiff_t count, MPI_Datatype type,
                   int peer = MPI_ANY_SOURCE) noexcept;
  void* recv(void* at, std::ptrdiff_t count, MPI_Datatype type, int peer = MPI_ANY_SOURCE) noexcept;
  /// The same of blocks, which `add` adds to a Touched; it is asked of memory on a GPU alone.
  template <class Add>
  const void* send_blocks(const void* at, Add&& add) noexcept {
    if (!is_on_gpu(at)) return at;
    Touched touched = touched_of(Touched::Wants::bounds, add);
    if (touched.is_sparse()) touched = touched_of(Touched::Wants::runs, add);
    return stage_sent(at, std::move(touched));
  }
  template <class Add>
  void* recv_blocks(void* at, Add&& add) noexcept {
    return is_on_gpu(at) ? stage_received(at, touched_of(Touched::Wants::runs, add)) : at;
  }
  /// What receives is only read.
  void receive_nothing() noexcept;

  /// Of a call that has returned: what it has received goes to the GPU.
  [[gnu::noinline]] int done(int result) noexcept;
  /// Of one that has a request: once that is done.
  [[gnu::noinline]] int done(int result, const MPI_Request* request, bool persistent) noexcept;

  void read() noexcept;   // from the GPU
  void write() noexcept;  // to it, what has changed
  bool any() const noexcept { return held_ != nullptr; }

 private:
  // One pointer, null without a GPU: each hook has a place for it.
  struct Copy;
  struct Held;
  struct Drop {
    [[gnu::noinline]] void operator()(Held* held) const noexcept;
  };
  template <class Add>
  static Touched touched_of(Touched::Wants wants, Add&& add) noexcept;
  const void* stage_sent(const void* at, Touched&& touched) noexcept;
  void* stage_received(void* at, Touched&& touched) noexcept;
  Held& held();

  std::unique_ptr<Held, Drop> held_;
};

[[noreturn]] void die_for_copy(const char* why) noexcept;

template <class Add>
Touched Copies::touched_of(Touched::Wants wants, Add&& add) noexcept {
  Touched touched(wants);
  try {
    add(touched);
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
  return touched;
}

}  // namespace gdrx::mpi
