/* SPDX-License-Identifier: Apache-2.0
 *
 * gdrx: versions, handles, results, element types and operators. Part of gdrx.h, which includes it.
 */
#ifndef GDRX_GDRX_TYPES_H
#define GDRX_GDRX_TYPES_H

#define GDRX_VERSION_MAJOR 0
#define GDRX_VERSION_MINOR 1
#define GDRX_VERSION_PATCH 0
#define GDRX_VERSION (GDRX_VERSION_MAJOR * 10000 + GDRX_VERSION_MINOR * 100 + GDRX_VERSION_PATCH)

#if defined(__GNUC__)
#define GDRX_API __attribute__((visibility("default")))
#else
#define GDRX_API
#endif

typedef struct gdrxComm* gdrxComm_t;
typedef struct gdrxRequest* gdrxRequest_t;
typedef struct gdrxRegistration* gdrxRegistration_t;
typedef struct gdrxStream* gdrxStream_t; /* a cudaStream_t, or one of these */
#define gdrxStreamNone ((gdrxStream_t)0) /* NULL: the call is in no stream */
/* CUDA's default stream, cudaStreamLegacy, which CUDA also knows as 0. */
#define gdrxStreamDefault ((gdrxStream_t)0x1)

typedef enum {
  gdrxSuccess = 0,
  gdrxInvalidArgument = 1, /* a bad value; nothing was started */
  gdrxSystemError = 2,     /* the operating system or a library refused */
  gdrxUnsupported = 3,     /* not in this build or not on this machine */
  gdrxTimeout = 4,         /* a deadline passed */
  gdrxAborted = 5,         /* gdrxCommAbort here or on another rank */
  gdrxPeerLost = 6,        /* another rank died; the message names it */
  gdrxMismatch = 7,        /* ranks called with different arguments; the message names them */
  gdrxProtocolError = 8,   /* a peer sent something impossible */
  gdrxInternalError = 9,   /* a defect of gdrx */
  gdrxInProgress = 10      /* not an error: not done yet */
} gdrxResult_t;

/* A pair is a C struct of a value and an int, its index. GPU memory has no long double. */
typedef enum {
  gdrxInt8 = 0,
  gdrxUint8 = 1,
  gdrxInt32 = 2,
  gdrxUint32 = 3,
  gdrxInt64 = 4,
  gdrxUint64 = 5,
  gdrxFloat16 = 6,
  gdrxBfloat16 = 7,
  gdrxFloat32 = 8,
  gdrxFloat64 = 9,
  gdrxFloat8e4m3 = 10,
  gdrxFloat8e5m2 = 11,
  gdrxInt16 = 12,
  gdrxUint16 = 13,
  gdrxBool = 14,       /* a byte, 0 or 1 */
  gdrxComplex64 = 15,  /* two floats */
  gdrxComplex128 = 16, /* two doubles */
  gdrxLongDouble = 17,
  gdrxByte = 18,
  gdrxFloat8e4m3fnuz = 19,
  gdrxFloat8e5m2fnuz = 20,
  gdrxFloatInt = 21,
  gdrxDoubleInt = 22,
  gdrxLongInt = 23,
  gdrx2Int = 24,
  gdrxShortInt = 25,
  gdrxLongDoubleInt = 26
} gdrxDataType_t;

/* What a type takes; another operator is gdrxInvalidArgument.
 *   integers (int8 to uint64)   sum prod min max avg land lor lxor band bor bxor premulsum user
 *   floats (half to longdouble) sum prod min max avg premulsum user
 *   complex                     sum prod avg premulsum user
 *   bool                        land lor lxor band bor bxor user
 *   byte                        band bor bxor user
 *   pairs                       minloc maxloc user
 * Minloc and maxloc give the value with its index, of equal values the lowest index; a NaN comes
 * before every number. Calls of CUDA memory run on GPUs for the types before gdrxInt16 and the
 * operators before gdrxLand, and what adds nothing for every type; else they are staged. */
typedef enum {
  gdrxSum = 0,
  gdrxProd = 1,
  gdrxMin = 2,
  gdrxMax = 3,
  gdrxAvg = 4,
  gdrxLand = 5, /* logical: a result is 0 or 1 */
  gdrxLor = 6,
  gdrxLxor = 7,
  gdrxBand = 8, /* bitwise */
  gdrxBor = 9,
  gdrxBxor = 10,
  gdrxMinloc = 11,
  gdrxMaxloc = 12,
  gdrxMaxRedOp = 0x7fffffff /* above gdrxMaxloc are those that gdrxRedOpCreate makes */
} gdrxRedOp_t;

#endif
