// SPDX-License-Identifier: Apache-2.0
// The sockets of this process at which somebody may knock.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace gdrx::test {

inline std::set<std::string> own_sockets() {
  std::set<std::string> inodes;
  DIR* folder = opendir("/proc/self/fd");
  while (folder != nullptr) {
    const dirent* entry = readdir(folder);
    if (entry == nullptr) break;
    std::array<char, 64> target{};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    const ssize_t length = readlink(path.c_str(), target.data(), target.size() - 1);
    const std::string text(target.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    if (text.starts_with("socket:[")) inodes.insert(text.substr(8, text.size() - 9));
  }
  if (folder != nullptr) closedir(folder);
  return inodes;
}

/// "0100007F:8B1F", address and port in hex, of each TCP socket of this process that listens.
inline std::vector<std::string> listening() {
  const std::set<std::string> own = own_sockets();
  std::vector<std::string> found;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
          timeout >> inode;
      if (state == "0A" && own.contains(inode)) found.push_back(local);
    }
  }
  return found;
}

}  // namespace gdrx::test
