// SPDX-License-Identifier: Apache-2.0
// Buffers on a GPU, of a blocking call, as host memory: where gdrx has the call, or an MPI that
// knows no GPUs. The decision who has it is made before, and knows nothing of kinds: so each rank
// may have its own.
#pragma once

#include <memory>

#include "mpi/call.hpp"
#include "mpi/cuda.hpp"

namespace gdrx::mpi {

class Staging {
 public:
  /// Gives `call` host memory for what is on a GPU. True: it had some there.
  bool for_gdrx(Call& call) noexcept { return has_cuda() && begin(call); }
  void for_mpi(Call& call) noexcept {
    if (has_cuda() && !mpi_knows_gpus()) [[unlikely]]
      begin(call);
  }
  /// Of the call's result: what it has written goes to the GPU.
  int done(int result) noexcept {
    if (recv_.host != nullptr) [[unlikely]]
      copy_to_gpu(recv_.gpu, recv_.host.get(), recv_.bytes);
    return result;
  }

 private:
  struct Copy {
    std::unique_ptr<std::byte[]> host;
    std::byte* gpu = nullptr;
    std::size_t bytes = 0;
  };
  static bool mpi_knows_gpus() noexcept;
  bool begin(Call& call) noexcept;
  static void* stage(const void* at, std::ptrdiff_t from, std::ptrdiff_t to, Copy& copy);

  Copy send_;
  Copy recv_;
};

}  // namespace gdrx::mpi
