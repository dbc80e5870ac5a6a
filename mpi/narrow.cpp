// SPDX-License-Identifier: Apache-2.0
#include "mpi/narrow.hpp"

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "mpi/persistent.hpp"

namespace gdrx::mpi {
namespace {

// Nobody says when MPI's request is done.
const int* keep_list(const std::vector<int>& list) {
  static std::mutex mutex;
  static auto& all = *new std::set<std::vector<int>>;
  const std::lock_guard lock(mutex);
  return all.insert(list).first->data();
}

/// What MPI looks at on this rank: the rest may be anything.
struct Used {
  bool send;
  bool recv;
  int ranks;  // numbers in a list
};

int look_at(const Call& call, Used& used) noexcept {
  int between_groups = 0;
  int rank = 0;
  int result = real::Comm_test_inter(call.comm, &between_groups);
  if (result == MPI_SUCCESS) result = real::Comm_rank(call.comm, &rank);
  const bool of_others = between_groups != 0 && call.kind != Kind::reduce_scatter;
  if (result == MPI_SUCCESS) {
    result = of_others ? real::Comm_remote_size(call.comm, &used.ranks)
                       : real::Comm_size(call.comm, &used.ranks);
  }
  const bool root = between_groups != 0 ? call.root == MPI_ROOT : call.root == rank;
  const bool leaf = between_groups == 0 || call.root >= 0;
  const bool gathers = call.kind == Kind::gather || call.kind == Kind::gatherv;
  const bool scatters = call.kind == Kind::scatter || call.kind == Kind::scatterv;
  used.send = call.send != MPI_IN_PLACE && (scatters ? root : !gathers || leaf);
  used.recv = scatters ? leaf && call.recv != MPI_IN_PLACE : root || (!gathers && leaf);
  return result;
}

/// The counts and places of a call.
class Ints {
 public:
  Ints(const Call& call, const Used& used)
      : send_count(narrow(used.send ? call.send_count : 0)),
        recv_count(narrow(used.recv ? call.recv_count : 0)),
        send_counts(used.send ? list(call.send_counts, used.ranks) : nullptr),
        send_places(used.send ? list(call.send_places, used.ranks) : nullptr),
        recv_counts(used.recv ? list(call.recv_counts, used.ranks) : nullptr),
        recv_places(used.recv ? list(call.recv_places, used.ranks) : nullptr) {
    if (fit_ && call.form == Form::nonblocking) keep();
  }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;
  bool fit() const noexcept { return fit_; }

 private:
  bool fit_ = true;
  std::set<std::vector<int>> lists_;  // its nodes never move

  int narrow(std::ptrdiff_t number) noexcept {
    const int narrowed = static_cast<int>(number);
    fit_ = fit_ && narrowed == number;
    return narrowed;
  }
  const int* list(List numbers, int ranks) {
    if (numbers == nullptr) return nullptr;  // MPI says so
    std::vector<int> narrowed;
    for (int i = 0; i < ranks; ++i) narrowed.push_back(narrow(numbers[i]));
    return lists_.insert(std::move(narrowed)).first->data();
  }
  static const int* kept(const int* at, const std::set<std::vector<int>>& from) {
    for (const std::vector<int>& one : from) {
      if (at != nullptr && one.data() == at) return keep_list(one);
    }
    return at;
  }
  void keep() {
    for (const int** const one : {&send_counts, &send_places, &recv_counts, &recv_places}) {
      *one = kept(*one, lists_);
    }
  }

