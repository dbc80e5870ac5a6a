// SPDX-License-Identifier: Apache-2.0
// Buffers on a GPU, of a collective call, as host memory: where gdrx has the call, or an MPI that
// knows no GPUs. The decision who has it is made before, and knows nothing of kinds: so each rank
// may have its own.
#pragma once

#include "mpi/call.hpp"
#include "mpi/copies.hpp"
#include "mpi/cuda.hpp"

namespace gdrx::mpi {

class Staging {
 public:
  /// Gives `call` host memory for what is on a GPU. True: it had some there.
  bool for_gdrx(Call& call) noexcept { return has_cuda() && begin(call); }
  void for_mpi(Call& call) noexcept {
    if (has_cuda()) [[unlikely]]
      begin_for_mpi(call);
  }
  /// Of the call's result: what it has written goes to the GPU, now or when its request is done.
  int done(int result, const Call& call) noexcept {
    if (!copies_.any()) [[likely]]
      return result;
    return copied(result, call);
  }

 private:
  bool begin(Call& call) noexcept;
  void begin_for_mpi(Call& call) noexcept;
  [[gnu::noinline]] int copied(int result, const Call& call) noexcept;  // not in each hook

  Copies copies_;
};

}  // namespace gdrx::mpi
