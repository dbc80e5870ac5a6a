# SPDX-License-Identifier: Apache-2.0
# CPack's last step before it closes the packages, each of which lies in a folder by its component's name. What Debian's
# rules ask of each: a copyright, a changelog, and no folders named in libraries, which the loader finds anyway.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # or SOURCE_DATE_EPOCH's
foreach(component ${CPACK_COMPONENTS_ALL})
  set(staged ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component})
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(folder ${staged}${CPACK_PACKAGING_INSTALL_PREFIX}/share/doc/${name})
  file(MAKE_DIRECTORY ${folder})
  file(COPY_FILE ${CPACK_GDRX_COPYRIGHT} ${folder}/copyright)
  file(WRITE ${folder}/changelog.Debian
    "gdrx (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * CHANGELOG.md, in the package gdrx-doc, says what is new.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND gzip -9nf ${folder}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE files LIST_DIRECTORIES false ${staged}/*)
  foreach(file ${files})
    if(NOT IS_SYMLINK ${file} AND (file MATCHES "/bin/[^/]*$" OR file MATCHES "\\.so[.0-9]*$"))
      file(RPATH_REMOVE FILE ${file})
    endif()
  endforeach()
  file(CHMOD ${folder}/copyright ${folder}/changelog.Debian.gz PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
