// SPDX-License-Identifier: Apache-2.0
// MPICH's calls in the order of a CUDA stream, and their sisters. MPICH's own have what is no
// communicator of ours: of a stream that it has made, which is none of CUDA.
#include <cstdio>
#include <string>

#include "mpi/enqueue.hpp"
#include "mpi/settings.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

// By both names. OURS: what is done here, if IS_OURS; else MPI's, if there is one, else REFUSED.
#define GDRX_STREAMED_AS(name, PARAMETERS, ARGUMENTS, IS_OURS, OURS, REFUSED) \
  GDRX_MPIS int name PARAMETERS {                                             \
    if (IS_OURS) return OURS;                                                 \
    static constinit Real<int PARAMETERS> real_one(#name);                    \
    static const bool kExists = real_one.exists();                            \
    if (!kExists) return REFUSED(#name);                                      \
    return real_one ARGUMENTS;                                                \
  }
#define GDRX_STREAMED(name, ...)             \
  GDRX_STREAMED_AS(MPIX_##name, __VA_ARGS__) \
  GDRX_STREAMED_AS(PMPIX_##name, __VA_ARGS__)

#define GDRX_REFUSED_OF_COMM(name) refuse_enqueued(c, name)
#define GDRX_REFUSED_OF_ANY(name) refuse_missing(MPI_COMM_WORLD, name)
#define GDRX_ENQUEUED(name, PARAMETERS, ARGUMENTS, ...)                                         \
  GDRX_STREAMED(name##_enqueue, PARAMETERS, ARGUMENTS, State* const state = stream_state_of(c), \
                enqueue(__VA_ARGS__, *state), GDRX_REFUSED_OF_COMM)

namespace {

// In the order of the bytes, as MPICH has it.
int set_hex(MPI_Info info, const char* key, const void* value, int size) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string text;
  for (int i = 0; i < size; ++i) {
    const unsigned byte = static_cast<const unsigned char*>(value)[i];
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return real::Info_set(info, key, text.c_str());
}

int make_stream(MPI_Info info, StreamHandle* made) {
  const auto stream = stream_of_info(info);
  if (!stream || made == nullptr) {
    std::fprintf(stderr,
                 "gdrx: MPIX_Stream_create: \"value\" is no cudaStream_t as MPIX_Info_set_hex "
                 "writes it\n");
    real::Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_INFO);
    return MPI_ERR_INFO;
  }
  *made = keep_stream(*stream);
  return *made != kNoStream ? MPI_SUCCESS : MPI_ERR_OTHER;
}

bool mpi_makes_streams() {
  static const bool kDoes = find_function("PMPIX_Stream_comm_create") != nullptr;
  return kDoes || settings().off;
}

bool free_stream(StreamHandle* stream) {
  if (stream == nullptr || !drop_stream(*stream)) return false;
  *stream = kNoStream;
  return true;
}

int tell(int result, MPI_Status* status, int source, int tag, int count, MPI_Datatype type) {
  static MPI_Status* const kNone = MPI_STATUS_IGNORE;
  if (result != MPI_SUCCESS || status == kNone) return result;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  real::Status_set_cancelled(status, 0);
  return real::Status_set_elements(status, type, source == MPI_PROC_NULL ? 0 : count);
}

}  // namespace

// clang-format off
GDRX_MPIS int MPIX_Info_set_hex(MPI_Info info, const char* key, const void* value, int size) { return set_hex(info, key, value, size); }
GDRX_MPIS int PMPIX_Info_set_hex(MPI_Info info, const char* key, const void* value, int size) { return set_hex(info, key, value, size); }
GDRX_STREAMED(Stream_create, (MPI_Info info, StreamHandle* stream), (info, stream), is_of_cuda(info) && !settings().off, make_stream(info, stream), GDRX_REFUSED_OF_ANY)
GDRX_STREAMED(Stream_free, (StreamHandle* stream), (stream), free_stream(stream), MPI_SUCCESS, GDRX_REFUSED_OF_ANY)
GDRX_STREAMED(Stream_comm_create, (MPI_Comm c, StreamHandle stream, MPI_Comm* made), (c, stream, made), const auto ours = stream_of_handle(stream); ours || !mpi_makes_streams(), make_stream_comm(c, ours, made), GDRX_REFUSED_OF_COMM)
GDRX_ENQUEUED(Allreduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (s, r, n, t, op, c),
              Call{.kind = Kind::allreduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op})
GDRX_ENQUEUED(Reduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c), (s, r, n, t, op, root, c),
              Call{.kind = Kind::reduce, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op, .root = root})
GDRX_ENQUEUED(Reduce_scatter_block, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c), (s, r, n, t, op, c),
              Call{.kind = Kind::reduce_scatter_block, .comm = c, .send = s, .recv = r, .recv_count = n, .recv_type = t, .op = op})
GDRX_ENQUEUED(Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c),
              Call{.kind = Kind::bcast, .comm = c, .recv = b, .recv_count = n, .recv_type = t, .root = root})
GDRX_ENQUEUED(Allgather, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, MPI_Comm c), (s, sn, st, r, rn, rt, c),
              Call{.kind = Kind::allgather, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt})
GDRX_ENQUEUED(Alltoall, (const void* s, int sn, MPI_Datatype st, void* r, int rn, MPI_Datatype rt, MPI_Comm c), (s, sn, st, r, rn, rt, c),
              Call{.kind = Kind::alltoall, .comm = c, .send = s, .recv = r, .send_count = sn, .recv_count = rn, .send_type = st, .recv_type = rt})
GDRX_ENQUEUED(Send, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c), Message{const_cast<void*>(b), n, t, to, true})
GDRX_STREAMED(Recv_enqueue, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* status), (b, n, t, from, tag, c, status), State* const state = stream_state_of(c),
              tell(enqueue(Message{b, n, t, from, false}, *state), status, from, tag, n, t), GDRX_REFUSED_OF_COMM)
// clang-format on
