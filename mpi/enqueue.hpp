// SPDX-License-Identifier: Apache-2.0
// Calls in the order of a CUDA stream, which is a communicator's.
#pragma once

#include <optional>

#include "mpi/communicator.hpp"

namespace gdrx::mpi {

/// MPICH's, in every MPI. Its own handles are none of ours.
using StreamHandle = int;
inline constexpr StreamHandle kNoStream = 0x3C000000;

/// Whether the info describes a CUDA stream.
bool is_of_cuda(MPI_Info info) noexcept;
/// Which; empty: its value is none.
std::optional<gdrxStream_t> stream_of_info(MPI_Info info) noexcept;
/// kNoStream: no memory.
StreamHandle keep_stream(gdrxStream_t stream) noexcept;
/// Empty: the handle is not ours.
std::optional<gdrxStream_t> stream_of_handle(StreamHandle handle) noexcept;
/// False: the handle is not ours.
bool drop_stream(StreamHandle handle) noexcept;

/// Collective. An MPI error code, alike on all ranks; `made` is null then. No stream: a rank that
/// gave none of CUDA, for which no communicator can be made.
int make_stream_comm(MPI_Comm comm, std::optional<gdrxStream_t> stream, MPI_Comm* made) noexcept;
/// Null: it is no communicator of a stream of ours.
State* stream_state_of(MPI_Comm comm) noexcept;

int enqueue(Call call, State& state) noexcept;
struct Message {
  void* at = nullptr;
  std::ptrdiff_t count = 0;
  MPI_Datatype type{};
  int peer = 0;
  bool sends = false;
};
int enqueue(const Message& message, State& state) noexcept;
/// Of a communicator that has no stream, by the name of the call.
int refuse_enqueued(MPI_Comm comm, const char* name) noexcept;

}  // namespace gdrx::mpi
