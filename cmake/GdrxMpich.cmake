# SPDX-License-Identifier: Apache-2.0
# gdrx_mpich: MPICH beside another MPI, by its own compiler wrapper, for tests of programs that use it. There is no such
# target where it is not installed. What we build for users needs none of it.
find_program(GDRX_MPICC_MPICH mpicc.mpich)
find_program(GDRX_MPIRUN_MPICH mpirun.mpich)
if(GDRX_MPICC_MPICH AND GDRX_MPIRUN_MPICH)
  execute_process(COMMAND ${GDRX_MPICC_MPICH} -show OUTPUT_VARIABLE words OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCH " -I([^ ]+)" include "${words}")
  set(mpich_headers ${CMAKE_MATCH_1})
  string(REGEX MATCH " -L([^ ]+)" folder "${words}")
  find_library(GDRX_MPICH_LIBRARY mpich HINTS ${CMAKE_MATCH_1})
  if(GDRX_MPICH_LIBRARY AND EXISTS ${mpich_headers}/mpi.h)
    add_library(gdrx_mpich INTERFACE)
    target_include_directories(gdrx_mpich SYSTEM INTERFACE ${mpich_headers})
    target_link_libraries(gdrx_mpich INTERFACE ${GDRX_MPICH_LIBRARY})
  endif()
endif()
