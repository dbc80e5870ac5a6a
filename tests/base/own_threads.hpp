// SPDX-License-Identifier: Apache-2.0
// The threads of this process that gdrx has made, and what the kernel says of each.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace gdrx::test {

/// Of the kernel's rows about a thread that of this name.
inline std::string row_of(const std::filesystem::path& task, const std::string& name) {
  std::ifstream status(task / "status");
  const std::string key = name + ":\t";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return "?";
}

/// One of the kernel's rows by the name of a thread, of those that gdrx names: which CPUs it may
/// run on, as "0-3". "differ": threads of one name have different ones.
inline std::map<std::string, std::string> own_threads(
    const std::string& row = "Cpus_allowed_list") {
  std::map<std::string, std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    if (!name.starts_with("gdrx-")) continue;
    const std::string value = row_of(task.path(), row);
    const auto [place, fresh] = found.emplace(name, value);
    if (!fresh && place->second != value) place->second = "differ";
  }
  return found;
}

}  // namespace gdrx::test
