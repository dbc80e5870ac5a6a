// SPDX-License-Identifier: Apache-2.0
// A collective's hook, by both of its names. Each passes on to the same name behind it.
#pragma once

#include "mpi/call.hpp"
#include "mpi/staging.hpp"

// The arguments that are passed on are those of `call`, where it has them: its buffers may be
// copies, in host memory, of what is on a GPU.
// PASS: how the call goes on to `real_one`, the function behind this one.
#define GDRX_HOOK_BY(name, PARAMETERS, PASS, ...)               \
  GDRX_MPIS int name PARAMETERS {                               \
    static constinit Real<decltype(::name)> real_one(#name);    \
    Call call{__VA_ARGS__};                                     \
    Staging staging;                                            \
    const Hook hook(call, staging);                             \
    if (hook.taken()) return staging.done(hook.result(), call); \
    const Passing passing;                                      \
    return staging.done(hook.passed(PASS), call);               \
  }
#define GDRX_HOOK_AS(name, PARAMETERS, ARGUMENTS, ...) \
  GDRX_HOOK_BY(name, PARAMETERS, real_one ARGUMENTS, __VA_ARGS__)
#define GDRX_HOOK(name, PARAMETERS, ARGUMENTS, ...)            \
  GDRX_HOOK_AS(MPI_##name, PARAMETERS, ARGUMENTS, __VA_ARGS__) \
  GDRX_HOOK_AS(PMPI_##name, PARAMETERS, ARGUMENTS, __VA_ARGS__)
