// SPDX-License-Identifier: Apache-2.0
// What a rank tells of memory that it registers: what decodes encodes to the same bytes.
#include <cstdlib>

#include "collectives/gpu/window_ticket.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto ticket = gdrx::gpu::decode_window_ticket(bytes);
  if (!ticket) return 0;
  if (gdrx::gpu::encode(*ticket) != gdrx::Blob(bytes.begin(), bytes.end())) std::abort();
  return 0;
}
