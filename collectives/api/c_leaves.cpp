// SPDX-License-Identifier: Apache-2.0
// gdrxAllReduceLeaves. The caller's list is his again when the call returns.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_state.hpp"
#include "collectives/comm/parts.hpp"

namespace gdrx::c_api {
namespace {

using Leaves = std::vector<std::int32_t>;
constexpr std::size_t kTooMany = plan::kMostLeaves + 1;

Result<std::shared_ptr<const Leaves>> leaves_of(const std::size_t* counts, int ranks) {
  const auto one_each = static_cast<std::size_t>(ranks);
  if (counts == nullptr) return std::make_shared<const Leaves>(one_each, 1);
  auto leaves = std::make_shared<Leaves>();
  for (std::size_t rank = 0; rank < one_each; ++rank) {
    leaves->push_back(static_cast<std::int32_t>(std::min<std::size_t>(counts[rank], kTooMany)));
  }
  GDRX_TRY(plan::check_leaves(*leaves, ranks));
  return leaves;
}

}  // namespace
}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxAllReduceLeaves(const void* sendbuff, const size_t* leafcounts, void* recvbuff,
                                 size_t count, gdrxDataType_t type, gdrxRedOp_t op, gdrxComm_t comm,
                                 gdrxStream_t stream, gdrxRequest_t* request) {
  return guarded_call(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    Call call;
    call.collective = Collective::all_reduce_leaves;
    call.type = GDRX_TRY(data_type(type));
    GDRX_TRY(set_operator(comm, op, call));
    call.leaves = GDRX_TRY(c_api::leaves_of(leafcounts, comm->impl->size()));
    const auto own = static_cast<std::uint64_t>(gdrx::leaves_of(call, comm->impl->rank()));
    GDRX_TRY(check_count(comm, count, call.type));
    constexpr std::uint64_t kMost = std::uint64_t{1} << 48;  // bytes, as of every buffer
    if (own > 0 && count * size_of(call.type) > kMost / own) {
      return fail(Errc::invalid_argument,
                  fmt::format("count {} of {} leaves is too large", count, own));
    }
    GDRX_TRY(check_buffer(sendbuff, count * own, "sendbuff"));
    GDRX_TRY(check_buffer(recvbuff, count, "recvbuff"));
    call.count = count;
    call.input = bytes_of(sendbuff);
    call.output = bytes_of(recvbuff);
    const std::uint64_t element = size_of(call.type);
    GDRX_TRY(check_overlap(call.input, call.output,
                           {count * own * element, count * element, Bounds::kNever}));
    return submit(comm, call, stream, request);
  });
}
