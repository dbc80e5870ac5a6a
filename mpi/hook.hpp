// SPDX-License-Identifier: Apache-2.0
// A collective's hook, by both of its names. Each passes on to the same name behind it.
#pragma once

#include "mpi/call.hpp"

#define GDRX_HOOK_AS(name, PARAMETERS, ARGUMENTS, ...)       \
  int name PARAMETERS {                                      \
    static constinit Real<decltype(::name)> real_one(#name); \
    const Hook hook({__VA_ARGS__});                          \
    if (hook.taken()) return hook.result();                  \
    const Passing passing;                                   \
    return hook.passed(real_one ARGUMENTS);                  \
  }
#define GDRX_HOOK(name, PARAMETERS, ARGUMENTS, ...)            \
  GDRX_HOOK_AS(MPI_##name, PARAMETERS, ARGUMENTS, __VA_ARGS__) \
  GDRX_HOOK_AS(PMPI_##name, PARAMETERS, ARGUMENTS, __VA_ARGS__)
