// SPDX-License-Identifier: Apache-2.0
// Values of the binary interface that MPI 5.0 defines (annex A), libmpi_abi.so.1. A test compares
// them with an MPI's own header.
#pragma once

// X(type, name, value)
// clang-format off
#define GDRX_MPI_HANDLES(X) \
  X(MPI_Comm, MPI_COMM_NULL, 0x100) \
  X(MPI_Comm, MPI_COMM_SELF, 0x102) \
  X(MPI_Comm, MPI_COMM_WORLD, 0x101) \
  X(MPI_Datatype, MPI_DATATYPE_NULL, 0x200) \
  X(MPI_Datatype, MPI_SIGNED_CHAR, 0x244) \
  X(MPI_Datatype, MPI_UNSIGNED_CHAR, 0x245) \
  X(MPI_Datatype, MPI_SHORT, 0x208) \
  X(MPI_Datatype, MPI_UNSIGNED_SHORT, 0x20c) \
  X(MPI_Datatype, MPI_INT, 0x209) \
  X(MPI_Datatype, MPI_UNSIGNED, 0x20d) \
  X(MPI_Datatype, MPI_LONG, 0x20a) \
  X(MPI_Datatype, MPI_UNSIGNED_LONG, 0x20e) \
  X(MPI_Datatype, MPI_LONG_LONG_INT, 0x20b) \
  X(MPI_Datatype, MPI_UNSIGNED_LONG_LONG, 0x20f) \
  X(MPI_Datatype, MPI_INT8_T, 0x240) \
  X(MPI_Datatype, MPI_UINT8_T, 0x241) \
  X(MPI_Datatype, MPI_INT16_T, 0x248) \
  X(MPI_Datatype, MPI_UINT16_T, 0x249) \
  X(MPI_Datatype, MPI_INT32_T, 0x250) \
  X(MPI_Datatype, MPI_UINT32_T, 0x251) \
  X(MPI_Datatype, MPI_INT64_T, 0x258) \
  X(MPI_Datatype, MPI_UINT64_T, 0x259) \
  X(MPI_Datatype, MPI_AINT, 0x201) \
  X(MPI_Datatype, MPI_OFFSET, 0x203) \
  X(MPI_Datatype, MPI_COUNT, 0x202) \
  X(MPI_Datatype, MPI_FLOAT, 0x210) \
  X(MPI_Datatype, MPI_DOUBLE, 0x214) \
  X(MPI_Datatype, MPI_LONG_DOUBLE, 0x220) \
  X(MPI_Datatype, MPI_C_FLOAT_COMPLEX, 0x212) \
  X(MPI_Datatype, MPI_C_DOUBLE_COMPLEX, 0x216) \
  X(MPI_Datatype, MPI_C_LONG_DOUBLE_COMPLEX, 0x224) \
  X(MPI_Datatype, MPI_CXX_FLOAT_COMPLEX, 0x213) \
  X(MPI_Datatype, MPI_CXX_DOUBLE_COMPLEX, 0x217) \
  X(MPI_Datatype, MPI_CXX_LONG_DOUBLE_COMPLEX, 0x225) \
  X(MPI_Datatype, MPI_C_BOOL, 0x238) \
  X(MPI_Datatype, MPI_CXX_BOOL, 0x239) \
  X(MPI_Errhandler, MPI_ERRORS_RETURN, 0x143) \
  X(MPI_Datatype, MPI_BYTE, 0x247) \
  X(MPI_Datatype, MPI_FLOAT_INT, 0x228) \
  X(MPI_Datatype, MPI_DOUBLE_INT, 0x229) \
  X(MPI_Datatype, MPI_LONG_INT, 0x22a) \
  X(MPI_Datatype, MPI_2INT, 0x22b) \
  X(MPI_Datatype, MPI_SHORT_INT, 0x22c) \
  X(MPI_Datatype, MPI_LONG_DOUBLE_INT, 0x22d) \
  X(MPI_Datatype, MPI_INTEGER, 0x219) \
  X(MPI_Datatype, MPI_INTEGER1, 0x2c1) \
  X(MPI_Datatype, MPI_INTEGER2, 0x2c9) \
  X(MPI_Datatype, MPI_INTEGER4, 0x2d1) \
  X(MPI_Datatype, MPI_INTEGER8, 0x2d9) \
  X(MPI_Datatype, MPI_REAL, 0x21a) \
  X(MPI_Datatype, MPI_REAL4, 0x2d2) \
  X(MPI_Datatype, MPI_REAL8, 0x2da) \
  X(MPI_Datatype, MPI_DOUBLE_PRECISION, 0x21c) \
  X(MPI_Datatype, MPI_COMPLEX, 0x21b) \
  X(MPI_Datatype, MPI_COMPLEX8, 0x2db) \
  X(MPI_Datatype, MPI_COMPLEX16, 0x2e3) \
  X(MPI_Datatype, MPI_DOUBLE_COMPLEX, 0x21d) \
  X(MPI_Datatype, MPI_LOGICAL, 0x218) \
  X(MPI_Datatype, MPI_2INTEGER, 0x232) \
  X(MPI_Datatype, MPI_CHAR, 0x243) \
  X(MPI_Datatype, MPI_WCHAR, 0x23c) \
  X(MPI_Datatype, MPI_CHARACTER, 0x21e) \
  X(MPI_Datatype, MPI_2REAL, 0x230) \
  X(MPI_Datatype, MPI_2DOUBLE_PRECISION, 0x231) \
  X(MPI_Request, MPI_REQUEST_NULL, 0x180) \
  X(MPI_Info, MPI_INFO_NULL, 0x130) \
  X(MPI_Op, MPI_SUM, 0x21) \
  X(MPI_Op, MPI_PROD, 0x24) \
  X(MPI_Op, MPI_MIN, 0x22) \
  X(MPI_Op, MPI_MAX, 0x23) \
  X(MPI_Op, MPI_LAND, 0x30) \
  X(MPI_Op, MPI_LOR, 0x31) \
  X(MPI_Op, MPI_LXOR, 0x32) \
  X(MPI_Op, MPI_BAND, 0x28) \
  X(MPI_Op, MPI_BOR, 0x29) \
  X(MPI_Op, MPI_BXOR, 0x2a) \
  X(MPI_Op, MPI_MINLOC, 0x38) \
  X(MPI_Op, MPI_MAXLOC, 0x39)
