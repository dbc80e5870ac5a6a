// SPDX-License-Identifier: Apache-2.0
// Host copies of what a call has on a GPU: of a call that blocks until it returns, else until its
// request is done.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "mpi/library.hpp"

namespace gdrx::mpi {

/// Whether buffers on a GPU are copied before MPI sees them: the process has CUDA, and this MPI
/// knows no GPUs.
bool copies_for_mpi() noexcept;

/// Bytes of a buffer that a call may touch, from its address on.
struct Span {
  std::ptrdiff_t from = 0;
  std::ptrdiff_t to = 0;
};
/// Adds `count` elements, `place` elements behind the buffer's address. Nothing where MPI is to say
/// what is wrong with the type.
void add(Span& span, MPI_Datatype type, std::ptrdiff_t place, std::ptrdiff_t count) noexcept;

struct Copy {
  std::unique_ptr<std::byte[]> host;
  std::byte* gpu = nullptr;
  std::size_t bytes = 0;
};

/// What a call sends and what it receives. No memory ends the program with a line: the others are
/// in the call already.
class Copies {
 public:
  /// Host memory for what is sent, or receives: `at` itself, if that is no memory of a GPU. What is
  /// received is read as well: not all of it is written, where a type has gaps.
  const void* send(const void* at, std::ptrdiff_t count, MPI_Datatype type) noexcept;
  void* recv(void* at, std::ptrdiff_t count, MPI_Datatype type) noexcept;
  const void* send(const void* at, const Span& span) noexcept { return stage(at, span, send_); }
  void* recv(void* at, const Span& span) noexcept {
    return const_cast<void*>(stage(at, span, recv_));
  }
  /// What receives is only read.
  void receive_nothing() noexcept { send_ = std::move(recv_); }

  /// Of a call that has returned: what it has received goes to the GPU.
  int done(int result) noexcept;
  /// Of one that has a request: once that is done.
  int done(int result, const MPI_Request* request, bool persistent) noexcept;

  void read() noexcept;   // from the GPU
  void write() noexcept;  // to it
  bool any() const noexcept { return send_.host != nullptr || recv_.host != nullptr; }

 private:
  static const void* stage(const void* at, const Span& span, Copy& copy) noexcept;

  Copy send_;
  Copy recv_;
};

/// Whether any request of this process has copies.
bool any_copied() noexcept;
/// Of a request that is started.
void read_copies(MPI_Request request) noexcept;
/// Of a request that MPI frees: it may not be done yet.
void forget_copies(const MPI_Request* request) noexcept;

/// Around a call that asks for requests: those of them that are done then have their copies
/// written.
class Completion {
 public:
  Completion(const MPI_Request* list, int count) noexcept;
  int look(int result) noexcept;

 private:
  const MPI_Request* list_;
  std::unique_ptr<MPI_Request[]> before_;
  int count_ = 0;
};

}  // namespace gdrx::mpi
