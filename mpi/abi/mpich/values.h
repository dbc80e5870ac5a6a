// SPDX-License-Identifier: Apache-2.0
// Values of the binary interface that MPICH, Intel MPI, MVAPICH and Cray MPICH have in common,
// libmpi.so.12 (https://www.mpich.org/abi). A test compares them with an MPI's own header.
#pragma once

// X(type, name, value)
// clang-format off
#define GDRX_MPI_HANDLES(X) \
  X(MPI_Comm, MPI_COMM_NULL, 0x04000000) \
  X(MPI_Comm, MPI_COMM_SELF, 0x44000001) \
  X(MPI_Comm, MPI_COMM_WORLD, 0x44000000) \
  X(MPI_Datatype, MPI_DATATYPE_NULL, 0x0c000000) \
  X(MPI_Datatype, MPI_SIGNED_CHAR, 0x4c000118) \
  X(MPI_Datatype, MPI_UNSIGNED_CHAR, 0x4c000102) \
  X(MPI_Datatype, MPI_SHORT, 0x4c000203) \
  X(MPI_Datatype, MPI_UNSIGNED_SHORT, 0x4c000204) \
  X(MPI_Datatype, MPI_INT, 0x4c000405) \
  X(MPI_Datatype, MPI_UNSIGNED, 0x4c000406) \
  X(MPI_Datatype, MPI_LONG, 0x4c000807) \
  X(MPI_Datatype, MPI_UNSIGNED_LONG, 0x4c000808) \
  X(MPI_Datatype, MPI_LONG_LONG_INT, 0x4c000809) \
  X(MPI_Datatype, MPI_UNSIGNED_LONG_LONG, 0x4c000819) \
  X(MPI_Datatype, MPI_INT8_T, 0x4c000137) \
  X(MPI_Datatype, MPI_UINT8_T, 0x4c00013b) \
  X(MPI_Datatype, MPI_INT16_T, 0x4c000238) \
  X(MPI_Datatype, MPI_UINT16_T, 0x4c00023c) \
  X(MPI_Datatype, MPI_INT32_T, 0x4c000439) \
  X(MPI_Datatype, MPI_UINT32_T, 0x4c00043d) \
  X(MPI_Datatype, MPI_INT64_T, 0x4c00083a) \
  X(MPI_Datatype, MPI_UINT64_T, 0x4c00083e) \
  X(MPI_Datatype, MPI_AINT, 0x4c000843) \
  X(MPI_Datatype, MPI_OFFSET, 0x4c000844) \
  X(MPI_Datatype, MPI_COUNT, 0x4c000845) \
  X(MPI_Datatype, MPI_FLOAT, 0x4c00040a) \
  X(MPI_Datatype, MPI_DOUBLE, 0x4c00080b) \
  X(MPI_Datatype, MPI_LONG_DOUBLE, 0x4c00100c) \
  X(MPI_Datatype, MPI_C_FLOAT_COMPLEX, 0x4c000840) \
  X(MPI_Datatype, MPI_C_DOUBLE_COMPLEX, 0x4c001041) \
  X(MPI_Datatype, MPI_C_LONG_DOUBLE_COMPLEX, 0x4c002042) \
  X(MPI_Datatype, MPI_CXX_FLOAT_COMPLEX, 0x4c000834) \
  X(MPI_Datatype, MPI_CXX_DOUBLE_COMPLEX, 0x4c001035) \
  X(MPI_Datatype, MPI_CXX_LONG_DOUBLE_COMPLEX, 0x4c002036) \
  X(MPI_Datatype, MPI_C_BOOL, 0x4c00013f) \
  X(MPI_Datatype, MPI_CXX_BOOL, 0x4c000133) \
  X(MPI_Errhandler, MPI_ERRORS_RETURN, 0x54000001) \
  X(MPI_Datatype, MPI_BYTE, 0x4c00010d) \
  X(MPI_Datatype, MPI_FLOAT_INT, 0x8c000000) \
  X(MPI_Datatype, MPI_DOUBLE_INT, 0x8c000001) \
  X(MPI_Datatype, MPI_LONG_INT, 0x8c000002) \
  X(MPI_Datatype, MPI_2INT, 0x4c000816) \
  X(MPI_Datatype, MPI_SHORT_INT, 0x8c000003) \
  X(MPI_Datatype, MPI_LONG_DOUBLE_INT, 0x8c000004) \
  X(MPI_Datatype, MPI_INTEGER, 0x4c00041b) \
  X(MPI_Datatype, MPI_INTEGER1, 0x4c00012d) \
  X(MPI_Datatype, MPI_INTEGER2, 0x4c00022f) \
  X(MPI_Datatype, MPI_INTEGER4, 0x4c000430) \
  X(MPI_Datatype, MPI_INTEGER8, 0x4c000831) \
  X(MPI_Datatype, MPI_REAL, 0x4c00041c) \
  X(MPI_Datatype, MPI_REAL4, 0x4c000427) \
  X(MPI_Datatype, MPI_REAL8, 0x4c000829) \
  X(MPI_Datatype, MPI_DOUBLE_PRECISION, 0x4c00081f) \
  X(MPI_Datatype, MPI_COMPLEX, 0x4c00081e) \
  X(MPI_Datatype, MPI_COMPLEX8, 0x4c000828) \
  X(MPI_Datatype, MPI_COMPLEX16, 0x4c00102a) \
  X(MPI_Datatype, MPI_DOUBLE_COMPLEX, 0x4c001022) \
  X(MPI_Datatype, MPI_LOGICAL, 0x4c00041d) \
  X(MPI_Datatype, MPI_2INTEGER, 0x4c000820) \
  X(MPI_Datatype, MPI_CHAR, 0x4c000101) \
  X(MPI_Datatype, MPI_WCHAR, 0x4c00040e) \
  X(MPI_Datatype, MPI_CHARACTER, 0x4c00011a) \
  X(MPI_Datatype, MPI_2REAL, 0x4c000821) \
  X(MPI_Datatype, MPI_2DOUBLE_PRECISION, 0x4c001023) \
  X(MPI_Request, MPI_REQUEST_NULL, 0x2c000000) \
  X(MPI_Info, MPI_INFO_NULL, 0x1c000000) \
  X(MPI_Op, MPI_SUM, 0x58000003) \
  X(MPI_Op, MPI_PROD, 0x58000004) \
  X(MPI_Op, MPI_MIN, 0x58000002) \
  X(MPI_Op, MPI_MAX, 0x58000001) \
  X(MPI_Op, MPI_LAND, 0x58000005) \
  X(MPI_Op, MPI_LOR, 0x58000007) \
  X(MPI_Op, MPI_LXOR, 0x58000009) \
  X(MPI_Op, MPI_BAND, 0x58000006) \
  X(MPI_Op, MPI_BOR, 0x58000008) \
  X(MPI_Op, MPI_BXOR, 0x5800000a) \
  X(MPI_Op, MPI_MINLOC, 0x5800000b) \
  X(MPI_Op, MPI_MAXLOC, 0x5800000c)
