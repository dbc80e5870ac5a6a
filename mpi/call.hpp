// SPDX-License-Identifier: Apache-2.0
// A collective call of MPI's, as data, and what there is to know of each collective.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gdrx/gdrx_types.h"
#include "mpi/library.hpp"

namespace gdrx::mpi {

enum class Kind : std::uint8_t {
  allreduce,
  reduce,
  reduce_scatter_block,
  reduce_scatter,
  scan,
  exscan,
  bcast,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  gather,
  gatherv,
  scatter,
  scatterv,
  barrier,
};
inline constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::barrier) + 1;

/// Counts or places of the program's, a number a rank: ints, or 64 bits in calls whose names end in
/// _c.
class List {
 public:
  constexpr List() = default;
  constexpr List(std::nullptr_t) {}
  constexpr List(const int* numbers) : narrow_(numbers) {}
  constexpr List(const long* numbers) : wide_(numbers) {}
  constexpr List(const long long* numbers) : wide_(numbers) {}
  std::ptrdiff_t operator[](std::ptrdiff_t i) const noexcept {
    if (narrow_ != nullptr) return narrow_[i];
    std::int64_t number = 0;
    std::memcpy(&number, static_cast<const std::byte*>(wide_) + i * kWide, kWide);
    return number;
  }
  bool operator==(std::nullptr_t) const noexcept { return narrow_ == nullptr && wide_ == nullptr; }

 private:
  static constexpr std::ptrdiff_t kWide = sizeof(std::int64_t);
  static_assert(sizeof(long) == kWide && sizeof(long long) == kWide);
  const int* narrow_ = nullptr;
  const void* wide_ = nullptr;  // long or long long, by the MPI
};

/// When a call is done: as it returns, when MPI says so of its request, or each time that is
/// started.
enum class Form : std::uint8_t { blocking, nonblocking, persistent };
inline constexpr std::size_t kForms = 3;

/// The arguments, as MPI names them; those that a collective does not have are as here. One buffer
/// alone is `recv`; a type, a count or counts for both sides are the receive side's.
struct Call {
  Kind kind{};
  MPI_Comm comm{};
  const void* send = nullptr;
  void* recv = nullptr;
  std::ptrdiff_t send_count = 0;
  std::ptrdiff_t recv_count = 0;
  MPI_Datatype send_type{};
  MPI_Datatype recv_type{};
  List send_counts = {};
  List send_places = {};
  List recv_counts = {};
  List recv_places = {};
  MPI_Op op{};
  int root = 0;
  Form form = Form::blocking;
  MPI_Request* request = nullptr;  // unless it blocks
  gdrxStream_t stream = gdrxStreamNone;
};

struct Trait {
  const char* name;
  bool reduces;
  bool rooted;
  bool sized;  // every rank knows how much the call moves: it may decide by that
};

inline constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

inline constexpr std::array<Trait, kKinds> kTraits{{
    {"Allreduce", true, false, true},
    {"Reduce", true, true, true},
    {"Reduce_scatter_block", true, false, true},
    {"Reduce_scatter", true, false, true},
    {"Scan", true, false, true},
    {"Exscan", true, false, true},
    {"Bcast", false, true, true},
    {"Allgather", false, false, true},
    {"Allgatherv", false, false, true},
    {"Alltoall", false, false, true},
    {"Alltoallv", false, false, false},
    {"Gather", false, true, true},
    {"Gatherv", false, true, false},
    {"Scatter", false, true, true},
    {"Scatterv", false, true, false},
    {"Barrier", false, false, true},
}};

inline constexpr const Trait& trait_of(Kind kind) {
  return kTraits[static_cast<std::size_t>(kind)];
}

/// Why MPI gets a call, or that it does not.
enum class Verdict : std::uint8_t {
  taken,
  alone,      // one rank, or an intercommunicator
  worlds,     // ranks of several MPI_COMM_WORLDs, which may have other settings
  hosts,      // several, between which gdrx is not known to be faster
  broken,     // gdrx could not make its communicator
  early,      // gdrx's communicator is made in a later, blocking call
  size,       // MPI is as fast
  nothing,    // no bytes
  type,       // gdrx does not reduce it
  operator_,  // the program's own
  argument,   // not right: MPI says how
};
inline constexpr std::size_t kVerdicts = static_cast<std::size_t>(Verdict::argument) + 1;

/// Whether gdrx is meant to have such a call: what is not is no work, or MPI's by its nature.
inline constexpr bool is_eligible(Verdict verdict) {
  return verdict != Verdict::alone && verdict != Verdict::nothing &&
         verdict != Verdict::operator_ && verdict != Verdict::argument;
}

/// While MPI, or a tool behind this library, has a call: what it calls by the other name is the
/// same call, and goes on uncounted, as on ranks without that tool.
class Passing {
 public:
  Passing() noexcept { ++depth_; }
  ~Passing() { --depth_; }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;
  static bool on() noexcept { return depth_ > 0; }

 private:
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit int depth_ = 0;
};

class Staging;
struct Plan;
struct State;

/// A call on its way through a hook: taken at once, or for MPI.
class Hook {
 public:
  /// `staging` has what it copied from GPUs: for gdrx, or for an MPI that knows none.
  [[gnu::noinline]] Hook(Call& call, Staging& staging) noexcept;
  bool taken() const noexcept { return verdict_ == Verdict::taken; }
  int result() const noexcept { return result_; }
  /// Of what MPI did, for the table of GDRX_MPI=explain.
  int passed(int result) const noexcept {
    if (explained_) [[unlikely]]
      note();
    return result;
  }

 private:
  void decide(Call& call, Staging& staging) noexcept;
  void note() const noexcept;
  int take(const Call& call, const Plan& plan, State& state) noexcept;

  Kind kind_;
  Form form_;
  Verdict verdict_ = Verdict::argument;
  bool explained_ = false;
  int result_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t began_ = 0;  // nanoseconds, if explained_
};

}  // namespace gdrx::mpi
