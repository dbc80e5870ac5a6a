# SPDX-License-Identifier: Apache-2.0
# Run at each build: writes commit.h with the commit that is being built, "+dirty" after it if the
# tree has changes, so that a result says what it was measured on. -DSOURCE=... -DHEADER=...
# `git archive` writes its commit here, into the source tarball: see .gitattributes.
set(archived "$Format:%H$")
if(archived MATCHES "^[0-9a-f]+$")
  string(SUBSTRING ${archived} 0 12 commit)
else()
  execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=12 --dirty=+dirty
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    set(commit "unknown")
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define GDRX_COMMIT \"${commit}\"\n")
