// SPDX-License-Identifier: Apache-2.0
// GDRX_MPI: the words that it takes, read once.
#pragma once

namespace gdrx::mpi {

struct Settings {
  bool off = false;      // every call is MPI's
  bool all = false;      // what can be taken is, from the first call
  bool explain = false;  // a table is printed at MPI_Finalize
};

/// A word that is none is a line on stderr, and MPI keeps all calls.
const Settings& settings() noexcept;

}  // namespace gdrx::mpi
