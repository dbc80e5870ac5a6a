// SPDX-License-Identifier: Apache-2.0
#include "tools/support.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "gdrx/config.hpp"

namespace gdrx::tools {
namespace {

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

Result<std::string> read_input(const std::string& name, std::size_t most) {
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) {
    return fail(Errc::invalid_argument, name + " is a folder, not a file");
  }
  const std::unique_ptr<std::FILE, Close> file(name == "-" ? stdin
                                                           : std::fopen(name.c_str(), "rb"));
  if (!file) return fail(Errc::system, "open " + name, errno);
  std::string text;
  std::array<char, 65536> block{};
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(block.data(), 1, block.size(), file.get());
    text.append(block.data(), got);
    if (text.size() > most) {
      return fail(Errc::invalid_argument, fmt::format("{}: larger than {} MiB", name, most >> 20));
    }
  }
  if (std::ferror(file.get()) != 0) return fail(Errc::system, "read " + name, errno);
  return text;
}

Result<void> write_output(const std::string& name, std::string_view bytes) {
  std::ofstream file(name, std::ios::binary | std::ios::trunc);
  if (!file) return fail(Errc::system, "write " + name, errno);
  file << bytes;
  file.close();
  if (!file) return fail(Errc::system, "write " + name, errno);
  return {};
}

std::string environment_value(std::string_view name) {
  for (const std::string& entry : process_environment()) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

Terminal terminal() {
  Terminal found;
  if (isatty(STDOUT_FILENO) != 1) return found;
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) found.columns = window.ws_col;
  found.colour = environment_value("NO_COLOR").empty();
  return found;
}

}  // namespace gdrx::tools
