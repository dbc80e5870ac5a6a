// SPDX-License-Identifier: Apache-2.0
// A stream of control frames, in pieces of any length: never more than the limit, never stuck.
#include <cstdlib>
#include <cstring>

#include "transport/bootstrap/failure_notice.hpp"
#include "transport/bootstrap/frame.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void decode(const gdrx::Frame& frame) {
  if (const auto hello = gdrx::decode_hello_frame(frame.payload)) {
    require(hello->rank >= 0 && hello->rank < hello->size);
  }
  if (const auto notice = gdrx::decode_notice(frame.payload, 16)) {
    require(gdrx::index(notice->subject) >= 0 && gdrx::index(notice->subject) < 16);
    require(notice->text.find('\n') == std::string::npos);
    const auto again = gdrx::decode_notice(gdrx::encode_notice(*notice), 16);
    require(again && again->text == notice->text && again->code == notice->code);
  }
  for (const std::size_t expected : {std::size_t{1}, std::size_t{3}}) {
    if (const auto blobs = gdrx::split_blobs(frame.payload, expected)) {
      gdrx::Blob again;
      for (const gdrx::Blob& blob : *blobs) gdrx::append_blob(again, blob);
      require(again == frame.payload);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0];
  constexpr std::uint32_t kLimit = 4096;
  gdrx::FrameReader reader(kLimit);
  std::span<const std::byte> rest = std::as_bytes(std::span(data + 1, size - 1));
  while (!rest.empty()) {
    const auto now = rest.first(std::min(piece, rest.size()));
    rest = rest.subspan(now.size());
    reader.feed(now);
    while (true) {
      const auto frame = reader.next();
      if (!frame) return 0;  // garbage: the connection ends
      if (!*frame) break;
      require((*frame)->payload.size() <= kLimit);
      decode(**frame);
    }
  }
  return 0;
}
