// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any text is a measured matrix of hosts or one line of error, and what is one gives
// each host once in an order that is no slower than the matrix's own.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "tools/perf/matrix_view.hpp"
#include "tools/place/hosts_view.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto matrix = gdrx::perf::read_matrix(text, "fuzz");
  if (!matrix) {
    if (describe(matrix.error()).find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto hosts = gdrx::tools::measured_hosts(*std::move(matrix), 0, "fuzz");
  if (!hosts) return 0;
  std::vector<std::size_t> listed(hosts->matrix.hosts.size());
  std::iota(listed.begin(), listed.end(), std::size_t{0});
  std::vector<std::size_t> order = hosts->ring.order;
  const double before = ring_rate(hosts->matrix, listed).gigabits;
  if (ring_rate(hosts->matrix, order).gigabits < 0.95 * before) std::abort();
  std::sort(order.begin(), order.end());
  if (order != listed) std::abort();
  for (const char c : hosts_text(*hosts, "fuzz")) {
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) std::abort();
  }
  return 0;
}
