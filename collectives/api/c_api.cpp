// SPDX-License-Identifier: Apache-2.0
// gdrx.h over Communicator: arguments are checked here, once, and nowhere below.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_state.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::c_api {

Result<void> check_comm(const gdrxComm* comm) {
  if (is_made(comm)) return check_birthplace(comm);
  if (comm == nullptr || !comm->starting) {
    return fail(Errc::invalid_argument, "the communicator is NULL");
  }
  if (comm->starting->state == Starting::State::failed) {
    return tl::unexpected(comm->starting->error);
  }
  return fail(Errc::invalid_argument,
              "the communicator is being made: gdrxCommGetAsyncError says when it can be used");
}

Result<DataType> data_type(gdrxDataType_t type) {
  const auto value = static_cast<unsigned>(type);
  if (value >= kDataTypeCount) {
    return fail(Errc::invalid_argument, fmt::format("{} is no gdrxDataType_t", value));
  }
  return static_cast<DataType>(value);
}

Result<Rank> rank_of(const gdrxComm* comm, int rank, const char* what) {
  if (rank < 0 || rank >= comm->impl->size()) {
    return fail(Errc::invalid_argument,
                fmt::format("{} {} is not a rank of this communicator of {}", what, rank,
                            comm->impl->size()));
  }
  return Rank{rank};
}

tl::unexpected<Error> is_too_large(std::size_t count) {
  return fail(Errc::invalid_argument,
              fmt::format("a count of {} is more than memory holds", count));
}

tl::unexpected<Error> is_null(const char* name) {
  return fail(Errc::invalid_argument, fmt::format("{} is NULL", name));
}

Result<void> check_overlap(const std::byte* in, const std::byte* out, const Bounds& bounds) {
  if (bounds.are_apart(in, out)) return {};
  return fail(Errc::invalid_argument, "sendbuff and recvbuff overlap without being in place");
}

}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

int gdrxGetVersion(void) { return GDRX_VERSION; }

gdrxResult_t gdrxCommAbort(gdrxComm_t comm) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (comm != nullptr && comm->starting) comm->starting->cancelled = true;
    if (comm != nullptr && comm->starting && !is_made(comm)) return check_birthplace(comm);
    GDRX_TRY(check_comm(comm));
    comm->impl->abort();
    return {};
  });
}

gdrxResult_t gdrxCommSetTimeout(gdrxComm_t comm, double seconds) {
  return guarded(nullptr, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    const auto timeout = GDRX_TRY(timeout_of(seconds, "seconds"));
    comm->impl->set_timeout(timeout.value_or(comm->options.config.timeout));
    return {};
  });
}

gdrxResult_t gdrxCommGetAsyncError(gdrxComm_t comm, gdrxResult_t* error) {
  if (comm == nullptr || error == nullptr) return gdrxInvalidArgument;
  if (!is_made(comm)) {
    if (!comm->starting) return gdrxInvalidArgument;
    const bool failed = comm->starting->state == Starting::State::failed;
    *error = failed ? to_c(comm->starting->error.code) : gdrxInProgress;
    // It may have been made since: that is seen the next time.
    return gdrxSuccess;
  }
  // A child of fork() has no GPU to look at.
  const bool here = comm->birthplace.here();
  const auto failure = here ? comm->impl->async_error() : comm->impl->failure();
  *error = failure ? to_c(failure->code) : gdrxSuccess;
  return gdrxSuccess;
}

gdrxResult_t gdrxCommCount(gdrxComm_t comm, int* count) {
  if (!is_made(comm) || count == nullptr) return gdrxInvalidArgument;
  *count = comm->impl->size();
  return gdrxSuccess;
}

gdrxResult_t gdrxCommUserRank(gdrxComm_t comm, int* rank) {
  if (!is_made(comm) || rank == nullptr) return gdrxInvalidArgument;
  *rank = index(comm->impl->rank());
  return gdrxSuccess;
}

namespace {

/// A collective's arguments.
struct Given {
  Collective collective{};
  const void* sendbuff = nullptr;
  void* recvbuff = nullptr;
  std::size_t count = 0;
  gdrxDataType_t type{};
  gdrxRedOp_t op{};
  int root = 0;
  gdrxComm_t comm = nullptr;
  gdrxStream_t stream = nullptr;
  gdrxRequest_t* request = nullptr;

