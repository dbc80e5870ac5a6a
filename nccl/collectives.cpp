// SPDX-License-Identifier: Apache-2.0
// Collectives, send and receive: gdrx's, by other numbers.
#include "nccl/comm.hpp"
#include "nccl/map.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

namespace {

/// Of no element, which is no element on every rank: as in NCCL nobody waits for anybody. Of what
/// is wrong or in a group gdrx is asked.
bool is_nothing(const ncclComm* comm, std::size_t count, Type type, Stream stream) noexcept {
  if (count > 0 || !is_type(type) || group.depth > 0 || stream == kOfEachThread) return false;
  const Use use(comm);
  if (use.fault() != nullptr || comm->finalizing != nullptr) return false;
  gdrxResult_t failure = gdrxSuccess;
  gdrxCommGetAsyncError(comm->gdrx, &failure);
  return failure == gdrxSuccess;
}

/// What moves data: `body` is given the communicator, the type and the stream.
template <class Body>
Result move(const char* function, ncclComm* comm, Type type, Stream stream, Body&& body) noexcept {
  if (!is_type(type)) return refuse(function, kInvalidArgument, "datatype is no ncclDataType_t");
  const gdrxDataType_t mapped = kTypes[static_cast<std::size_t>(type)].type;
  return through(function, comm,
                 [&](gdrxComm_t gdrx) { return body(gdrx, mapped, stream_of(stream)); });
}

/// What adds, too: `body` is also given the operator.
template <class Body>
Result add(const char* function, ncclComm* comm, Type type, Operator op, Stream stream,
           Body&& body) noexcept {
  if (!is_operator(op)) return refuse(function, kInvalidArgument, "op is no ncclRedOp_t");
  return move(function, comm, type, stream,
              [&](gdrxComm_t gdrx, gdrxDataType_t mapped, gdrxStream_t in) {
                return body(gdrx, mapped, operator_of(op), in);
              });
}

}  // namespace

GDRX_NCCL(ncclAllReduce, const void* send, void* recv, std::size_t count, Type type, Operator op,
          ncclComm* comm, Stream stream) {
  return add("ncclAllReduce", comm, type, op, stream, [&](auto gdrx, auto t, auto o, auto s) {
    return gdrxAllReduce(send, recv, count, t, o, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclReduce, const void* send, void* recv, std::size_t count, Type type, Operator op,
          int root, ncclComm* comm, Stream stream) {
  return add("ncclReduce", comm, type, op, stream, [&](auto gdrx, auto t, auto o, auto s) {
    return gdrxReduce(send, recv, count, t, o, root, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclReduceScatter, const void* send, void* recv, std::size_t count, Type type,
          Operator op, ncclComm* comm, Stream stream) {
  if (op < kOperators && is_operator(op) && is_nothing(comm, count, type, stream)) return kSuccess;
  return add("ncclReduceScatter", comm, type, op, stream, [&](auto gdrx, auto t, auto o, auto s) {
    return gdrxReduceScatter(send, recv, count, t, o, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclBroadcast, const void* send, void* recv, std::size_t count, Type type, int root,
          ncclComm* comm, Stream stream) {
  return move("ncclBroadcast", comm, type, stream, [&](auto gdrx, auto t, auto s) {
    return gdrxBroadcast(send, recv, count, t, root, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclBcast, void* buffer, std::size_t count, Type type, int root, ncclComm* comm,
          Stream stream) {
  return move("ncclBcast", comm, type, stream, [&](auto gdrx, auto t, auto s) {
    return gdrxBroadcast(buffer, buffer, count, t, root, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclAllGather, const void* send, void* recv, std::size_t count, Type type, ncclComm* comm,
          Stream stream) {
  if (is_nothing(comm, count, type, stream)) return kSuccess;
  return move("ncclAllGather", comm, type, stream, [&](auto gdrx, auto t, auto s) {
    return gdrxAllGather(send, recv, count, t, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclAlltoAll, const void* send, void* recv, std::size_t count, Type type, ncclComm* comm,
          Stream stream) {
  if (is_nothing(comm, count, type, stream)) return kSuccess;
  return move("ncclAlltoAll", comm, type, stream, [&](auto gdrx, auto t, auto s) {
    return gdrxAllToAll(send, recv, count, t, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclGather, const void* send, void* recv, std::size_t count, Type type, int root,
          ncclComm* comm, Stream stream) {
  return move("ncclGather", comm, type, stream, [&](auto gdrx, auto t, auto s) {
    return gdrxGather(send, recv, count, t, root, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclScatter, const void* send, void* recv, std::size_t count, Type type, int root,
          ncclComm* comm, Stream stream) {
  return move("ncclScatter", comm, type, stream, [&](auto gdrx, auto t, auto s) {
    return gdrxScatter(send, recv, count, t, root, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclSend, const void* send, std::size_t count, Type type, int peer, ncclComm* comm,
          Stream stream) {
  return move("ncclSend", comm, type, stream, [&](auto gdrx, auto t, auto s) {
    return gdrxSend(send, count, t, peer, gdrx, s, nullptr);
  });
}

GDRX_NCCL(ncclRecv, void* recv, std::size_t count, Type type, int peer, ncclComm* comm,
          Stream stream) {
  return move("ncclRecv", comm, type, stream, [&](auto gdrx, auto t, auto s) {
    return gdrxRecv(recv, count, t, peer, gdrx, s, nullptr);
  });
}
