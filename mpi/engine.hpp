// SPDX-License-Identifier: Apache-2.0
// libgdrx.so, opened when the first communicator is made: a preloaded library is in every program
// that a job starts, shells too.
#pragma once

#include "collectives/api/c_mpi.hpp"

// Each is a pointer of that name in Engine.
// clang-format off
#define GDRX_ENGINE(X) \
  X(AllGather) X(AllGatherv) X(AllReduce) X(AllToAll) \
  X(AllToAllv) X(Barrier) X(Broadcast) X(CommAbort) \
  X(CommDestroy) X(CommFinalize) X(CommGetAsyncError) X(CommInitAllGather) \
  X(CommOnWait) X(Exscan) X(Gather) X(Gatherv) X(GetLastError) \
  X(Recv) X(Reduce) X(ReduceScatter) X(ReduceScatterv) \
  X(Scan) X(Scatter) X(Scatterv) X(Send) X(Test)
// clang-format on

namespace gdrx::mpi {

struct Engine {
#define GDRX_MEMBER(name) decltype(&::gdrx##name) name = nullptr;
  GDRX_ENGINE(GDRX_MEMBER)
#undef GDRX_MEMBER
};

/// Null: it could not be opened, and a line has said why.
const Engine* engine() noexcept;

}  // namespace gdrx::mpi
