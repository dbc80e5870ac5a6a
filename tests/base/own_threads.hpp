// SPDX-License-Identifier: Apache-2.0
// The threads of this process that gdrx has made, and where each may run, as the kernel has it.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace gdrx::test {

inline std::string allowed_cpus(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  const std::string key = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return "?";
}

/// "0-3" by the name of a thread, of those that gdrx names. Threads of one name that may run on
/// different CPUs: "differ".
inline std::map<std::string, std::string> own_threads() {
  std::map<std::string, std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    if (!name.starts_with("gdrx-")) continue;
    const std::string cpus = allowed_cpus(task.path());
    const auto [place, fresh] = found.emplace(name, cpus);
    if (!fresh && place->second != cpus) place->second = "differ";
  }
  return found;
}

}  // namespace gdrx::test
