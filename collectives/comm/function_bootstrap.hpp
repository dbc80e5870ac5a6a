// SPDX-License-Identifier: Apache-2.0
// A Bootstrap over somebody else's fixed-size all-gather, MPI's for one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "collectives/comm/farewell.hpp"
#include "gdrx/bootstrap.hpp"
#include "transport/bootstrap/insist.hpp"

namespace gdrx {

/// Ranks that are in the function know no deadline: whoever cannot go on takes part once more, and
/// says so. Up to kFew ranks that needs no memory.
class FunctionBootstrap final : public Bootstrap {
 public:
  /// Fills `all` (size * bytes) with every rank's `mine`; 0 if it worked.
  using AllGather = std::function<int(const void* mine, void* all, std::size_t bytes)>;

  FunctionBootstrap(Rank rank, int size, AllGather all_gather)
      : rank_(rank), size_(size), all_gather_(std::move(all_gather)) {
    if (ranks() > kFew) many_.resize(ranks());
  }

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
    std::optional<Blob> words;
    try {
      words = write_farewell(why);
    } catch (const std::bad_alloc&) {
      (void)exchange_length(kWordless);
    }
    if (words) (void)gather(*words, Deadline::after(steady_clock(), kLastWords));
  }

 private:
  static constexpr std::uint64_t kMostBytes = 1 << 20;
  static constexpr std::uint64_t kUsualBytes = 1024;
  static constexpr std::size_t kFew = 4096;
  static constexpr std::chrono::seconds kLastWords{1};
  // In place of a length: a rank gives up that has no memory for words.
  static constexpr std::uint64_t kWordless = ~std::uint64_t{0};

  /// What a round needs. Where nobody says much more than this rank it has it beforehand.
  struct Room {
    Room(std::span<const std::byte> mine, std::size_t ranks)
        : padded(mine.begin(), mine.end()), blobs(ranks) {
      const std::size_t likely = std::max<std::size_t>(kUsualBytes, 2 * mine.size());
      padded.reserve(likely);
      all.reserve(likely * ranks);
      for (Blob& blob : blobs) blob.reserve(likely);
    }
    void fit(std::span<const std::uint64_t> lengths, std::uint64_t longest) {
      padded.resize(longest);
      all.resize(longest * lengths.size());
      for (std::size_t rank = 0; rank < lengths.size(); ++rank) blobs[rank].resize(lengths[rank]);
    }
    Blob padded;
    Blob all;
    std::vector<Blob> blobs;
  };

  Result<std::vector<Blob>> gather(std::span<const std::byte> mine, Deadline deadline) {
    std::optional<Room> room;
    try {
      room.emplace(mine, ranks());
    } catch (const std::bad_alloc&) {
      (void)exchange_length(kWordless);
      return tl::unexpected(no_memory());
    }
    const std::uint64_t longest = GDRX_TRY(exchange_length(mine.size()));
    // The others are in the second call, out of which nothing gets them.
    insist(deadline, [&] { room->fit(lengths(), longest); });
    if (longest > 0 && all_gather_(room->padded.data(), room->all.data(), longest) != 0) {
      return failed();
    }
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (lengths()[rank] == 0) continue;
      std::memcpy(room->blobs[rank].data(), room->all.data() + rank * longest, lengths()[rank]);
    }
    return std::move(room->blobs);
  }

  /// The longest of all. Every rank finds the same that is wrong with one.
  Result<std::uint64_t> exchange_length(std::uint64_t mine) {
    open_ = false;  // of ranks that do not do the same nobody knows what they do next
    if (all_gather_(&mine, lengths().data(), sizeof mine) != 0) return failed();
    const auto own = static_cast<std::size_t>(index(rank_));
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const std::uint64_t length = lengths()[rank];
      if (length == kWordless && rank == own) return tl::unexpected(no_memory());
      if (length == kWordless) return fail(Errc::system, fmt::format(kGaveUp, rank));
      if (length > kMostBytes) return fail(Errc::protocol, "a bootstrap blob of over 1 MiB");
    }
    return *std::max_element(lengths().begin(), lengths().end());
  }

  static constexpr const char* kGaveUp = "rank {} has given up, and had no memory to say why";
  static tl::unexpected<Error> failed() {
    return fail(Errc::system, "the all-gather of the bootstrap (MPI_Allgather) failed");
  }
  std::size_t ranks() const noexcept { return static_cast<std::size_t>(size_); }
  std::span<std::uint64_t> lengths() noexcept {
    return ranks() > kFew ? std::span(many_) : std::span(few_).first(ranks());
  }

  Rank rank_;
  int size_;
  AllGather all_gather_;
  std::array<std::uint64_t, kFew> few_{};
  std::vector<std::uint64_t> many_;
  bool open_ = true;  // the others may still gather
};

}  // namespace gdrx
