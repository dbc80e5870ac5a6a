// SPDX-License-Identifier: Apache-2.0
// How a communicator would carry a call.
#include <fmt/format.h>

#include <string>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_state.hpp"
#include "collectives/api/c_struct.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::c_api {
namespace {

Result<Call> call_of(const gdrxComm* comm, const gdrxCallShape_t* given) {
  if (given == nullptr) return fail(Errc::invalid_argument, "call is NULL");
  const gdrxCallShape_t shape =
      GDRX_TRY(in_full(given, gdrxCallShape_t{}, sizeof *given, "call", "gdrxCallShape_t", "zero"));
  const auto collective = plan::collective_of(shape.collective == nullptr ? "" : shape.collective);
  if (!collective) {
    return fail(Errc::invalid_argument,
                fmt::format("collective is \"{}\": give the name of a call, as allReduce",
                            shape.collective == nullptr ? "NULL" : shape.collective));
  }
  const plan::CollectiveTraits& traits = plan::traits_of(*collective);
  Call call;
  call.collective = *collective;
  call.type = GDRX_TRY(data_type(shape.type));
  call.count = shape.count;
  GDRX_TRY(check_count(comm, shape.count, call.type));
  if (traits.rooted) call.root = GDRX_TRY(rank_of(comm, shape.root, "root"));
  if (traits.reduces) GDRX_TRY(set_operator(comm, shape.op, call));
  return call;
}

}  // namespace
}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxCommExplainCall(gdrxComm_t comm, const gdrxCallShape_t* call, char* text,
                                 size_t capacity) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_buffer(text, capacity, "text"));
    const Call asked = GDRX_TRY(call_of(comm, call));
    const MemoryKind memory = call->cuda != 0 ? MemoryKind::cuda : MemoryKind::host;
    const std::string said = GDRX_TRY(comm->impl->explain(asked, memory));
    if (capacity > 0) text[said.copy(text, capacity - 1)] = '\0';
    return {};
  });
}

gdrxResult_t gdrxCommRouteOfCall(gdrxComm_t comm, const gdrxCallShape_t* call, const char** route) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    if (route == nullptr) return fail(Errc::invalid_argument, "route is NULL");
    const Call asked = GDRX_TRY(call_of(comm, call));
    const MemoryKind memory = call->cuda != 0 ? MemoryKind::cuda : MemoryKind::host;
    GDRX_TRY(comm->impl->check_shape(asked, memory));
    *route = row_of(comm->impl->route_of(asked, memory)).name;
    return {};
  });
}
