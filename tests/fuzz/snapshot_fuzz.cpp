// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are a snapshot or one line of error, and a snapshot is judged and shown.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "gdrx/snapshot.hpp"

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kSumAt = 148;
constexpr std::size_t kSumSize = 8;

// A header of an archive has a sum, which stops every other mutation at the door.
void mend_sum(std::uint8_t* header) {
  std::memset(header + kSumAt, ' ', kSumSize);
  unsigned sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += header[i];
  std::snprintf(reinterpret_cast<char*>(header + kSumAt), kSumSize, "%06o", sum & 0777777u);
}

std::size_t contents_of(const std::uint8_t* header) {
  std::size_t size = 0;
  for (std::size_t i = kSizeAt; i < kSizeAt + 11; ++i) {
    if (header[i] >= '0' && header[i] <= '7') size = size * 8 + header[i] - '0';
  }
  return (size + kBlock - 1) / kBlock * kBlock;
}

void one_line(const gdrx::Error& error) {
  if (describe(error).find('\n') != std::string::npos) std::abort();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned) {
  size = LLVMFuzzerMutate(data, size, most);
  for (std::size_t at = 0; at + kBlock <= size;) {
    std::uint8_t* header = data + at;
    if (std::all_of(header, header + kBlock, [](std::uint8_t byte) { return byte == 0; })) break;
    mend_sum(header);
    const std::size_t contents = contents_of(header);
    if (contents > size - at) break;
    at += kBlock + contents;
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto snapshot =
      gdrx::topo::parse_snapshot({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!snapshot) {
    one_line(snapshot.error());
    return 0;
  }
  const gdrx::doctor::Host host = gdrx::doctor::host_of(*snapshot);
  const auto report = gdrx::doctor::diagnose(host);
  if (!report) one_line(report.error());
  const auto topology = gdrx::topo::discover({"fuzz", false, snapshot->files});
  if (!topology) {
    one_line(topology.error());
  } else if (topology->devices() <= 40) {
    gdrx::topo::rail_map(*topology);
  }
  return 0;
}
