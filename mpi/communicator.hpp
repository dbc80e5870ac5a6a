// SPDX-License-Identifier: Apache-2.0
// What this library knows of a communicator of MPI's. MPI keeps it as an attribute and says when
// the communicator is freed; a small table beside it answers faster.
#pragma once

#include "mpi/call.hpp"
#include "mpi/engine.hpp"
#include "mpi/table.hpp"
#include "mpi/work.hpp"

namespace gdrx::mpi {

struct State {
  enum class Stage : std::uint8_t { fresh, live, declined };

  std::atomic<std::uintptr_t> handle{0};  // of the communicator; 0: free to be another's
  Stage stage = Stage::fresh;
  Verdict why = Verdict::early;  // if declined
  MPI_Comm comm{};
  int rank = 0;
  int size = 0;
  const Choice* choice = nullptr;  // what auto takes
  std::size_t saved = 0;           // nanoseconds, had gdrx taken the calls that it would have
  int error = 0;                   // MPI's code of gdrx's failure, once it has failed
  bool error_stays = false;        // gdrx's communicator has ended with it
  bool apart = false;              // of a stream, with ranks on several hosts
  gdrxComm_t gdrx = nullptr;
  Work work;                             // of a blocking call
  std::atomic<int> pending{0};           // nonblocking calls that are not done
  State* next = nullptr;                 // in the list of those that are free
  Verdict persistent = Verdict::taken;   // or why MPI has all persistent calls
  const State* parent = nullptr;         // of a persistent call's own
  gdrxStream_t stream = gdrxStreamNone;  // of a communicator of a CUDA stream
};

/// While this thread frees a communicator. MPI ends the program's attributes of it meanwhile, and
/// ours among them: what they call is MPI's, on every rank.
class Freeing {
 public:
  explicit Freeing(const MPI_Comm* comm) noexcept
      : handle_(comm == nullptr ? 0 : number_of(*comm)), outer_(latest_) {
    latest_ = this;
  }
  ~Freeing() { latest_ = outer_; }
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;
  static bool is_of(MPI_Comm comm) noexcept {
    const Freeing* one = latest_;
    while (one != nullptr && one->handle_ != number_of(comm)) one = one->outer_;
    return one != nullptr;
  }

 private:
  std::uintptr_t handle_;
  const Freeing* outer_;
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit const Freeing* latest_ =
      nullptr;
};

/// Null: MPI is to have the call, whatever it is: before MPI_Init, in MPI_Finalize and after, with
/// GDRX_MPI=off, or of no communicator, or of one that is being freed.
State* state_of(MPI_Comm comm) noexcept;
/// The same by MPI's attribute, 11 ns: a free that MPI should have told, and did not, leaves
/// `state` behind, and its handle is another's.
State* look_again(State* state, MPI_Comm comm) noexcept;
/// Collective: gives `state` a communicator of gdrx's, or declines on all ranks alike. `good`: this
/// rank can have the call.
void make(State& state, bool good = true) noexcept;
/// The same for a communicator of a CUDA stream, of any number of ranks.
void make_in_stream(State& state, bool good) noexcept;
/// Another state of the same communicator of MPI's, which no call is looked up by.
State& own_state_of(const State& parent) noexcept;
void end_own(State& state) noexcept;
/// Calls the program's error handler for what went wrong; MPI's code of it.
int raise(State& state, const char* why) noexcept;
/// `end`: what gdrx's communicator has ended with, where that may be gone.
int raise(State& state, const char* why, gdrxResult_t end) noexcept;
/// Of a communicator that the program has revoked: ends gdrx's calls of it, on all ranks.
void abort_calls_of(const State& state) noexcept;
/// In MPI_Finalize: meets the other ranks of all communicators, and takes no call any more.
void end_communicators() noexcept;

}  // namespace gdrx::mpi
