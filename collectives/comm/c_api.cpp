// SPDX-License-Identifier: Apache-2.0
// gdrx.h over Communicator: arguments are checked here, once, and nowhere below.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "collectives/comm/c_state.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::c_api {
namespace {

Result<void> check_comm(const gdrxComm* comm) {
  if (comm == nullptr || !comm->impl) {
    return fail(Errc::invalid_argument, "the communicator is NULL");
  }
  return check_birthplace(comm);
}

Result<DataType> data_type(gdrxDataType_t type) {
  const auto value = static_cast<unsigned>(type);
  if (value >= kDataTypeCount) {
    return fail(Errc::invalid_argument, fmt::format("{} is no gdrxDataType_t", value));
  }
  return static_cast<DataType>(value);
}

Result<ReduceOp> reduce_op(gdrxRedOp_t op) {
  const auto value = static_cast<unsigned>(op);
  if (value >= kReduceOpCount) {
    return fail(Errc::invalid_argument, fmt::format("{} is no gdrxRedOp_t", value));
  }
  return static_cast<ReduceOp>(value);
}

Result<Rank> rank_of(const gdrxComm* comm, int rank, const char* what) {
  if (rank < 0 || rank >= comm->impl->size()) {
    return fail(Errc::invalid_argument,
                fmt::format("{} {} is not a rank of this communicator of {}", what, rank,
                            comm->impl->size()));
  }
  return Rank{rank};
}

// A count whose bytes, for every rank's block, stay far from overflow.
Result<void> check_count(const gdrxComm* comm, std::size_t count, DataType type) {
  const std::uint64_t most =
      (std::uint64_t{1} << 48) / size_of(type) / static_cast<std::uint64_t>(comm->impl->size());
  if (count > most) {
    return fail(Errc::invalid_argument,
                fmt::format("a count of {} is more than memory holds", count));
  }
  return {};
}

Result<void> check_buffer(const void* buffer, std::uint64_t bytes, const char* name) {
  if (buffer == nullptr && bytes > 0) {
    return fail(Errc::invalid_argument, fmt::format("{} is NULL", name));
  }
  return {};
}

// In place is the same block exactly; anything else must not overlap.
Result<void> check_overlap(const std::byte* in, std::uint64_t in_bytes, const std::byte* out,
                           std::uint64_t out_bytes, const std::byte* in_place) {
  if (in == nullptr || out == nullptr || in_bytes == 0 || out_bytes == 0) return {};
  const auto a = reinterpret_cast<std::uintptr_t>(in);
  const auto b = reinterpret_cast<std::uintptr_t>(out);
  const bool apart = a + in_bytes <= b || b + out_bytes <= a;
  if (apart || in == in_place) return {};
  return fail(Errc::invalid_argument, "sendbuff and recvbuff overlap without being in place");
}

const std::byte* bytes_of(const void* pointer) { return static_cast<const std::byte*>(pointer); }
std::byte* bytes_of(void* pointer) { return static_cast<std::byte*>(pointer); }

// The last one closes the door: all have drained, or failed, so nobody needs another any more.
void forget_sibling(Siblings& siblings) noexcept {
  std::vector<std::unique_ptr<Communicator>> leaving;
  const std::lock_guard lock(siblings.mutex);
  if (--siblings.alive == 0) leaving.swap(siblings.destroyed);
}

void copy_text(const std::string& text, char* to, std::size_t capacity) {
  if (capacity == 0) return;
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

}  // namespace

}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

int gdrxGetVersion(void) { return GDRX_VERSION; }

