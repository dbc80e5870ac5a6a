// SPDX-License-Identifier: Apache-2.0
// Types of the binary interface of libmpi_abi.so.1: a handle is an address of nothing.
#pragma once

#include <cstdint>

using MPI_Comm = struct MPI_ABI_Comm*;
using MPI_Datatype = struct MPI_ABI_Datatype*;
using MPI_Errhandler = struct MPI_ABI_Errhandler*;
using MPI_Win = struct MPI_ABI_Win*;
using MPI_File = struct MPI_ABI_File*;
using MPI_Offset = std::int64_t;
using MPI_Group = struct MPI_ABI_Group*;
using MPI_Info = struct MPI_ABI_Info*;
using MPI_Message = struct MPI_ABI_Message*;
using MPI_Op = struct MPI_ABI_Op*;
using MPI_Request = struct MPI_ABI_Request*;
using MPI_Aint = std::intptr_t;
using MPI_Count = std::int64_t;

struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int reserved[5];
};
