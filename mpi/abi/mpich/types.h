// SPDX-License-Identifier: Apache-2.0
// Types of the binary interface of libmpi.so.12.
#pragma once

using MPI_Comm = int;
using MPI_Datatype = int;
using MPI_Errhandler = int;
using MPI_Win = int;
using MPI_File = struct ADIOI_FileD*;
using MPI_Offset = long;
using MPI_Group = int;
using MPI_Info = int;
using MPI_Message = int;
using MPI_Op = int;
using MPI_Request = int;
using MPI_Aint = long;
using MPI_Count = long;

struct MPI_Status {
  int count_low;
  int count_high_and_cancelled;
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
};
