// SPDX-License-Identifier: Apache-2.0
// What this process holds of its host, to be compared before and after.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

namespace gdrx::test {

inline std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

struct Holdings {
  std::ptrdiff_t descriptors = entries_of("/proc/self/fd");
  std::ptrdiff_t threads = entries_of("/proc/self/task");
  std::size_t mappings = 0;
  std::size_t shared_mappings = 0;     // of files
  std::set<std::string> shared_files;  // with a name that others could open
  std::size_t segments = 0;            // of System V, made by this process
  std::uint64_t resident_bytes = 0;

  Holdings() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line); ++mappings) {
      const auto path = line.find('/');
      if (path == std::string::npos || line[line.find(' ') + 4] != 's') continue;  // "... rw-s ..."
      ++shared_mappings;
      if (line.compare(path, 9, "/dev/shm/") == 0) shared_files.insert(line.substr(path));
    }
    std::ifstream table("/proc/sysvipc/shm");
    table.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    for (std::string line; std::getline(table, line);) {
      std::istringstream words(line);  // key, shmid, perms, size, cpid
      std::string key, id, permissions, size;
      long maker = 0;
      if (words >> key >> id >> permissions >> size >> maker && maker == getpid()) ++segments;
    }
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;
    resident_bytes = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }
  friend std::ostream& operator<<(std::ostream& out, const Holdings& h) {
    return out << h.descriptors << " descriptors, " << h.threads << " threads, " << h.mappings
               << " mappings, " << h.shared_mappings << " of them shared, " << h.segments
               << " System V segments, " << (h.resident_bytes >> 10) << " KiB resident";
  }
};

/// A thread that was joined is a moment longer in /proc.
inline Holdings holdings_at_rest(const Holdings& before) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (Holdings().threads > before.threads && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {};
}

}  // namespace gdrx::test