#define GDRX_MPI_NUMBERS(X) \
  X(int, MPI_SUCCESS, 0) \
  X(int, MPI_CART, 2) \
  X(int, MPI_GRAPH, 1) \
  X(int, MPI_DIST_GRAPH, 3) \
  X(int, MPI_ERR_BUFFER, 1) \
  X(int, MPI_ERR_TYPE, 3) \
  X(int, MPI_ERR_COMM, 5) \
  X(int, MPI_ERR_RANK, 6) \
  X(int, MPI_ERR_OP, 9) \
  X(int, MPI_ERR_ARG, 12) \
  X(int, MPI_ERR_INFO, 28) \
  X(int, MPI_ERR_REQUEST, 19) \
  X(int, MPI_ERR_OTHER, 15) \
  X(int, MPI_ERR_COUNT, 2) \
  X(int, MPI_ANY_SOURCE, -2) \
  X(int, MPI_ANY_TAG, -1) \
  X(int, MPI_PROC_NULL, -1) \
  X(int, MPI_ROOT, -3) \
  X(int, MPI_UNDEFINED, -32766) \
  X(int, MPI_MAX_ERROR_STRING, 512)
#define GDRX_MPI_POINTERS(X) \
  X(void*, MPI_IN_PLACE, -1) \
  X(MPI_Status*, MPI_STATUS_IGNORE, 1)
// clang-format on
