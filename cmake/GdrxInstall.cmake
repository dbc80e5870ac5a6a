# SPDX-License-Identifier: Apache-2.0
# cmake --install: libraries, programs, headers, env.sh, a CMake package, pkg-config files, documents. Each part has a
# component, of which scripts/package makes a Debian package: see GdrxPackages. env.sh is in none, as /usr needs none.
include(CMakePackageConfigHelpers)

set(GDRX_ENV_BIN ${CMAKE_BINARY_DIR}/bin)
set(GDRX_ENV_LIB ${CMAKE_BINARY_DIR}/lib)
configure_file(scripts/env.sh.in ${CMAKE_BINARY_DIR}/env.sh @ONLY)
# The installed one is made by the installation, which knows its prefix (cmake --install --prefix).
install(CODE "
  set(GDRX_ENV_BIN \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  set(GDRX_ENV_LIB \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/scripts/env.sh.in\" \"${CMAKE_BINARY_DIR}/install/env.sh\" @ONLY)
  file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/gdrx\" TYPE FILE FILES \"${CMAKE_BINARY_DIR}/install/env.sh\")
  file(REMOVE \"${CMAKE_BINARY_DIR}/install/env.sh\")" COMPONENT environment)

# gdrx_install(COMPONENT targets...): programs and libraries, those that are built here.
function(gdrx_install component)
  foreach(target ${ARGN})
    if(TARGET ${target})
      get_target_property(kind ${target} TYPE)
      if(kind STREQUAL MODULE_LIBRARY) # CMake gives modules no name, by which a package's tools know a library
        target_link_options(${target} PRIVATE LINKER:-soname,$<TARGET_FILE_NAME:${target}>)
      endif()
      install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component})
    endif()
  endforeach()
endfunction()
# gdrx_install_library(TARGET NAME COMPONENT DEVELOPERS): one that programs link; its link and its CMake targets for developers.
function(gdrx_install_library target name component developers)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${target} EXPORT ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT ${component} NAMELINK_COMPONENT ${developers})
endfunction()

gdrx_install_library(gdrx gdrx runtime dev)
gdrx_install(runtime gdrx_fabric_tcp gdrx_fabric_verbs gdrx_fabric_ucx)
gdrx_install(cuda gdrx_cuda)
gdrx_install(tools gdrx_tool)
gdrx_install(nccl nccl_net_gdrx gdrx_nccl)
# For programs that look for NCCL by its name: LD_LIBRARY_PATH takes this folder, and nothing else is in it.
install(TARGETS gdrx_nccl_by_name LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gdrx-nccl COMPONENT nccl NAMELINK_SKIP)
gdrx_install(mpi gdrx_gather_mpi gdrx_coll_ompi mpi_beside)
gdrx_install(mpich gdrx_coll_mpich gdrx_coll_standard mpich_beside)
install(FILES include/gdrx/gdrx.h include/gdrx/gdrx_types.h include/gdrx/gdrx_calls.h include/gdrx/gdrx_look.h include/gdrx/mpi_enqueue.h include/gdrx/communicator.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gdrx COMPONENT dev)
if(TARGET gdrx_mpi)
  gdrx_install_library(gdrx_mpi mpi mpi mpi_dev)
  gdrx_install(mpi allreduce_test)
  foreach(name ${GDRX_SISTERS})
    install(FILES ${CMAKE_BINARY_DIR}/bin/${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mpi)
  endforeach()
  # Where it was built: --target bench.
  install(TARGETS net_perf RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mpi OPTIONAL)
  install(FILES include/gdrx/gdrx_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gdrx COMPONENT mpi_dev)
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gdrx)
install(EXPORT gdrx NAMESPACE gdrx:: FILE gdrxTargets.cmake DESTINATION ${package} COMPONENT dev)
if(TARGET gdrx_mpi)
  install(EXPORT gdrx_mpi NAMESPACE gdrx:: FILE gdrxMpiTargets.cmake DESTINATION ${package} COMPONENT mpi_dev)
endif()
# gdrx::mpi is there where its files are and the program's project finds MPI: find_package(gdrx COMPONENTS mpi) insists.
file(WRITE ${CMAKE_BINARY_DIR}/install/gdrxConfig.cmake
"include(\${CMAKE_CURRENT_LIST_DIR}/gdrxTargets.cmake)
if(EXISTS \${CMAKE_CURRENT_LIST_DIR}/gdrxMpiTargets.cmake)
  find_package(MPI QUIET COMPONENTS CXX)
  if(TARGET MPI::MPI_CXX)
    include(\${CMAKE_CURRENT_LIST_DIR}/gdrxMpiTargets.cmake)
    set(gdrx_mpi_FOUND TRUE)
  endif()
endif()
foreach(component \${gdrx_FIND_COMPONENTS})
  if(gdrx_FIND_REQUIRED_\${component} AND NOT gdrx_\${component}_FOUND)
    set(gdrx_FOUND FALSE)
    set(gdrx_NOT_FOUND_MESSAGE \"gdrx's component \${component} is not here: mpi needs its package and an MPI for C++\")
  endif()
endforeach()
")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/install/gdrxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/install/gdrxConfig.cmake
  ${CMAKE_BINARY_DIR}/install/gdrxConfigVersion.cmake DESTINATION ${package} COMPONENT dev)
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
install(FILES ${CMAKE_BINARY_DIR}/install/gdrx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
if(TARGET gdrx_mpi)
  # MPI's own flags come from its compiler wrapper: mpicc $(pkg-config --cflags --libs gdrx-mpi).
  file(WRITE ${CMAKE_BINARY_DIR}/install/gdrx-mpi.pc "${pc}Name: gdrx-mpi
Description: gdrx communicators from MPI communicators; compile with mpicc or mpicxx
Requires: gdrx
Libs: -L\${libdir} -lgdrx-mpi
")
  install(FILES ${CMAKE_BINARY_DIR}/install/gdrx-mpi.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT mpi_dev)
endif()
include(GdrxDocuments)
include(GdrxPackages)
