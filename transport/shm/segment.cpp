// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/segment.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "transport/bootstrap/fork.hpp"

namespace gdrx::shm {
namespace {

/// What this process has mapped, by the segments' nonces: a process has 65,530 mappings at most.
class Mapped {
 public:
  /// A child of fork() begins its own: a thread that it lacks may hold its parent's lock.
  static Mapped& here() {
    Mapped* known = newest.load(std::memory_order_acquire);
    while (known == nullptr || !known->birthplace_.here()) {
      auto made = std::make_unique<Mapped>(known);
      if (newest.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
        return *made.release();  // used until the process ends
      }
    }
    return *known;
  }
  explicit Mapped(Mapped* before) noexcept : before_(before) {}
  std::shared_ptr<Segment> find(std::uint64_t nonce) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(nonce);
    return found == all_.end() ? nullptr : found->second.lock();
  }
  void add(const std::shared_ptr<Segment>& segment) {
    const std::lock_guard lock(mutex_);
    all_[segment->ticket().nonce] = segment;
  }
  /// Of a segment that ends. The process may have mapped it anew meanwhile.
  static void forget(std::uint64_t nonce) noexcept {
    Mapped* const known = newest.load(std::memory_order_acquire);
    if (known == nullptr || !known->birthplace_.here()) return;
    const std::lock_guard lock(known->mutex_);
    const auto found = known->all_.find(nonce);
    if (found != known->all_.end() && found->second.expired()) known->all_.erase(found);
  }

 private:
  static inline std::atomic<Mapped*> newest{nullptr};
  Birthplace birthplace_;
  [[maybe_unused]] Mapped* before_;  // of the parent: known to whoever looks for leaks
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<Segment>> all_;
};

bool is_gone(const Error& error) noexcept {
  return error.code == Errc::system && (error.native == ENOENT || error.native == ESRCH);
}

}  // namespace

Result<std::shared_ptr<Segment>> Segment::create(std::size_t bytes) {
  auto segment = std::make_shared<Segment>(GDRX_TRY(Arena::create(bytes)));
  Unforked::keep(segment->ticket().fd);
  segment->made_here_ = true;
  Mapped::here().add(segment);
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::open(const ArenaTicket& ticket) {
  if (auto known = Mapped::here().find(ticket.nonce)) {
    if (known->bytes().size() == ticket.bytes) return known;
    return fail(Errc::protocol, "shared memory of another size than was announced");
  }
  auto arena = Arena::open(ticket);
  if (!arena && is_gone(arena.error())) arena.error().code = Errc::peer_lost;
  auto segment = std::make_shared<Segment>(GDRX_TRY(std::move(arena)));
  Mapped::here().add(segment);
  return segment;
}

void Segment::seal() noexcept {
  if (!made_here_.exchange(false)) return;  // of the ranks that have it here one does
  Unforked::forget(arena_.ticket().fd);
  arena_.seal();
}

Segment::~Segment() {
  Mapped::forget(ticket().nonce);
  seal();
}

}  // namespace gdrx::shm
