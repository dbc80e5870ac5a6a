// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a host may call its devices, folders and versions whatever it likes: none of it
// becomes a word of its own of the script of fixes. bash parses each, and one that only echoes runs
// it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/doctor/hostile_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrx::doctor::test;
  static const std::vector<std::string> own = own_commands();
  // A byte of length, then so many of a name; names come again when there are no more.
  std::vector<std::string> names;
  for (std::size_t at = 0; at < size;) {
    const std::size_t length = std::min<std::size_t>(data[at] % 64, size - at - 1);
    std::string name(reinterpret_cast<const char*>(data) + at + 1, length);
    for (const char* mark : {kBegin, kEnd}) {
      while (name.find(mark) != name.npos) name.erase(name.find(mark), 2);
    }
    names.push_back((data[at] >= 128 ? "-" : "") + std::string(kBegin) + name + kEnd);
    at += length + 1;
  }
  if (names.empty()) return 0;
  std::size_t next = 0;
  const HostileHost host([&] { return names[next++ % names.size()]; });
  const std::string script = host.script();
  const std::string wrong = words_of_the_host(only_echo(script), own);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n%s\n", wrong.c_str(), script.c_str());
  std::abort();
}
