// SPDX-License-Identifier: Apache-2.0
// Doctor's proof by doing: memory registered, written and read back by a NIC that talks to itself,
// and the data compared. No file says as much.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gdrx/doctor.hpp"

namespace gdrx::verbs {
struct VerbsTable;
}
namespace gdrx::perf::cuda {
class Device;
}

namespace gdrx::perf {

inline constexpr std::size_t kProofBytes = std::size_t{2} << 20;

/// Of each port that is up: 2 MiB of host memory, and of each of the GPUs by each way. A failed
/// proof is a result too.
std::vector<doctor::Proof> prove(const std::shared_ptr<const verbs::VerbsTable>& table,
                                 const std::vector<std::shared_ptr<cuda::Device>>& gpus);
/// This host's NICs and GPUs. Errors: there is nothing to prove with (no libibverbs, or gdrx was
/// built without RDMA headers).
Result<std::vector<doctor::Proof>> prove_here();

}  // namespace gdrx::perf
