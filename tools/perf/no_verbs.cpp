// SPDX-License-Identifier: Apache-2.0
// Instead of what needs libibverbs' headers, where there were none to build with.
#include "tools/perf/nic_perf.hpp"
#include "tools/perf/proof.hpp"

namespace gdrx::perf {

Result<std::vector<doctor::Proof>> prove_here() {
  return fail(Errc::unsupported, "this gdrx was built without RDMA headers");
}

Result<NicPerfReport> measure_nic_here(const NicPerfOptions&) {
  return fail(Errc::unsupported, "this gdrx was built without RDMA headers");
}

}  // namespace gdrx::perf
