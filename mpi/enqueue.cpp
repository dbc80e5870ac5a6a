// SPDX-License-Identifier: Apache-2.0
#include "mpi/enqueue.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>

#include "mpi/cuda.hpp"
#include "mpi/requests.hpp"
#include "mpi/run.hpp"

namespace gdrx::mpi {
namespace {

constexpr int kMostOfInfo = 63;
constexpr StreamHandle kFirst = 0x67000000;  // of no kind that MPICH has

struct Streams {
  std::mutex mutex;
  std::map<StreamHandle, gdrxStream_t> all;
  StreamHandle next = kFirst;
};
Streams& streams() noexcept {
  static auto& ours = *new Streams;
  return ours;
}

int digit_of(char letter) noexcept {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

// The first thing that is wrong with a call, or MPI_SUCCESS.
int code_of(Verdict verdict, const Call& call, const Plan& plan) noexcept {
  if (verdict == Verdict::operator_) return MPI_ERR_OP;
  if (verdict == Verdict::type) return MPI_ERR_TYPE;
  if (verdict != Verdict::taken) return MPI_ERR_ARG;
  if (call.kind == Kind::reduce_scatter_block && plan.in_place) return MPI_ERR_BUFFER;
  for (const Side* const side : {&plan.in, &plan.out}) {
    if (side->blocks > 0 && !side->type.plain) return MPI_ERR_TYPE;  // it would be packed
  }
  return MPI_SUCCESS;
}

int refuse(State& state, int code) noexcept {
  real::Comm_call_errhandler(state.comm, code);
  return code;
}

int result_of(gdrxResult_t result, State& state) noexcept {
  if (result == gdrxSuccess) return MPI_SUCCESS;
  return raise(state, engine()->GetLastError(state.gdrx));
}

bool is_gpus(const void* at) noexcept { return has_cuda() && is_on_gpu(at); }

// gdrx's communicator may be another thread's, which looks at requests. Not while a call waits:
// such a thread may be whom it waits for.
class Alone {
 public:
  explicit Alone(const State& state) noexcept : lock_(pending_mutex(), std::defer_lock) {
    if (state.pending > 0) lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace

bool is_of_cuda(MPI_Info info) noexcept {
  static const MPI_Info kNone = MPI_INFO_NULL;
  char text[kMostOfInfo + 1] = {};
  int found = 0;
  return info != kNone && real::Info_get(info, "type", kMostOfInfo, text, &found) == MPI_SUCCESS &&
         found != 0 && std::strcmp(text, "cudaStream_t") == 0;
}

std::optional<gdrxStream_t> stream_of_info(MPI_Info info) noexcept {
  char text[kMostOfInfo + 1] = {};
  int found = 0;
  if (real::Info_get(info, "value", kMostOfInfo, text, &found) != MPI_SUCCESS || found == 0) {
    return std::nullopt;
  }
  unsigned char bytes[sizeof(gdrxStream_t)] = {};
  if (std::strlen(text) != 2 * sizeof bytes) return std::nullopt;
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<unsigned char>(16 * high + low);
  }
  gdrxStream_t stream = nullptr;
  std::memcpy(&stream, bytes, sizeof bytes);
  return stream == gdrxStreamNone ? gdrxStreamDefault : stream;
}

StreamHandle keep_stream(gdrxStream_t stream) noexcept {
  const std::lock_guard lock(streams().mutex);
  try {
    streams().all.emplace(streams().next, stream);
    return streams().next++;
  } catch (const std::exception&) {
    return kNoStream;
  }
}

std::optional<gdrxStream_t> stream_of_handle(StreamHandle handle) noexcept {
  const std::lock_guard lock(streams().mutex);
  const auto found = streams().all.find(handle);
  return found == streams().all.end() ? std::nullopt : std::optional(found->second);
}

bool drop_stream(StreamHandle handle) noexcept {
  const std::lock_guard lock(streams().mutex);
  return streams().all.erase(handle) > 0;
}

// A part of the whole, not a duplicate: no attribute is copied, and none of the program's code
// runs.
int make_stream_comm(MPI_Comm comm, std::optional<gdrxStream_t> given, MPI_Comm* made) noexcept {
  static const MPI_Comm kNone = MPI_COMM_NULL;
  *made = kNone;
  int rank = 0;
  int result = real::Comm_rank(comm, &rank);
  if (result == MPI_SUCCESS) result = real::Comm_split(comm, 0, rank, made);
  if (result != MPI_SUCCESS) return result;
  State* const state = state_of(*made);
  int between_groups = 0;
  real::Comm_test_inter(comm, &between_groups);
  if (state != nullptr && between_groups == 0) {
    const gdrxStream_t stream = given.value_or(gdrxStreamNone);
    const StreamContext context(stream);
    state->work.lists.resize(4 * static_cast<std::size_t>(state->size));
    make_in_stream(*state, given && context.is_known());
    state->stream = stream;
    if (state->stage == State::Stage::live) return MPI_SUCCESS;
  }
  real::Comm_free(made);
  *made = kNone;
  std::fprintf(stderr, "gdrx: no communicator of a CUDA stream can be made: %s\n",
               state == nullptr      ? "GDRX_MPI is off"
               : between_groups != 0 ? "it is one between groups"
                                     : "on some rank there is no such stream, or no gdrx");
  real::Comm_call_errhandler(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

State* stream_state_of(MPI_Comm comm) noexcept {
  State* state = state_of(comm);
  if (state != nullptr && state->stream != gdrxStreamNone) state = look_again(state, comm);
  const bool has_one =
      state != nullptr && state->stream != gdrxStreamNone && state->stage == State::Stage::live;
  return has_one ? state : nullptr;
}

int enqueue(Call call, State& state) noexcept {
  Plan plan;
  const Verdict verdict = look(call, state.rank, state.size, plan);
  const int code = code_of(verdict, call, plan);
  if (code != MPI_SUCCESS) return refuse(state, code);
  if (plan.bytes == 0) return MPI_SUCCESS;  // on every rank
  call.stream = state.stream;
  try {
    if (state.pending > 0 && !is_gpus(call.send) && !is_gpus(call.recv)) {
      return result_of(run_behind_pending(call, plan, state), state);
    }
    const Alone alone(state);
    return result_of(start(call, plan, state, state.work, nullptr), state);
  } catch (const std::exception& error) {
    engine()->CommAbort(state.gdrx);  // the others have the call
    return raise(state, error.what());
  }
}

int enqueue(const Message& message, State& state) noexcept {
  if (message.peer == MPI_PROC_NULL) return MPI_SUCCESS;
  if (message.peer < 0 || message.peer >= state.size) return refuse(state, MPI_ERR_RANK);
  if (message.count < 0) return refuse(state, MPI_ERR_COUNT);
  const Type* const type = predefined(message.type);
  if (type == nullptr || !type->plain) return refuse(state, MPI_ERR_TYPE);
  const std::size_t bytes = static_cast<std::size_t>(message.count) * type->size;
  const Engine& gdrx = *engine();
  const auto post = [&](gdrxRequest_t* request) {
    return message.sends ? gdrx.Send(message.at, bytes, gdrxByte, message.peer, state.gdrx,
                                     state.stream, request)
                         : gdrx.Recv(message.at, bytes, gdrxByte, message.peer, state.gdrx,
                                     state.stream, request);
  };
  if (state.pending > 0 && !is_gpus(message.at)) {
    return result_of(wait_behind_pending(post), state);
  }
  const Alone alone(state);
  return result_of(post(nullptr), state);
}

int refuse_enqueued(MPI_Comm comm, const char* name) noexcept {
  std::fprintf(stderr, "gdrx: %s has got no communicator of a CUDA stream\n", name);
  real::Comm_call_errhandler(comm, MPI_ERR_COMM);
  return MPI_ERR_COMM;
}

}  // namespace gdrx::mpi
