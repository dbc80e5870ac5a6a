// SPDX-License-Identifier: Apache-2.0
// A Bootstrap over somebody else's fixed-size all-gather, MPI's for one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "collectives/comm/farewell.hpp"
#include "collectives/comm/insist.hpp"
#include "gdrx/bootstrap.hpp"

namespace gdrx {

class FunctionBootstrap final : public Bootstrap {
 public:
  /// Fills `all` (size * bytes) with every rank's `mine`; 0 if it worked.
  using AllGather = std::function<int(const void* mine, void* all, std::size_t bytes)>;

  FunctionBootstrap(Rank rank, int size, AllGather all_gather)
      : rank_(rank), size_(size), all_gather_(std::move(all_gather)) {}

  Rank rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }

  /// The deadline is the function's own affair. A rank that gave up is an error on every rank.
  Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                       Deadline deadline) override {
    std::vector<Blob> blobs = GDRX_TRY(gather(mine, deadline));
    for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
      if (auto why = read_farewell(blobs[rank])) {
        return fail(why->code, fmt::format("rank {}: {}", rank, why->what), why->native);
      }
    }
    open_ = true;
    return blobs;
  }
  void end() noexcept override { open_ = false; }

  /// This rank alone cannot go on. The others would wait for it in their next all-gather: it takes
  /// part in that, and says why.
  void give_up(const Error& why) {
    if (!open_) return;
    (void)gather(write_farewell(why), Deadline::after(steady_clock(), kLastWords));
    open_ = false;
  }

 private:
  static constexpr std::uint64_t kMostBytes = 1 << 20;
  static constexpr std::chrono::seconds kLastWords{1};

  /// What a round needs once the lengths are known.
  struct Room {
    Room(std::span<const std::byte> mine, const std::vector<std::uint64_t>& lengths,
         std::uint64_t longest)
        : padded(mine.begin(), mine.end()), all(longest * lengths.size()), blobs(lengths.size()) {
      padded.resize(longest);
      for (std::size_t rank = 0; rank < lengths.size(); ++rank) blobs[rank].resize(lengths[rank]);
    }
    Blob padded;
    Blob all;
    std::vector<Blob> blobs;
  };

  // Behind the last call nothing is allocated: the others go on.
  Result<std::vector<Blob>> gather(std::span<const std::byte> mine, Deadline deadline) {
    const std::uint64_t length = mine.size();
    std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
    open_ = false;  // of ranks that do not do the same nobody knows what they do next
    if (all_gather_(&length, lengths.data(), sizeof length) != 0) return failed();
    const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (longest > kMostBytes) return fail(Errc::protocol, "a bootstrap blob of over 1 MiB");
    // The others are in the second call, out of which nothing gets them.
    Room room = insist(deadline, [&] { return Room(mine, lengths, longest); });
    if (longest > 0 && all_gather_(room.padded.data(), room.all.data(), longest) != 0) {
      return failed();
    }
    for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
      if (lengths[rank] == 0) continue;
      std::memcpy(room.blobs[rank].data(), room.all.data() + rank * longest, lengths[rank]);
    }
    return std::move(room.blobs);
  }

  static tl::unexpected<Error> failed() {
    return fail(Errc::system, "the all-gather of the bootstrap (MPI_Allgather) failed");
  }
  Rank rank_;
  int size_;
  AllGather all_gather_;
  bool open_ = true;  // the others may still gather
};

}  // namespace gdrx
