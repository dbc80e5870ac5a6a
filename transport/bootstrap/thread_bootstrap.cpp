// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/thread_bootstrap.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>

#include "transport/bootstrap/rank_names.hpp"

namespace gdrx {
namespace {

/// A round is complete when all have come; a new one starts when all have taken the last.
struct Shared {
  explicit Shared(int size)
      : blobs(static_cast<std::size_t>(size)), left(static_cast<std::size_t>(size)) {
    complete.reserve(blobs.size());  // a round ends whatever memory there is
  }
  /// A rank that this round waits for takes no part any more.
  std::optional<std::int32_t> missed() const {
    for (std::size_t rank = 0; rank < left.size(); ++rank) {
      if (left[rank] && !blobs[rank]) return static_cast<std::int32_t>(rank);
    }
    return {};
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<Blob>> blobs;  // nothing: has not come to this round
  std::vector<Blob> complete;              // the last round's
  std::size_t came = 0;
  std::size_t taken = 0;    // how many have still to take it
  std::uint64_t round = 0;  // complete ones
  std::vector<bool> left;
};

/// At its end a rank has what a round gave it. The mutex is held.
class Taken {
 public:
  explicit Taken(Shared& shared) : shared_(shared) {}
  ~Taken() {
    if (--shared_.taken == 0) shared_.changed.notify_all();
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  Shared& shared_;
};

class ThreadRank final : public Bootstrap {
 public:
  ThreadRank(Rank rank, std::shared_ptr<Shared> shared) : rank_(rank), shared_(std::move(shared)) {}
  ~ThreadRank() override {
    const std::lock_guard lock(shared_->mutex);
    shared_->left[static_cast<std::size_t>(index(rank_))] = true;
    if (gave_ && shared_->round == round_) --shared_->taken;  // what it gave for is complete
    shared_->changed.notify_all();
  }
  Rank rank() const noexcept override { return rank_; }
  int size() const noexcept override { return static_cast<int>(shared_->blobs.size()); }

  Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                       Deadline deadline) override {
    std::unique_lock lock(shared_->mutex);
    const std::uint64_t round = round_++;
    const auto wait = [&](auto condition) {
      return shared_->changed.wait_until(lock, deadline.at(), condition);
    };
    if (!wait([&] { return shared_->round == round && shared_->taken == 0; })) return late();
    try {
      shared_->blobs[static_cast<std::size_t>(index(rank_))].emplace(mine.begin(), mine.end());
    } catch (const std::bad_alloc&) {
      return tl::unexpected(no_memory());
    }
    gave_ = true;
    if (++shared_->came == shared_->blobs.size()) finish_round();
    shared_->changed.notify_all();
    if (!wait([&] { return shared_->round == round + 1 || shared_->missed(); })) return late();
    if (shared_->round != round + 1) return broken();
    gave_ = false;
    const Taken taken(*shared_);  // also where there is no memory for a copy
    return shared_->complete;
  }

 private:
  void finish_round() {
    shared_->complete.clear();
    for (std::optional<Blob>& blob : shared_->blobs) {
      shared_->complete.push_back(*std::exchange(blob, std::nullopt));
    }
    shared_->came = 0;
    shared_->taken =
        static_cast<std::size_t>(std::count(shared_->left.begin(), shared_->left.end(), false));
    ++shared_->round;
  }

  tl::unexpected<Error> broken() const {
    return fail(Errc::peer_lost, name_ranks({*shared_->missed()}) +
                                     " of this process left the exchange before it was complete");
  }

  tl::unexpected<Error> late() const {
    std::vector<std::int32_t> missing;
    for (std::size_t rank = 0; rank < shared_->blobs.size(); ++rank) {
      if (!shared_->blobs[rank]) missing.push_back(static_cast<std::int32_t>(rank));
    }
    return fail(Errc::timeout, "in this process " + name_missing(missing, size()) + " in time");
  }
  Rank rank_;
  std::shared_ptr<Shared> shared_;
  std::uint64_t round_ = 0;
  bool gave_ = false;  // for a round whose result it has not taken
};

}  // namespace

std::vector<std::unique_ptr<Bootstrap>> ThreadBootstrap::create_all(int size) {
  auto shared = std::make_shared<Shared>(size);
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  ranks.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<ThreadRank>(Rank{rank}, shared));
  }
  return ranks;
}

}  // namespace gdrx