#define GDRX_MPI_NUMBERS(X) \
  X(int, MPI_SUCCESS, 0) \
  X(int, MPI_CART, 211) \
  X(int, MPI_GRAPH, 212) \
  X(int, MPI_DIST_GRAPH, 213) \
  X(int, MPI_ERR_BUFFER, 1) \
  X(int, MPI_ERR_TYPE, 3) \
  X(int, MPI_ERR_COMM, 5) \
  X(int, MPI_ERR_RANK, 6) \
  X(int, MPI_ERR_OP, 10) \
  X(int, MPI_ERR_ARG, 13) \
  X(int, MPI_ERR_INFO, 34) \
  X(int, MPI_ERR_REQUEST, 7) \
  X(int, MPI_ERR_OTHER, 16) \
  X(int, MPI_ERR_COUNT, 2) \
  X(int, MPI_ANY_SOURCE, -1) \
  X(int, MPI_ANY_TAG, -2) \
  X(int, MPI_PROC_NULL, -3) \
  X(int, MPI_ROOT, -4) \
  X(int, MPI_UNDEFINED, -32766) \
  X(int, MPI_MAX_ERROR_STRING, 512)
#define GDRX_MPI_POINTERS(X) \
  X(void*, MPI_IN_PLACE, 1) \
  X(MPI_Status*, MPI_STATUS_IGNORE, 0)
// clang-format on
