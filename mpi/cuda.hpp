// SPDX-License-Identifier: Apache-2.0
// CUDA's driver, if the program has loaded it. Nothing here loads it, and none of its contexts is
// made before the program has memory of a GPU.
#pragma once

#include <cstddef>
#include <vector>

namespace gdrx::mpi {

/// Whether this process has CUDA's driver by now: a load where no library has come since.
bool has_cuda() noexcept;
/// Of memory that only a GPU, or CUDA's driver, can reach; managed memory is none.
bool is_on_gpu(const void* at) noexcept;
/// Whether the MPI behind this library says that it takes memory of GPUs.
bool mpi_knows_gpus() noexcept;
/// Rows of a buffer on a GPU and of its copy, which is laid out like it.
struct Piece {
  void* gpu = nullptr;
  void* host = nullptr;
  std::size_t bytes = 0;   // of a row
  std::size_t stride = 0;  // from one row to the next, if there are several
  std::size_t rows = 1;
};
/// Of one buffer; done when they return. A line on stderr if CUDA does not copy, and the program
/// ends: there are no data to go on with.
void copy_from_gpu(const std::vector<Piece>& pieces) noexcept;
void copy_to_gpu(const std::vector<Piece>& pieces) noexcept;

/// Host memory that GPUs read and write by themselves. `at` is null where CUDA gives none.
struct Pinned {
  std::byte* at = nullptr;
  void* context = nullptr;
};
Pinned pin(std::size_t bytes, const void* gpu) noexcept;
/// Nothing happens where CUDA has ended: its memory went with it.
void unpin(const Pinned& memory) noexcept;

/// The context of a stream of the program's, current on this thread meanwhile; the thread's own for
/// CUDA's default stream.
class StreamContext {
 public:
  explicit StreamContext(void* stream) noexcept;
  ~StreamContext();
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;
  bool is_known() const noexcept { return is_known_; }

 private:
  bool is_known_ = false;
  bool is_pushed_ = false;
};

}  // namespace gdrx::mpi