  /// Whether its caller waits for it here and now.
  bool is_blocking() const noexcept {
    return stream == nullptr && request == nullptr && is_made(comm) && !comm->finalized &&
           !in_group();
  }
  Asked asked() const noexcept {
    return {collective, static_cast<int>(type), static_cast<int>(op), root, count};
  }
};

// The checks that all collectives share.
Result<void> fill(Call& call, const Given& given) {
  gdrxComm* const comm = given.comm;
  GDRX_TRY(check_comm(comm));
  call.collective = given.collective;
  call.type = GDRX_TRY(data_type(given.type));
  call.root = GDRX_TRY(rank_of(comm, given.root, "root"));
  GDRX_TRY(check_count(comm, given.count, call.type));
  call.count = given.count;
  if (plan::traits_of(call.collective).reduces) GDRX_TRY(set_operator(comm, given.op, call));
  if (plan::traits_of(call.collective).prefix && call.op == ReduceOp::avg) {
    return fail(Errc::invalid_argument,
                fmt::format("{} has no avg: divide a sum", to_string(call.collective)));
  }
  const Bounds bounds = bounds_of(call, comm->impl->rank(), comm->impl->size());
  GDRX_TRY(check_buffer(given.sendbuff, bounds.input, "sendbuff"));
  GDRX_TRY(check_buffer(given.recvbuff, bounds.output, "recvbuff"));
  call.input = bytes_of(given.sendbuff);
  call.output = bytes_of(given.recvbuff);
  return check_overlap(call.input, call.output, bounds);
}

[[gnu::noinline]] Result<void> make_call(const Given& given) {
  Call call;
  GDRX_TRY(fill(call, given));
  return submit(given.comm, call, given.stream, given.request);
}

gdrxResult_t collective_call(const Given& given) {
  return guarded_call(given.comm, [&given]() -> Result<void> {
    if (given.is_blocking() &&
        GDRX_TRY(given.comm->impl->run_again(given.asked(), bytes_of(given.sendbuff),
                                             bytes_of(given.recvbuff)))) {
      return {};
    }
    return make_call(given);
  });
}

gdrxResult_t point_to_point(bool sends, const std::byte* input, std::byte* output,
                            std::size_t count, gdrxDataType_t type, int peer, gdrxComm_t comm,
                            gdrxStream_t stream, gdrxRequest_t* request) {
  return guarded_call(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    Call call;
    call.collective = Collective::send_recv;
    call.root = GDRX_TRY(rank_of(comm, peer, "peer"));
    call.sends = sends;
    call.input = input;
    call.output = output;
    call.count = count;
    call.type = GDRX_TRY(data_type(type));
    GDRX_TRY(check_count(comm, count, call.type));
    GDRX_TRY(sends ? check_buffer(input, count, "sendbuff")
                   : check_buffer(output, count, "recvbuff"));
    return submit(comm, call, stream, request);
  });
}

}  // namespace

// The C functions of collectives.def. What one takes beside its buffers follows from its operator
// and root. gdrx.h declares them, each with what it means.
// NOLINTBEGIN(bugprone-macro-parentheses,cppcoreguidelines-macro-usage)
#define GDRX_FUNCTION_no_op_no_root(what, Function)                                              \
  gdrxResult_t gdrx##Function(const void* sendbuff, void* recvbuff, size_t count,                \
                              gdrxDataType_t type, gdrxComm_t comm, gdrxStream_t stream,         \
                              gdrxRequest_t* request) {                                          \
    return collective_call(                                                                      \
        {Collective::what, sendbuff, recvbuff, count, type, gdrxSum, 0, comm, stream, request}); \
  }
#define GDRX_FUNCTION_no_op_at_root(what, Function)                                                \
  gdrxResult_t gdrx##Function(const void* sendbuff, void* recvbuff, size_t count,                  \
                              gdrxDataType_t type, int root, gdrxComm_t comm, gdrxStream_t stream, \
                              gdrxRequest_t* request) {                                            \
    return collective_call({Collective::what, sendbuff, recvbuff, count, type, gdrxSum, root,      \
                            comm, stream, request});                                               \
  }
#define GDRX_FUNCTION_sum_no_root(what, Function)                                           \
  gdrxResult_t gdrx##Function(const void* sendbuff, void* recvbuff, size_t count,           \
                              gdrxDataType_t type, gdrxRedOp_t op, gdrxComm_t comm,         \
                              gdrxStream_t stream, gdrxRequest_t* request) {                \
    return collective_call(                                                                 \
        {Collective::what, sendbuff, recvbuff, count, type, op, 0, comm, stream, request}); \
  }
#define GDRX_FUNCTION_sum_at_root(what, Function)                                              \
  gdrxResult_t gdrx##Function(const void* sendbuff, void* recvbuff, size_t count,              \
                              gdrxDataType_t type, gdrxRedOp_t op, int root, gdrxComm_t comm,  \
                              gdrxStream_t stream, gdrxRequest_t* request) {                   \
    return collective_call(                                                                    \
        {Collective::what, sendbuff, recvbuff, count, type, op, root, comm, stream, request}); \
  }
#define GDRX_FUNCTION_prefix_no_root GDRX_FUNCTION_sum_no_root

#define GDRX_COLLECTIVE_BY_HAND(...)
#define GDRX_COLLECTIVE(value, Function, input, output, op, root, plans) \
  GDRX_FUNCTION_##op##_##root(value, Function)
#include "gdrx/collectives.def"
// NOLINTEND(bugprone-macro-parentheses,cppcoreguidelines-macro-usage)

gdrxResult_t gdrxBarrier(gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request) {
  return collective_call(
      {Collective::barrier, nullptr, nullptr, 0, gdrxInt8, gdrxSum, 0, comm, stream, request});
}

gdrxResult_t gdrxSend(const void* sendbuff, size_t count, gdrxDataType_t type, int peer,
                      gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request) {
  return point_to_point(true, bytes_of(sendbuff), nullptr, count, type, peer, comm, stream,
                        request);
}

gdrxResult_t gdrxRecv(void* recvbuff, size_t count, gdrxDataType_t type, int peer, gdrxComm_t comm,
                      gdrxStream_t stream, gdrxRequest_t* request) {
  return point_to_point(false, nullptr, bytes_of(recvbuff), count, type, peer, comm, stream,
                        request);
}
