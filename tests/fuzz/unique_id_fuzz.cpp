// SPDX-License-Identifier: Apache-2.0
// A unique id comes through any channel that a user has: what decodes encodes to the same bytes.
#include <cstdlib>
#include <cstring>

#include "transport/bootstrap/unique_id.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto id = gdrx::decode_unique_id(bytes);
  if (id && (size != sizeof *id || std::memcmp(&*id, data, size) != 0)) std::abort();
  return 0;
}
