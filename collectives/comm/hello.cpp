// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/hello.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>
#include <vector>

#include "collectives/comm/version_agreement.hpp"
#include "gdrx/gdrx.h"

namespace gdrx {
namespace {

constexpr std::uint32_t kHelloMagic = 0x67647868;  // "gdxh"
constexpr std::uint32_t kMaxField = 64 * 1024;

template <class T>
void put(Blob& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t end = out.size();
  out.resize(end + sizeof value);
  std::memcpy(out.data() + end, &value, sizeof value);
}

void put_field(Blob& out, std::span<const std::byte> field) {
  put(out, static_cast<std::uint32_t>(field.size()));
  out.insert(out.end(), field.begin(), field.end());
}

/// Takes values off the front; after the first short read everything fails.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  bool get(T& value) {
    if (rest_.size() < sizeof value) return false;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return true;
  }

  template <class Container>
  bool get_field(Container& field) {
    std::uint32_t size = 0;
    if (!get(size) || size > kMaxField || rest_.size() < size) return false;
    field.resize(size);
    if (size > 0) std::memcpy(field.data(), rest_.data(), size);
    rest_ = rest_.subspan(size);
    return true;
  }

  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

Blob encode(const Hello& hello) {
  Blob out;
  put(out, kHelloMagic);
  put(out, hello.version);
  put(out, hello.pid);
  put_field(out, std::as_bytes(std::span(hello.host_id)));
  put_field(out, std::as_bytes(std::span(hello.host_name)));
  put_field(out, std::as_bytes(std::span(hello.settings)));
  put_field(out, std::as_bytes(std::span(hello.cpu)));
  put_field(out, std::as_bytes(std::span(hello.gpu_name)));
  put(out, hello.cpus);
  put(out, hello.memory);
  put(out, hello.process);
  put_field(out, hello.device_address);
  put_field(out, hello.receive_ring_key);
  put(out, hello.gpu);
  put_field(out, std::as_bytes(std::span(hello.no_gpu)));
  put(out, static_cast<std::uint8_t>(hello.needs_gpu ? 1 : 0));
  return out;
}

Result<Hello> decode_hello(std::span<const std::byte> bytes) {
  Hello hello;
  Reader reader(bytes);
  std::uint32_t magic = 0;
  if (!reader.get(magic) || magic != kHelloMagic)
    return fail(Errc::protocol, "not a hello of gdrx");
  std::uint8_t needs_gpu = 0;
  if (!reader.get(hello.version)) return fail(Errc::protocol, "a hello that ends early");
  if (hello.version != GDRX_VERSION) {  // what follows may have another form
    return fail(Errc::mismatch,
                fmt::format("it runs gdrx {} and this rank gdrx {}: install the "
                            "same version everywhere",
                            version_text(hello.version), version_text(GDRX_VERSION)));
  }
  const bool whole = reader.get(hello.pid) && reader.get_field(hello.host_id) &&
                     reader.get_field(hello.host_name) && reader.get_field(hello.settings) &&
                     reader.get_field(hello.cpu) && reader.get_field(hello.gpu_name) &&
                     reader.get(hello.cpus) && reader.get(hello.memory) &&
                     reader.get(hello.process) && reader.get_field(hello.device_address) &&
                     reader.get_field(hello.receive_ring_key) && reader.get(hello.gpu) &&
                     reader.get_field(hello.no_gpu) && reader.get(needs_gpu);
  if (!whole) return fail(Errc::protocol, "a hello that ends early");
  if (!reader.empty()) return fail(Errc::protocol, "a hello that is too long");
  hello.needs_gpu = needs_gpu != 0;
  return hello;
}

std::string settings_of(const Config& config, std::uint64_t tuning) {
  return fmt::format(
      "GDRX_ALGO={} GDRX_TRANSPORT={} GDRX_TCP_PLAIN={} GDRX_SHM={} GDRX_LANES={} GDRX_SLICE={} "
      "GDRX_ARENA_BLOCK={} GDRX_CMA={} GDRX_GPU={} GDRX_GPU_BLOCKS={} GDRX_REPRODUCIBLE={} "
      "GDRX_TUNE_FILE={:x}",
      config.algo, config.transport, config.tcp_plain ? 1 : 0, config.shared_memory ? 1 : 0,
      config.lanes, config.slice, config.arena_block, config.cma, config.gpu ? 1 : 0,
      config.gpu_blocks, config.reproducible ? 1 : 0, tuning);
}

Result<void> check_settings(std::span<const Hello> peers) {
  for (std::size_t rank = 1; rank < peers.size(); ++rank) {
    if (peers[rank].settings == peers[0].settings) continue;
    const auto [first, other] = difference_of(peers[0].settings, peers[rank].settings);
    return fail(Errc::mismatch,
                fmt::format("rank 0 has {} and rank {} has {}: set the same on every rank", first,
                            rank, other));
  }
  return {};
}

Difference difference_of(std::string_view ours, std::string_view theirs) {
  using Words = std::set<std::string>;
  const auto words_of = [](std::string_view text) {
    std::istringstream in{std::string(text)};
    return Words(std::istream_iterator<std::string>(in), {});
  };
  const auto without = [](const Words& words, const Words& others) {
    std::vector<std::string> left;
    std::set_difference(words.begin(), words.end(), others.begin(), others.end(),
                        std::back_inserter(left));
    return fmt::format("{}", fmt::join(left, " "));
  };
  const Words mine = words_of(ours);
  const Words others = words_of(theirs);
  return {without(mine, others), without(others, mine)};
}

}  // namespace gdrx
