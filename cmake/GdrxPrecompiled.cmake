# SPDX-License-Identifier: Apache-2.0
# The standard's and fmt's headers are read once, not once a source: a third of the compiler's time.
# None of ours is among them, so that a change of ours compiles what includes it and no more. Clang
# builds have none: there a source that lacks an include fails. Nor are CLI11 and nlohmann_json: what
# they instantiate at namespace scope is compiled into each source that reads them, used or not.
option(GDRX_PRECOMPILE "Precompile the standard's headers" ON)
if(NOT GDRX_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  return()
endif()

# GCC forgets which lines of them are a system's, and reports what it only suspects in them.
target_compile_options(gdrx_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)

# gdrx_precompiled(NAME headers... LIBS libraries...): of targets with gdrx_flags and -fPIC.
function(gdrx_precompiled name)
  cmake_parse_arguments(arg "" "" "LIBS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "// What owns the precompiled headers.\n")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE gdrx_flags ${arg_LIBS})
  target_precompile_headers(${name} PRIVATE ${arg_UNPARSED_ARGUMENTS})
endfunction()

set(headers <algorithm> <array> <atomic> <charconv> <chrono> <cstring> <deque> <filesystem> <fstream> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread> <tuple> <utility> <vector>
  <fmt/format.h> <tl/expected.hpp>)
gdrx_precompiled(gdrx_precompiled ${headers} LIBS gdrx_fmt tl::expected)
# GCC compiles the functions of precompiled headers as those were compiled.
gdrx_precompiled(gdrx_precompiled_cold ${headers} LIBS gdrx_fmt tl::expected)
target_compile_options(gdrx_precompiled_cold PRIVATE $<$<CONFIG:Release>:-Og>) # as gdrx_cold()
if(GDRX_BUILD_TESTS)
  gdrx_precompiled(gdrx_precompiled_tests ${headers} <gtest/gtest.h> LIBS gdrx_fmt tl::expected GTest::gtest)
  target_compile_options(gdrx_precompiled_tests PRIVATE $<$<CONFIG:Release>:-Og>) # as gdrx_cold_test()
endif()
