# SPDX-License-Identifier: Apache-2.0
# cmake --install of what people read: documents, man pages, completion. The last two come from the commands when they
# are installed (scripts/manuals), so that a build spends no time on them.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_FOUND OR CMAKE_CROSSCOMPILING)
  message(STATUS "gdrx: without python3, or for another machine: no man pages and no completion are installed")
  return()
endif()

# gdrx_manuals(COMPONENT NAME commands of bin/...): their pages and completion. What is made on the way is removed: root may
# install what another user builds, who must be able to install again.
function(gdrx_manuals component name)
  set(folder ${CMAKE_BINARY_DIR}/install/manuals/${name})
  list(TRANSFORM ARGN PREPEND "${CMAKE_BINARY_DIR}/bin/" OUTPUT_VARIABLE commands)
  string(JOIN "\" \"" commands ${commands})
  install(CODE "
    file(REMOVE_RECURSE \"${folder}\")
    execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/scripts/manuals\" --version ${PROJECT_VERSION}
      \"${folder}\" \"${commands}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
  install(DIRECTORY ${folder}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT ${component})
  install(DIRECTORY ${folder}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT ${component})
  install(DIRECTORY ${folder}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT ${component})
  install(CODE "file(REMOVE_RECURSE \"${folder}\")" COMPONENT ${component})
endfunction()
gdrx_manuals(tools gdrx gdrx)
if(TARGET allreduce_test)
  gdrx_manuals(mpi tests allreduce_test ${GDRX_SISTERS})
endif()
