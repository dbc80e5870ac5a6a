# SPDX-License-Identifier: Apache-2.0
# cmake --install: libraries, programs, headers, env.sh, a CMake package and pkg-config files.
include(CMakePackageConfigHelpers)

set(GDRX_ENV_BIN ${CMAKE_BINARY_DIR}/bin)
set(GDRX_ENV_LIB ${CMAKE_BINARY_DIR}/lib)
configure_file(scripts/env.sh.in ${CMAKE_BINARY_DIR}/env.sh @ONLY)
# The installed one is made by the installation, which knows its prefix (cmake --install --prefix).
install(CODE "
  set(GDRX_ENV_BIN \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  set(GDRX_ENV_LIB \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/scripts/env.sh.in\" \"${CMAKE_BINARY_DIR}/install/env.sh\" @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/install/env.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/gdrx)

set(exported gdrx)
set(runnable gdrx_tool)
if(TARGET gdrx_mpi)
  list(APPEND exported gdrx_mpi)
  list(APPEND runnable allreduce_test)
  foreach(name ${GDRX_SISTERS})
    install(FILES ${CMAKE_BINARY_DIR}/bin/${name} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endforeach()
  install(TARGETS net_perf RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL) # where it was built: --target bench
  install(FILES include/gdrx/gdrx_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gdrx)
endif()
foreach(beside mpi_beside mpich_beside)
  if(TARGET ${beside})
    list(APPEND runnable ${beside})
  endif()
endforeach()
set_target_properties(gdrx PROPERTIES EXPORT_NAME gdrx)
if(TARGET gdrx_mpi)
  set_target_properties(gdrx_mpi PROPERTIES EXPORT_NAME mpi)
endif()
foreach(target ${exported})
  target_include_directories(${target} PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
install(TARGETS ${exported} EXPORT gdrx LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(module nccl_net_gdrx gdrx_nccl gdrx_fabric_ucx gdrx_fabric_tcp gdrx_fabric_verbs gdrx_cuda gdrx_gather_mpi gdrx_coll_ompi gdrx_coll_mpich)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
# For programs that look for NCCL by its name: LD_LIBRARY_PATH takes this folder, and nothing else is in it.
install(TARGETS gdrx_nccl_by_name LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gdrx-nccl NAMELINK_SKIP)
install(TARGETS ${runnable} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES include/gdrx/gdrx.h include/gdrx/gdrx_types.h include/gdrx/gdrx_calls.h include/gdrx/gdrx_look.h include/gdrx/communicator.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gdrx)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gdrx)
install(EXPORT gdrx NAMESPACE gdrx:: FILE gdrxTargets.cmake DESTINATION ${package})
file(WRITE ${CMAKE_BINARY_DIR}/install/gdrxConfig.cmake
"include(CMakeFindDependencyMacro)
if(${MPI_CXX_FOUND})
  find_dependency(MPI COMPONENTS CXX)
endif()
include(\${CMAKE_CURRENT_LIST_DIR}/gdrxTargets.cmake)
")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/install/gdrxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/install/gdrxConfig.cmake
  ${CMAKE_BINARY_DIR}/install/gdrxConfigVersion.cmake DESTINATION ${package})
# pkg-config: the prefix is where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(pc "prefix=\${pcfiledir}/${to_prefix}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}
Version: ${PROJECT_VERSION}
")
file(WRITE ${CMAKE_BINARY_DIR}/install/gdrx.pc "${pc}Name: gdrx
Description: Collective communication for GPU and host buffers
Libs: -L\${libdir} -lgdrx
Cflags: -I\${includedir}
")
install(FILES ${CMAKE_BINARY_DIR}/install/gdrx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET gdrx_mpi)
  # MPI's own flags come from its compiler wrapper: mpicc $(pkg-config --cflags --libs gdrx-mpi).
  file(WRITE ${CMAKE_BINARY_DIR}/install/gdrx-mpi.pc "${pc}Name: gdrx-mpi
Description: gdrx communicators from MPI communicators; compile with mpicc or mpicxx
Requires: gdrx
Libs: -L\${libdir} -lgdrx-mpi
")
  install(FILES ${CMAKE_BINARY_DIR}/install/gdrx-mpi.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
