// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <array>

#include "topo/read/tar.hpp"

namespace gdrx::topo {

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

// One layer, bounded: libarchive would unpack what is packed in it, too.
Result<std::string> gunzip(std::string_view bytes, std::size_t most) {
  constexpr int kGzipWindow = 15 + 16;  // zlib's way to say "with gzip's header"
  const auto bad = [](const char* why) { return fail(Errc::invalid_argument, why); };
  if (bytes.size() > most) return bad("too large for a snapshot");
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return fail(Errc::system, "inflateInit2");
  // zlib does not write there.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  std::array<char, 1 << 16> block{};
  int status = Z_OK;
  while (status == Z_OK && out.size() <= most) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(block.data(), block.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > most) return bad("it unpacks to more than 64 MiB");
  if (status == Z_BUF_ERROR) return bad("the archive is cut off");
  if (status != Z_STREAM_END) return bad("its compressed data is damaged");
  return out;
}

}  // namespace gdrx::topo
