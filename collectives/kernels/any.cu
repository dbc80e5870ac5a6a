// SPDX-License-Identifier: Apache-2.0
// What kernels of Any call, once for all of them.
#define GDRX_BODIES_OF_ANY
#include "collectives/kernels/combine.cuh"
