# SPDX-License-Identifier: Apache-2.0
# Options and the flags that every target of ours is built with.
option(GDRX_BUILD_TESTS "Build the tests" OFF)
option(GDRX_FUZZ "Build the libFuzzer targets (clang)" OFF)
option(GDRX_CUDA "Build the GPU kernels where there is a CUDA toolkit" ON)
option(GDRX_NVTX "Ranges for NVTX tools (Nsight Systems) where its headers are" ON)
option(GDRX_WERROR "Warnings are errors" ON)
set(GDRX_TEST_PARTS "" CACHE STRING "Folders of tests/ to build, all if empty")
set(GDRX_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
option(GDRX_COVERAGE "Instrument for line coverage" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON) # statement expressions, in GDRX_TRY alone
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # One checkout finds what another has compiled: paths below the sources count as relative ones.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_library(gdrx_flags INTERFACE)
set(cxx_flags -Wall -Wextra -Wconversion -Wswitch-enum -Wnon-virtual-dtor -ffp-contract=off
  -fno-math-errno $<$<BOOL:${GDRX_WERROR}>:-Werror>)
target_compile_options(gdrx_flags INTERFACE "$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:${cxx_flags}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps inside std::string that are not there (GCC bug 105651).
  target_compile_options(gdrx_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # From 256 MB on GCC looks for what it can free, for a tenth of its time. Left alone, the largest source takes 0.9 GB, not 0.7.
  target_compile_options(gdrx_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Sources that are compiled together are taken for headers of that one.
  target_compile_options(gdrx_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(GDRX_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # ThreadSanitizer does not model fences; ours order atomics only, which it checks by themselves.
  target_compile_options(gdrx_flags INTERFACE -Wno-tsan)
endif()
if(GDRX_SANITIZE MATCHES "address|undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC loses track of the standard's own initialisations between its checks (GCC bug 105562).
  target_compile_options(gdrx_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(GDRX_SANITIZE)
  target_compile_options(gdrx_flags INTERFACE -fsanitize=${GDRX_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all -g)
  target_link_options(gdrx_flags INTERFACE -fsanitize=${GDRX_SANITIZE})
endif()
if(GDRX_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "GDRX_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  target_compile_options(gdrx_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(gdrx_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(GDRX_COVERAGE)
  target_compile_options(gdrx_flags INTERFACE --coverage -O0 -g)
  target_link_options(gdrx_flags INTERFACE --coverage)
endif()

# gdrx_library(NAME STATIC|SHARED|MODULE sources...): a library of ours with the flags above, and the
# alias gdrx::NAME without the gdrx_ before it.
function(gdrx_library name kind)
  add_library(${name} ${kind} ${ARGN})
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:gdrx_flags>)
  target_include_directories(${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    PRIVATE ${PROJECT_SOURCE_DIR})
  if(TARGET gdrx_precompiled)
    target_precompile_headers(${name} REUSE_FROM gdrx_precompiled)
  endif()
  string(REGEX REPLACE "^gdrx_" "" alias ${name})
  if(NOT kind STREQUAL MODULE)
    add_library(gdrx::${alias} ALIAS ${name})
  endif()
endfunction()

# What is read, shown and done once a command or a connection: the compiler's time is more than its own, and -Og, which
# inlines little, takes the least of it; -O0 writes more code, and takes longer.
function(gdrx_cold)
  foreach(name ${ARGN})
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    if(TARGET gdrx_precompiled_cold)
      target_precompile_headers(${name} REUSE_FROM gdrx_precompiled_cold)
    endif()
  endforeach()
endfunction()

# A test is compiled as often as it is run: the same, with GoogleTest's headers. GCC takes more for not initialised there.
function(gdrx_cold_test name)
  target_compile_options(${name} PRIVATE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Og$<SEMICOLON>-Wno-maybe-uninitialized>)
  if(TARGET gdrx_precompiled_tests)
    target_precompile_headers(${name} REUSE_FROM gdrx_precompiled_tests)
  endif()
endfunction()

# gdrx_cold_sources(NAME sources...): the same for what of a library no message passes through. After its other libraries.
function(gdrx_cold_sources name)
  gdrx_library(${name}_cold OBJECT ${ARGN})
  get_target_property(libraries ${name} LINK_LIBRARIES)
  target_link_libraries(${name}_cold PRIVATE ${libraries})
  target_include_directories(${name}_cold SYSTEM PRIVATE $<TARGET_PROPERTY:${name},INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>)
  gdrx_cold(${name}_cold)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}_cold>)
endfunction()

function(gdrx_executable name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE gdrx_flags)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  # As libraries are, so that both can use the same precompiled headers.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
  if(TARGET gdrx_precompiled)
    target_precompile_headers(${name} REUSE_FROM gdrx_precompiled)
  endif()
endfunction()
