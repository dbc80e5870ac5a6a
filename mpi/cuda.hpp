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
/// Of memory on a GPU, to and from the host; done when they return. A line on stderr if CUDA does
/// not copy, and the program ends: there are no data to go on with.
void copy_from_gpu(void* to, const void* from, std::size_t bytes) noexcept;
struct Piece {
  void* gpu = nullptr;
  const void* host = nullptr;
  std::size_t bytes = 0;
};
void copy_to_gpu(const std::vector<Piece>& pieces) noexcept;  // of one buffer

}  // namespace gdrx::mpi
