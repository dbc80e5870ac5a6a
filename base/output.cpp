// SPDX-License-Identifier: Apache-2.0
#include "gdrx/output.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace gdrx {

Result<void> all_printed() {
  if (std::fflush(stdout) != 0) return fail(Errc::system, "cannot write to stdout", errno);
  // A write may have failed long before the last: its error stays with the stream.
  if (std::ferror(stdout) != 0) return fail(Errc::system, "cannot write to stdout");
  return {};
}

Result<void> check_output(const std::string& file) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(file, ignored);
  if (!std::ofstream(file, std::ios::app)) return fail(Errc::system, "write " + file, errno);
  if (!there) std::filesystem::remove(file, ignored);
  return {};
}

}  // namespace gdrx
