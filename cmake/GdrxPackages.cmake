# SPDX-License-Identifier: Apache-2.0
# Debian packages by CPack, one a component of GdrxInstall: scripts/package deb. Their dependencies on other packages are
# what dpkg-shlibdeps finds; those on each other stand here.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gdrx)
set(CPACK_PACKAGE_VENDOR gdrx)
# Who makes packages is named in them, as Debian's own tools take it; nobody reads the default's address.
set(GDRX_MAINTAINER "gdrx maintainers <maintainers@gdrx.invalid>" CACHE STRING "Maintainer of the Debian packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_CONTACT ${GDRX_MAINTAINER})
if(NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/GdrxStaged.cmake)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)

# gdrx_package(COMPONENT NAME SECTION "one line" "text" components that it needs...)
function(gdrx_package component name section line text)
  string(TOUPPER ${component} upper)
  foreach(one "DEBIAN_${upper}_PACKAGE_NAME|${name}" "DEBIAN_${upper}_PACKAGE_SECTION|${section}"
      "COMPONENT_${upper}_DISPLAY_NAME|${line}" "COMPONENT_${upper}_DESCRIPTION|${line}\n${text}")
    string(REPLACE "|" ";" words "${one}")
    list(POP_FRONT words variable)
    set(CPACK_${variable} "${words}" PARENT_SCOPE)
  endforeach()
  set(CPACK_COMPONENT_${upper}_DEPENDS ${ARGN} PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

set(what "gdrx sums and moves data between the processes of a parallel\nprogram, in host memory and between GPUs.")
gdrx_package(runtime libgdrx0 libs "collective communication for host memory and GPUs"
  "${what}\n\nThis package has the library, and its modules for TCP, RDMA and UCX.")
gdrx_package(dev libgdrx-dev libdevel "collective communication: files for developers"
  "${what}\n\nThis package has headers, a CMake package and a pkg-config file." runtime)
gdrx_package(tools gdrx-tools utils "GPUs, NICs and the paths between them: shown, checked and measured"
  "${what}\n\nThis package has the command gdrx: gdrx topo, gdrx doctor, gdrx perf and others.")
gdrx_package(nccl gdrx-nccl libs "network plugin for NCCL, and NCCL's API by gdrx"
  "${what}\n\nPrograms that use NCCL take the plugin by NCCL_NET_PLUGIN=gdrx, or gdrx in NCCL's place." runtime)
gdrx_package(doc gdrx-doc doc "collective communication: documents" "${what}\n\nThis package has the documents.")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
if(TARGET gdrx_cuda)
  gdrx_package(cuda libgdrx0-cuda libs "collective communication: kernels for NVIDIA GPUs"
    "${what}\n\nThis package has the CUDA kernels. They need NVIDIA's driver and no toolkit." runtime)
endif()
if(TARGET gdrx_mpi)
  set(name mpich)
  set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS mpich)
  if(TARGET gdrx_coll_ompi)
    set(name openmpi)
    set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS openmpi-bin)
  endif()
  gdrx_package(mpi gdrx-mpi-${name} libs "collective communication: for programs of this MPI"
    "${what}\n\nThis package has the objects that serve MPI programs, and allreduce_test." runtime)
  gdrx_package(mpi_dev libgdrx-mpi-dev libdevel "collective communication under MPI: files for developers"
    "${what}\n\nThis package has the header and the CMake and pkg-config files of gdrx under MPI." dev mpi)
  set(CPACK_DEBIAN_MPI_DEV_PACKAGE_DEPENDS "lib${name}-dev")
endif()
if(TARGET gdrx_coll_mpich AND NOT "${name}" STREQUAL mpich)
  gdrx_package(mpich gdrx-mpi-mpich libs "collective communication: for programs of MPICH and Intel MPI"
    "${what}\n\nThis package has the objects that serve programs of MPICH, Intel MPI and MPI 5's binary interface." runtime)
endif()
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "libgdrx0-cuda, ibverbs-providers")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "gdrx-mpi-openmpi | gdrx-mpi-mpich, libgdrx0-cuda, gdrx-doc")

# What dpkg-shlibdeps reads of libraries that programs link, and what lets dpkg renew the loader's list.
set(folder ${CMAKE_BINARY_DIR}/install/debian)
file(WRITE ${folder}/triggers "activate-noawait ldconfig\n")
file(WRITE ${folder}/runtime/shlibs "libgdrx 0 libgdrx0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${folder}/mpi/shlibs "libgdrx-mpi 0 ${CPACK_DEBIAN_MPI_PACKAGE_NAME} (>= ${PROJECT_VERSION})\n")
foreach(component RUNTIME CUDA NCCL MPI MPICH)
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA ${folder}/triggers)
endforeach()
list(APPEND CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${folder}/runtime/shlibs)
list(APPEND CPACK_DEBIAN_MPI_PACKAGE_CONTROL_EXTRA ${folder}/mpi/shlibs)
set(CPACK_GDRX_COPYRIGHT ${PROJECT_SOURCE_DIR}/scripts/debian/copyright) # for GdrxStaged
include(CPack)