 public:
  int send_count;
  int recv_count;
  const int* send_counts;
  const int* send_places;
  const int* recv_counts;
  const int* recv_places;
};

int refuse(const Call& call, int error, const char* why) noexcept {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) {
    std::fprintf(stderr, "gdrx: MPI has no MPI_%s_c: %s\n", trait_of(call.kind).name, why);
  }
  real::Comm_call_errhandler(call.comm, error);
  return error;
}

std::string name_of(const Call& call, const char* prefix) {
  std::string name = trait_of(call.kind).name;
  if (call.form == Form::nonblocking) {
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    name.insert(0, "I");
  }
  return prefix + name;
}

template <class... Arguments>
int pass(const Call& call, const char* prefix, Arguments... arguments) {
  void* const found = find_function(name_of(call, prefix).c_str());
  if (found == nullptr) return refuse(call, MPI_ERR_OTHER, "nor one whose counts are ints");
  if (call.form == Form::blocking)
    return reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
  return reinterpret_cast<int (*)(Arguments..., MPI_Request*)>(found)(arguments..., call.request);
}

int pass_reduction(const Call& c, const char* prefix, const Ints& n) {
  if (c.kind == Kind::reduce) {
    return pass(c, prefix, c.send, c.recv, n.recv_count, c.recv_type, c.op, c.root, c.comm);
  }
  if (c.kind == Kind::reduce_scatter) {
    return pass(c, prefix, c.send, c.recv, n.recv_counts, c.recv_type, c.op, c.comm);
  }
  return pass(c, prefix, c.send, c.recv, n.recv_count, c.recv_type, c.op, c.comm);
}

int pass_move(const Call& c, const char* prefix, const Ints& n) {
  switch (c.kind) {
    case Kind::bcast:
      return pass(c, prefix, c.recv, n.recv_count, c.recv_type, c.root, c.comm);
    case Kind::allgather:
    case Kind::alltoall:
      return pass(c, prefix, c.send, n.send_count, c.send_type, c.recv, n.recv_count, c.recv_type,
                  c.comm);
    case Kind::allgatherv:
      return pass(c, prefix, c.send, n.send_count, c.send_type, c.recv, n.recv_counts,
                  n.recv_places, c.recv_type, c.comm);
    case Kind::alltoallv:
      return pass(c, prefix, c.send, n.send_counts, n.send_places, c.send_type, c.recv,
                  n.recv_counts, n.recv_places, c.recv_type, c.comm);
    case Kind::gatherv:
      return pass(c, prefix, c.send, n.send_count, c.send_type, c.recv, n.recv_counts,
                  n.recv_places, c.recv_type, c.root, c.comm);
    case Kind::scatterv:
      return pass(c, prefix, c.send, n.send_counts, n.send_places, c.send_type, c.recv,
                  n.recv_count, c.recv_type, c.root, c.comm);
    case Kind::allreduce:
    case Kind::reduce:
    case Kind::reduce_scatter_block:
    case Kind::reduce_scatter:
    case Kind::scan:
    case Kind::exscan:
    case Kind::gather:
    case Kind::scatter:
    case Kind::barrier:
      break;
  }
  return pass(c, prefix, c.send, n.send_count, c.send_type, c.recv, n.recv_count, c.recv_type,
              c.root, c.comm);
}

}  // namespace

int pass_on_narrow(const Call& call, const char* prefix) noexcept {
  try {
    if (call.form == Form::persistent) {  // MPI 4 has both kinds of counts
      const std::string name = std::string(prefix) + trait_of(call.kind).name + "_init_c";
      return refuse_missing(call.comm, name.c_str());
    }
    Used used{};
    const int result = look_at(call, used);
    if (result != MPI_SUCCESS) return result;  // MPI has called the error handler
    const Ints ints(call, used);
    if (!ints.fit()) return refuse(call, MPI_ERR_COUNT, "an int does not count what is called for");
    return trait_of(call.kind).reduces ? pass_reduction(call, prefix, ints)
                                       : pass_move(call, prefix, ints);
  } catch (const std::exception& error) {
    return refuse(call, MPI_ERR_OTHER, error.what());
  }
}

int refuse_count(const char* name) noexcept {
  std::fprintf(stderr, "gdrx: MPI has no %s_c: an int does not count what is called for\n", name);
  real::Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_COUNT);
  return MPI_ERR_COUNT;
}

bool fits(List numbers, int count) noexcept {
  for (int i = 0; numbers != nullptr && i < count; ++i) {
    if (!fits(numbers[i])) return false;
  }
  return true;
}

Narrowed::Narrowed(List numbers, int count) noexcept : is_list_(numbers != nullptr) {
  for (int i = 0; is_list_ && i < count; ++i) ints_.push_back(static_cast<int>(numbers[i]));
}

const int* kept(List numbers, int count) noexcept {
  if (numbers == nullptr) return nullptr;
  std::vector<int> ints;
  for (int i = 0; i < count; ++i) ints.push_back(static_cast<int>(numbers[i]));
  return keep_list(ints);
}

}  // namespace gdrx::mpi
