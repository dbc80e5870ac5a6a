// SPDX-License-Identifier: Apache-2.0
// The program's MPI library. Nothing here links one: its functions and handles are looked up when
// they are first used, behind this library or in what the program has opened by itself, as Python
// does.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <cstdint>

namespace gdrx::mpi {

/// Of a function behind this library; null: the MPI library has none.
void* find_function(const char* name) noexcept;
/// Of an object, as the program sees it, which may have a copy of its own; null: there is none.
void* find_object(const char* name) noexcept;

// Open MPI's handles are addresses of its objects: MPI_INT here is looked up each time.
#ifdef OMPI_PREDEFINED_GLOBAL
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) (static_cast<type>(gdrx::mpi::find_object(#global)))
#endif

/// Where a function of the library is: looked up when it is first asked for, once. What each hook
/// would have a copy of is not in the header.
class Place {
 public:
  explicit constexpr Place(const char* name) noexcept : name_(name) {}
  bool exists() noexcept {
    return at_.load(std::memory_order_relaxed) != nullptr ||
           (!lacks_.load(std::memory_order_relaxed) && look());
  }

 protected:
  void* at() noexcept {
    void* const known = at_.load(std::memory_order_relaxed);  // all find the same
    return known != nullptr ? known : must_find();
  }

 private:
  [[gnu::noinline]] bool look() noexcept;
  [[gnu::noinline]] void* must_find() noexcept;

  const char* name_;
  std::atomic<void*> at_{nullptr};
  std::atomic<bool> lacks_{false};
};

/// A function of the library. A call ends the program with a line if there is none. A program may
/// call one that MPI lacks if it asks by a weak reference, which finds ours: those that are not in
/// every MPI that is served are asked for by exists() before.
template <class Function>
class Real : public Place {
 public:
  using Place::Place;
  template <class... Arguments>
  int operator()(Arguments... arguments) noexcept {
    return reinterpret_cast<Function*>(at())(arguments...);
  }
};

// What we call ourselves: never a hook of ours, nor another tool's.
#define GDRX_REAL(name) inline constinit Real<decltype(::MPI_##name)> name("PMPI_" #name)
namespace real {
GDRX_REAL(Add_error_class);
GDRX_REAL(Add_error_code);
GDRX_REAL(Add_error_string);
GDRX_REAL(Allgather);
GDRX_REAL(Allreduce);
GDRX_REAL(Cartdim_get);
GDRX_REAL(Comm_call_errhandler);
GDRX_REAL(Comm_create_keyval);
GDRX_REAL(Comm_free);
GDRX_REAL(Comm_get_attr);
GDRX_REAL(Comm_group);
GDRX_REAL(Comm_rank);
GDRX_REAL(Comm_remote_size);
GDRX_REAL(Comm_set_attr);
GDRX_REAL(Comm_set_errhandler);
GDRX_REAL(Comm_size);
GDRX_REAL(Comm_split);
GDRX_REAL(Comm_test_inter);
GDRX_REAL(Dist_graph_neighbors_count);
GDRX_REAL(Finalized);
GDRX_REAL(Graph_neighbors_count);
GDRX_REAL(Grequest_complete);
GDRX_REAL(Grequest_start);
GDRX_REAL(Group_free);
GDRX_REAL(Group_translate_ranks);
GDRX_REAL(Iallreduce);
GDRX_REAL(Info_get);
GDRX_REAL(Info_set);
GDRX_REAL(Initialized);
GDRX_REAL(Iprobe);
GDRX_REAL(Pack);
GDRX_REAL(Recv_init);
GDRX_REAL(Request_free);
GDRX_REAL(Request_get_status);
GDRX_REAL(Send);
GDRX_REAL(Sendrecv);
GDRX_REAL(Start);
GDRX_REAL(Status_set_cancelled);
GDRX_REAL(Status_set_elements);
GDRX_REAL(Test);
GDRX_REAL(Testany);
GDRX_REAL(Testsome);
GDRX_REAL(Topo_test);
GDRX_REAL(Type_commit);
GDRX_REAL(Type_contiguous);
GDRX_REAL(Type_create_struct);
GDRX_REAL(Type_free);
GDRX_REAL(Type_get_extent);
GDRX_REAL(Type_get_true_extent);
GDRX_REAL(Type_size_x);
GDRX_REAL(Unpack);
}  // namespace real
#undef GDRX_REAL

/// Before a function that takes the place of MPI's.
#define GDRX_MPIS extern "C" [[gnu::visibility("default")]]

/// A handle as a number: an address in Open MPI, an int in MPICH.
template <class Handle>
std::uintptr_t number_of(Handle handle) noexcept {
  return (std::uintptr_t)handle;  // NOLINT: whichever it is
}
/// And back.
template <class Handle>
Handle handle_of(std::uintptr_t number) noexcept {
  return (Handle)number;  // NOLINT: whichever it is
}

/// A call that MPI has not got, though a program found it here: a line, and the communicator's
/// error handler.
int refuse_missing(MPI_Comm comm, const char* name) noexcept;

/// Whether the program's MPI is one that this library is for. If not, nothing is taken; it ends
/// the program with a line if it cannot even pass calls on.
bool is_served() noexcept;

}  // namespace gdrx::mpi
