// SPDX-License-Identifier: Apache-2.0
// Instead of what needs libibverbs' headers, where there were none to build with.
#include "tools/perf/connectivity.hpp"
#include "tools/perf/matrix.hpp"
#include "tools/perf/nic_perf.hpp"
#include "tools/perf/nic_proof.hpp"

namespace gdrx::perf {

Result<std::vector<doctor::Proof>> prove_here() {
  return fail(Errc::unsupported, "this gdrx was built without RDMA headers");
}

Result<NicPerfReport> measure_nic_here(const NicPerfOptions&) {
  return fail(Errc::unsupported, "this gdrx was built without RDMA headers");
}

Result<NicPerfReport> measure_with_here(const std::string&, std::uint16_t, const NicPerfOptions&,
                                        const Config&) {
  return fail(Errc::unsupported, "this gdrx was built without RDMA headers");
}

Result<NicPerfReport> serve_here(std::uint16_t, const NicPerfOptions&, const Judge&, const Config&,
                                 const Listening&) {
  return fail(Errc::unsupported, "this gdrx was built without RDMA headers");
}

Result<MatrixReport> measure_matrix_here(std::size_t, const std::string&, const Gather&,
                                         const MatrixOptions&, const Config&) {
  return fail(Errc::unsupported, "this gdrx was built without RDMA headers");
}

Result<std::vector<Reached>> reach_here(std::size_t, const Exchange& exchange) {
  for (int round = 0; round < 4; ++round) GDRX_TRY(exchange({}));  // as often as the others
  return std::vector<Reached>();
}

}  // namespace gdrx::perf
