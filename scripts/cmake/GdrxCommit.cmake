# SPDX-License-Identifier: Apache-2.0
# Run at each build: writes commit.h with the commit that is being built, "+dirty" after it if the
# tree has changes, so that a result says what it was measured on. -DSOURCE=... -DHEADER=...
execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=12 --dirty=+dirty
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define GDRX_COMMIT \"${commit}\"\n")
