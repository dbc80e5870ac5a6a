# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for aarch64 against a sysroot, and runs what it makes by qemu-user: scripts/aarch64 makes the sysroot.
#   cmake --toolchain cmake/aarch64.cmake -DGDRX_SYSROOT=DIR ...
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GDRX_SYSROOT GDRX_QEMU)
set(CMAKE_SYSROOT "${GDRX_SYSROOT}")
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CUDA_COMPILER NOTFOUND) # kernels are for emulated GPUs
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${GDRX_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${GDRX_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${GDRX_SYSROOT}/usr/share/pkgconfig")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${GDRX_SYSROOT}" ${GDRX_QEMU})
