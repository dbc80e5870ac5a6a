# SPDX-License-Identifier: Apache-2.0
# Everything from outside. What is optional sets GDRX_HAVE_X and a reason for the summary.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
add_library(gdrx_fmt INTERFACE)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  set(GDRX_COMPILES_FMT ON) # base/format.cpp
  target_include_directories(gdrx_fmt SYSTEM INTERFACE
    $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  target_link_libraries(gdrx_fmt INTERFACE fmt::fmt-header-only)
endif()
find_package(tl-expected REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(MPI COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS SSL Crypto) # keys and TLS between ranks
find_package(LibArchive REQUIRED) # snapshots, which zlib unpacks
find_package(ZLIB REQUIRED)
find_package(pugixml 1.11 REQUIRED)   # files of topologies
find_path(UCX_INCLUDE_DIR ucp/api/ucp.h)
find_library(UCX_UCP_LIBRARY libucp.so) # never the archive: a module is shared
find_library(UCX_UCS_LIBRARY libucs.so) # never the archive: a module is shared
find_library(UCX_UCT_LIBRARY libuct.so) # never the archive: a module is shared
if(UCX_INCLUDE_DIR AND UCX_UCP_LIBRARY)
  add_library(gdrx_ucx INTERFACE)
  target_include_directories(gdrx_ucx SYSTEM INTERFACE ${UCX_INCLUDE_DIR})
  target_link_libraries(gdrx_ucx INTERFACE ${UCX_UCP_LIBRARY} ${UCX_UCT_LIBRARY} ${UCX_UCS_LIBRARY})
endif()
if(GDRX_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Hopper's machine code, and PTX for what comes after it. Nothing older was ever run.
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit)
  endif()
endif()
# Headers alone, which come with the CUDA toolkit; no nvcc is needed for them.
if(GDRX_NVTX)
  find_path(NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include)
endif()
if(GDRX_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck)
  find_package(benchmark)
endif()
