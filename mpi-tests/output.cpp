// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/output.hpp"

#include <cerrno>
#include <cstdio>

namespace gdrx::bench {

Result<void> all_printed() {
  if (std::fflush(stdout) != 0) return fail(Errc::system, "cannot write to stdout", errno);
  // A write may have failed long before the last: its error stays with the stream.
  if (std::ferror(stdout) != 0) return fail(Errc::system, "cannot write to stdout");
  return {};
}

}  // namespace gdrx::bench
