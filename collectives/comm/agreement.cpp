// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other after the communicator was made, outside of the user's calls: by
// collectives of its own, which have their deadline, and name a rank that died or called another
// thing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

constexpr std::uint64_t kLongestBlob = 64 << 20;

}  // namespace

// The same number of bytes from every rank, one behind the other.
Result<std::vector<std::byte>> Communicator::gather_equal(std::span<const std::byte> mine) {
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(size()));
  Call call;
  call.collective = Collective::all_gather;
  call.type = DataType::uint8;
  call.input = mine.data();
  call.output = all.data();
  call.count = mine.size();
  GDRX_TRY(check(call));
  auto operation = operation_of(std::move(call));
  operation->own = true;
  GDRX_TRY(post_staged(operation));
  GDRX_TRY(wait(*operation));
  return all;
}

// What is short is told with its length.
Result<std::vector<Blob>> Communicator::gather(std::span<const std::byte> mine) {
  struct Head {
    std::uint64_t length = 0;
    std::array<std::byte, 56> first{};
  } own;
  own.length = mine.size();
  std::copy_n(mine.begin(), std::min(mine.size(), own.first.size()), own.first.begin());
  std::vector<Head> heads(static_cast<std::size_t>(size()));
  const auto told = GDRX_TRY(gather_equal(std::as_bytes(std::span(&own, 1))));
  std::memcpy(heads.data(), told.data(), told.size());
  std::uint64_t longest = 0;
  for (const Head& head : heads) longest = std::max(longest, head.length);
  if (longest > kLongestBlob) {
    return fail(Errc::protocol, fmt::format("a rank tells {} bytes about itself", longest));
  }
  std::vector<Blob> blobs;
  if (longest <= own.first.size()) {
    for (const Head& head : heads) {
      blobs.emplace_back(head.first.begin(),
                         head.first.begin() + static_cast<std::ptrdiff_t>(head.length));
    }
    return blobs;
  }
  Blob padded(mine.begin(), mine.end());
  padded.resize(longest);
  const auto all = GDRX_TRY(gather_equal(padded));
  for (std::size_t rank = 0; rank < heads.size(); ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * longest);
    blobs.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(heads[rank].length));
  }
  return blobs;
}

Result<std::vector<Blob>> Communicator::agree(const Result<Blob>& mine) {
  Blob told(1, std::byte{0});
  if (mine) {
    told.insert(told.end(), mine->begin(), mine->end());
  } else {
    told[0] = static_cast<std::byte>(static_cast<unsigned>(mine.error().code) + 1);
    const std::string text = gdrx::describe(mine.error());
    const auto bytes = std::as_bytes(std::span(text));
    told.insert(told.end(), bytes.begin(), bytes.end());
  }
  std::vector<Blob> all = GDRX_TRY(gather(told));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) return fail(Errc::protocol, fmt::format("rank {} says nothing", rank));
    const auto code = static_cast<unsigned>(all[rank][0]);
    const std::string_view text(reinterpret_cast<const char*>(all[rank].data()) + 1,
                                all[rank].size() - 1);
    if (code > static_cast<unsigned>(Errc::internal) + 1) {
      return fail(Errc::protocol, fmt::format("rank {} says what is not of the protocol", rank));
    }
    if (code > 0) return fail(static_cast<Errc>(code - 1), fmt::format("rank {}: {}", rank, text));
  }
  for (Blob& blob : all) blob.erase(blob.begin());
  return all;
}

}  // namespace gdrx