gdrxResult_t gdrxCommDestroy(gdrxComm_t comm) {
  if (comm == nullptr) return gdrxSuccess;
  if (!comm->birthplace.here()) return gdrxSuccess;  // it is the parent's, which goes on
  if (comm->impl && comm->impl->is_telling()) {
    return guarded(comm, []() -> Result<void> {
      return fail(Errc::invalid_argument,
                  "a communicator is not destroyed from its own error handler");
    });
  }
  const gdrxResult_t result = guarded(nullptr, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    leave_group(comm);
    trace::Span mark(comm->impl->track(), trace::Row::calls, trace::Kind::call, "gdrxCommDestroy");
    Result<void> drained = comm->impl->drain();
    end_requests(comm, drained);
    GDRX_TRY(std::move(drained));
    if (!comm->siblings) return comm->impl->leave();
    mark.end();  // another's destruction ends the communicator
    comm->impl->mute();
    const std::lock_guard lock(comm->siblings->mutex);
    comm->siblings->destroyed.push_back(std::move(comm->impl));
    return {};
  });
  if (comm->requests != nullptr) {  // it threw: nothing may write for them any more
    comm->impl.reset();
    end_requests(comm, fail(Errc::system, "out of memory"));
  }
  if (comm->siblings) forget_sibling(*comm->siblings);
  delete comm;
  return result;
}

gdrxResult_t gdrxCommAbort(gdrxComm_t comm) {
  return guarded(nullptr, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    comm->impl->abort();
    return {};
  });
}

gdrxResult_t gdrxCommGetAsyncError(gdrxComm_t comm, gdrxResult_t* error) {
  if (comm == nullptr || !comm->impl || error == nullptr) return gdrxInvalidArgument;
  try {
    const auto failure = comm->impl->failure();
    *error = failure ? to_c(failure->code) : gdrxSuccess;
  } catch (const std::bad_alloc&) {  // for a failure's words
    *error = gdrxSystemError;
  }
  return gdrxSuccess;
}

gdrxResult_t gdrxCommCount(gdrxComm_t comm, int* count) {
  if (comm == nullptr || !comm->impl || count == nullptr) return gdrxInvalidArgument;
  *count = comm->impl->size();
  return gdrxSuccess;
}

gdrxResult_t gdrxCommUserRank(gdrxComm_t comm, int* rank) {
  if (comm == nullptr || !comm->impl || rank == nullptr) return gdrxInvalidArgument;
  *rank = index(comm->impl->rank());
  return gdrxSuccess;
}

namespace {

// Where the shorter buffer of a call in place begins, in the longer: this rank's block, if the
// longer has blocks.
std::uint64_t own_block(const Call& call, Rank self) {
  const bool blocks = plan::traits_of(call.collective).has_blocks();
  return blocks ? call.count * static_cast<std::uint64_t>(index(self)) * size_of(call.type) : 0;
}

// The checks that all collectives share.
Result<Call> make_call(gdrxComm* comm, Collective collective, const void* sendbuff, void* recvbuff,
                       std::size_t count, gdrxDataType_t type, gdrxRedOp_t op, int root) {
  GDRX_TRY(check_comm(comm));
  Call call;
  call.collective = collective;
  call.type = GDRX_TRY(data_type(type));
  call.op = GDRX_TRY(reduce_op(op));
  call.root = GDRX_TRY(rank_of(comm, root, "root"));
  GDRX_TRY(check_count(comm, count, call.type));
  call.count = count;
  const plan::CollectiveTraits& traits = plan::traits_of(collective);
  const Rank self = comm->impl->rank();
  const int ranks = comm->impl->size();
  const bool is_root = call.root == self;
  const std::uint64_t in = plan::elements(traits.input, count, ranks, is_root) * size_of(call.type);
  const std::uint64_t out =
      plan::elements(traits.output, count, ranks, is_root) * size_of(call.type);
  GDRX_TRY(check_buffer(sendbuff, in, "sendbuff"));
  GDRX_TRY(check_buffer(recvbuff, out, "recvbuff"));
  call.input = bytes_of(sendbuff);
  call.output = bytes_of(recvbuff);
  const std::uint64_t block = own_block(call, self);
  const std::byte* in_place = in > out ? call.output - block : call.output + block;
  GDRX_TRY(check_overlap(call.input, in, call.output, out, in_place));
  return call;
}

gdrxResult_t collective_call(Collective collective, const void* sendbuff, void* recvbuff,
                             std::size_t count, gdrxDataType_t type, gdrxRedOp_t op, int root,
                             gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request) {
  return guarded_call(comm, [&]() -> Result<void> {
    Call call = GDRX_TRY(make_call(comm, collective, sendbuff, recvbuff, count, type, op, root));
    return submit(comm, std::move(call), stream, request);
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
    return submit(comm, std::move(call), stream, request);
  });
}

}  // namespace

