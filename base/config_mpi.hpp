// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gdrx/config.hpp"

namespace gdrx {

/// The rows for GDRX_MPI and GDRX_MPI_TABLE.
Variable mpi_variable();
Variable mpi_table_variable();

}  // namespace gdrx
