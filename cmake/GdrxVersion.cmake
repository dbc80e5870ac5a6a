# SPDX-License-Identifier: Apache-2.0
# commit.h, written at each build, for what links gdrx_version.
set(folder ${CMAKE_BINARY_DIR}/version)
add_custom_target(gdrx_commit BYPRODUCTS ${folder}/commit.h
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DHEADER=${folder}/commit.h
    -P ${PROJECT_SOURCE_DIR}/cmake/GdrxCommit.cmake)
add_library(gdrx_version INTERFACE)
target_include_directories(gdrx_version INTERFACE ${folder})
target_compile_definitions(gdrx_version INTERFACE GDRX_VERSION_TEXT="${PROJECT_VERSION}")
add_dependencies(gdrx_version gdrx_commit)

# What includes commit.h is compiled at each commit: alone, not with others.
function(gdrx_has_commit)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
