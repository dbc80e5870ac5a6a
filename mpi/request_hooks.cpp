// SPDX-License-Identifier: Apache-2.0
// What asks for requests: ours of a list are driven, then MPI has the call. It does not know how to
// go on with ours, so what would wait for any of them waits here.
#include <algorithm>
#include <thread>

#include "mpi/copied_requests.hpp"
#include "mpi/persistent.hpp"
#include "mpi/requests.hpp"
#include "mpi/waiting.hpp"

using namespace gdrx::mpi;  // NOLINT: this file defines MPI's functions

#define GDRX_ASK_AS(name, PARAMETERS, ARGUMENTS, LIST, DRIVE) \
  GDRX_MPIS int name PARAMETERS {                             \
    static constinit Real<decltype(::name)> real_one(#name);  \
    const auto ask = [&] {                                    \
      if (any_pending()) DRIVE;                               \
      return real_one ARGUMENTS;                              \
    };                                                        \
    if (!any_copied()) [[likely]]                             \
      return ask();                                           \
    Completion completion LIST;                               \
    return completion.look(ask());                            \
  }
#define GDRX_START_AS(name, PARAMETERS, ARGUMENTS, OURS)     \
  GDRX_MPIS int name PARAMETERS {                            \
    static constinit Real<decltype(::name)> real_one(#name); \
    if (any_persistent() || any_copied()) OURS;              \
    return real_one ARGUMENTS;                               \
  }
#define GDRX_START(name, PARAMETERS, ARGUMENTS, OURS)    \
  GDRX_START_AS(MPI_##name, PARAMETERS, ARGUMENTS, OURS) \
  GDRX_START_AS(PMPI_##name, PARAMETERS, ARGUMENTS, OURS)
// LIST: the requests that are asked for, how many, and whether those that are done stay.
#define GDRX_ASK(name, PARAMETERS, ARGUMENTS, LIST, DRIVE)    \
  GDRX_ASK_AS(MPI_##name, PARAMETERS, ARGUMENTS, LIST, DRIVE) \
  GDRX_ASK_AS(PMPI_##name, PARAMETERS, ARGUMENTS, LIST, DRIVE)

namespace {

// Until `test`, one of MPI's that does not block, has found something, or an error.
template <class Test>
int until(const MPI_Request* list, int count, Test&& test) {
  for (std::uint64_t rounds = 0;; ++rounds) {
    drive(list, count);
    bool found = false;
    const int result = test(found);
    if (found || result != MPI_SUCCESS) return result;
    std::this_thread::yield();
    while_waiting(nullptr, rounds);
  }
}

int wait_any(int n, MPI_Request* q, int* index, MPI_Status* status) {
  return until(q, n, [&](bool& found) {
    int flag = 0;
    const int result = real::Testany(n, q, index, &flag, status);
    found = flag != 0;
    return result;
  });
}

int wait_some(int n, MPI_Request* q, int* found_count, int* indices, MPI_Status* statuses) {
  return until(q, n, [&](bool& found) {
    const int result = real::Testsome(n, q, found_count, indices, statuses);
    found = *found_count != 0;
    return result;
  });
}

// `start_mpis` is MPI's, of a number of requests. With some of ours among them each by itself.
template <class Start>
int start_all(int n, MPI_Request* q, Start&& start_mpis) {
  for (int i = 0; q != nullptr && i < n; ++i) read_copies(q[i]);
  if (n <= 0 || q == nullptr || std::none_of(q, q + n, is_persistent)) return start_mpis(n, q);
  int result = MPI_SUCCESS;
  for (int i = 0; i < n && result == MPI_SUCCESS; ++i) {
    result = is_persistent(q[i]) ? start_persistent(q[i]) : start_mpis(1, &q[i]);
  }
  return result;
}

}  // namespace

// clang-format off
GDRX_START(Start, (MPI_Request* q), (q), return start_all(1, q, [&](int, MPI_Request* one) { return real_one(one); }))
GDRX_START(Startall, (int n, MPI_Request* q), (n, q), return start_all(n, q, [&](int some, MPI_Request* first) { return real_one(some, first); }))
GDRX_START(Cancel, (MPI_Request* q), (q), if (q != nullptr && is_persistent(*q)) return MPI_SUCCESS)  // MPI forbids it
GDRX_START(Request_free, (MPI_Request* q), (q), { forget_persistent(q); if (keep_freed(q)) return MPI_SUCCESS; })
GDRX_ASK(Wait, (MPI_Request* q, MPI_Status* s), (q, s), (q, 1, false), wait_for(q, 1))
GDRX_ASK(Waitall, (int n, MPI_Request* q, MPI_Status* s), (n, q, s), (q, n, false), wait_for(q, n))
GDRX_ASK(Waitany, (int n, MPI_Request* q, int* i, MPI_Status* s), (n, q, i, s), (q, n, false), if (drive(q, n)) return wait_any(n, q, i, s))
GDRX_ASK(Waitsome, (int n, MPI_Request* q, int* c, int* i, MPI_Status* s), (n, q, c, i, s), (q, n, false), if (drive(q, n)) return wait_some(n, q, c, i, s))
GDRX_ASK(Test, (MPI_Request* q, int* f, MPI_Status* s), (q, f, s), (q, 1, false), drive(q, 1))
GDRX_ASK(Testall, (int n, MPI_Request* q, int* f, MPI_Status* s), (n, q, f, s), (q, n, false), drive(q, n))
GDRX_ASK(Testany, (int n, MPI_Request* q, int* i, int* f, MPI_Status* s), (n, q, i, f, s), (q, n, false), drive(q, n))
GDRX_ASK(Testsome, (int n, MPI_Request* q, int* c, int* i, MPI_Status* s), (n, q, c, i, s), (q, n, false), drive(q, n))
GDRX_ASK(Request_get_status, (MPI_Request q, int* f, MPI_Status* s), (q, f, s), (&q, 1, true), drive(&q, 1))
// clang-format on