gdrxResult_t gdrxAllReduce(const void* sendbuff, void* recvbuff, size_t count, gdrxDataType_t type,
                           gdrxRedOp_t op, gdrxComm_t comm, gdrxStream_t stream,
                           gdrxRequest_t* request) {
  return collective_call(Collective::all_reduce, sendbuff, recvbuff, count, type, op, 0, comm,
                         stream, request);
}

gdrxResult_t gdrxReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               gdrxDataType_t type, gdrxRedOp_t op, gdrxComm_t comm,
                               gdrxStream_t stream, gdrxRequest_t* request) {
  return collective_call(Collective::reduce_scatter, sendbuff, recvbuff, recvcount, type, op, 0,
                         comm, stream, request);
}

gdrxResult_t gdrxAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           gdrxDataType_t type, gdrxComm_t comm, gdrxStream_t stream,
                           gdrxRequest_t* request) {
  return collective_call(Collective::all_gather, sendbuff, recvbuff, sendcount, type, gdrxSum, 0,
                         comm, stream, request);
}

gdrxResult_t gdrxBroadcast(const void* sendbuff, void* recvbuff, size_t count, gdrxDataType_t type,
                           int root, gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request) {
  return collective_call(Collective::broadcast, sendbuff, recvbuff, count, type, gdrxSum, root,
                         comm, stream, request);
}

gdrxResult_t gdrxReduce(const void* sendbuff, void* recvbuff, size_t count, gdrxDataType_t type,
                        gdrxRedOp_t op, int root, gdrxComm_t comm, gdrxStream_t stream,
                        gdrxRequest_t* request) {
  return collective_call(Collective::reduce, sendbuff, recvbuff, count, type, op, root, comm,
                         stream, request);
}

gdrxResult_t gdrxBarrier(gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request) {
  return collective_call(Collective::barrier, nullptr, nullptr, 0, gdrxInt8, gdrxSum, 0, comm,
                         stream, request);
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

gdrxResult_t gdrxCommGetLastOp(gdrxComm_t comm, gdrxOpInfo_t* info) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    if (info == nullptr || info->size != sizeof *info) {
      return fail(Errc::invalid_argument, "info is NULL or its size is not sizeof(gdrxOpInfo_t)");
    }
    const OperationInfo last = comm->impl->last_operation();
    copy_text(std::string(plan::to_string(last.algorithm)), info->algorithm,
              sizeof info->algorithm);
    copy_text(std::string(comm->impl->path_name(last.path)), info->transport,
              sizeof info->transport);
    info->slices = last.counters.slices;
    info->messages_sent = last.counters.sent;
    info->messages_received = last.counters.received;
    info->plan_sends = last.planned.sends;
    info->plan_receives = last.planned.receives;
    info->predicted_us = last.predicted_us;
    info->registered = last.registered ? 1 : 0;
    return {};
  });
}

gdrxResult_t gdrxCommExplain(gdrxComm_t comm, size_t bytes, char* text, size_t capacity) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_buffer(text, capacity, "text"));
    copy_text(GDRX_TRY(comm->impl->explain(bytes)), text, capacity);
    return {};
  });
}

gdrxResult_t gdrxCommDescribe(gdrxComm_t comm, char* text, size_t capacity) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_buffer(text, capacity, "text"));
    copy_text(comm->impl->describe(), text, capacity);
    return {};
  });
}
