# SPDX-License-Identifier: Apache-2.0
# Every header compiles by itself: one object a header, checked as any target of ours is.
file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/gdrx/*.h ${PROJECT_SOURCE_DIR}/include/gdrx/*.hpp
  ${PROJECT_SOURCE_DIR}/collectives/*.hpp ${PROJECT_SOURCE_DIR}/transport/bootstrap/*.hpp
  ${PROJECT_SOURCE_DIR}/transport/fabric/*.hpp ${PROJECT_SOURCE_DIR}/transport/memory/*.hpp)
if(NOT TARGET MPI::MPI_CXX)
  list(FILTER headers EXCLUDE REGEX mpi)
endif()
set(units)
foreach(header ${headers})
  string(REGEX REPLACE "^include/" "" included ${header})
  string(MAKE_C_IDENTIFIER ${header} name)
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp)
  # Twice: a header that cannot be included again has no guard.
  file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${included}\"\n#include \"${included}\"\n")
  list(APPEND units ${unit})
endforeach()
add_library(gdrx_headers_alone OBJECT ${units})
target_include_directories(gdrx_headers_alone PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(gdrx_headers_alone PRIVATE -O0)
target_link_libraries(gdrx_headers_alone PRIVATE gdrx_flags gdrx_base)
if(TARGET MPI::MPI_CXX)
  target_link_libraries(gdrx_headers_alone PRIVATE MPI::MPI_CXX)
endif()
