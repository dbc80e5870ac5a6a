// SPDX-License-Identifier: Apache-2.0
// What a rank tells of itself: what decodes encodes to something that decodes to the same.
#include <cstdlib>

#include "collectives/comm/hello.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto hello = gdrx::decode_hello(std::as_bytes(std::span(data, size)));
  if (!hello) return 0;
  const gdrx::Blob once = gdrx::encode(*hello);
  const auto again = gdrx::decode_hello(once);
  if (!again || gdrx::encode(*again) != once) std::abort();
  return 0;
}
