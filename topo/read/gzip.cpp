// SPDX-License-Identifier: Apache-2.0
#include "topo/read/tar.hpp"

#ifdef GDRX_HAVE_ZLIB
#include <zlib.h>
#endif

#include <fmt/format.h>

#include <array>

namespace gdrx::topo {

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

#ifdef GDRX_HAVE_ZLIB
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to say "with gzip's header"

Bytef* in(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib does not write there
}

}  // namespace

bool has_zlib() noexcept { return true; }

Result<std::string> gunzip(std::string_view bytes, std::size_t most) {
  const auto bad = [](const char* why) { return fail(Errc::invalid_argument, why); };
  if (bytes.size() > most) return bad("too large for a snapshot");
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return fail(Errc::system, "inflateInit2");
  stream.next_in = in(bytes);
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
  if (out.size() > most) return fail(Errc::invalid_argument, "it unpacks to more than 64 MiB");
  if (status == Z_BUF_ERROR) return bad("the archive is cut off");
  if (status != Z_STREAM_END) return bad("its compressed data is damaged");
  return out;
}

Result<std::string> gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return fail(Errc::system, "deflateInit2");
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = in(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail(Errc::system, "deflate");
  return out;
}

#else

bool has_zlib() noexcept { return false; }

Result<std::string> gunzip(std::string_view, std::size_t) {
  return fail(Errc::unsupported, "compressed, and this gdrx was built without zlib: gunzip it");
}
Result<std::string> gzip(std::string_view bytes) { return std::string(bytes); }

#endif

}  // namespace gdrx::topo
