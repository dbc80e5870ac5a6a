// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/loop.hpp"

#include <algorithm>
#include <cstring>

namespace gdrx::net {

class LoopEndpoint final : public Endpoint {
 public:
  LoopEndpoint(Loop& loop, Rank self) : loop_(loop), self_(self) {}
  Rank peer() const noexcept override { return self_; }
  Result<RemoteRegionId> import_region(std::span<const std::byte> key) override {
    for (const Loop::Known& known : loop_.known_) {
      if (!std::equal(known.key.begin(), known.key.end(), key.begin(), key.end())) continue;
      const auto ended = std::find(regions_.begin(), regions_.end(), nullptr);
      const auto place = static_cast<std::size_t>(ended - regions_.begin());
      if (ended == regions_.end()) regions_.emplace_back();
      regions_[place] = known.region;
      return static_cast<RemoteRegionId>(place);
    }
    return fail(Errc::protocol, "a key that is none of this device context's");
  }
  Result<Progress> post(const WriteOp& op) override {
    const MemoryRegion* region = regions_[static_cast<std::size_t>(op.remote)];
    const std::size_t length = op.header.size() + op.payload.size();
    // The other end of the loop has closed: late, as over a network.
    if (region == nullptr) return done(op);
    if (op.offset > region->bytes().size() || length > region->bytes().size() - op.offset) {
      return fail(Errc::internal, "a write beyond its region");
    }
    // NCCL sends nothing of a GPU's to itself: it connects so to probe and to register.
    if (region->path() != MemoryPath::host ||
        (op.local != nullptr && op.local->path() != MemoryPath::host)) {
      return fail(Errc::unsupported, "GPU memory over a connection of a communicator to itself");
    }
    std::byte* to = region->bytes().data() + op.offset;
    if (!op.header.empty()) std::memcpy(to, op.header.data(), op.header.size());
    if (!op.payload.empty()) {
      std::memcpy(to + op.header.size(), op.payload.data(), op.payload.size());
    }
    if (op.has_immediate) {
      loop_.ready_.push_back({CompletionKind::immediate, self_, op.immediate, 0});
    }
    return done(op);
  }
  std::string describe() const override { return "itself"; }
  void release_region(RemoteRegionId region) noexcept override {
    regions_[static_cast<std::size_t>(region)] = nullptr;
  }
  const Error* error() const noexcept override { return nullptr; }
  void forget(const MemoryRegion& region) noexcept {
    std::replace(regions_.begin(), regions_.end(), &region,
                 static_cast<const MemoryRegion*>(nullptr));
  }

 private:
  Result<Progress> done(const WriteOp& op) {
    loop_.ready_.push_back({CompletionKind::write_done, self_, 0, op.cookie});
    return Progress::done;
  }
  Loop& loop_;
  Rank self_;
  std::vector<const MemoryRegion*> regions_;
};

void Loop::remember(const Blob& key, const MemoryRegion& region) {
  known_.push_back({key, &region});
}

void Loop::forget(const MemoryRegion& region) noexcept {
  std::erase_if(known_, [&](const Known& known) { return known.region == &region; });
  if (endpoint_ != nullptr) endpoint_->forget(region);
}

std::unique_ptr<Endpoint> Loop::endpoint(Rank self) {
  auto made = std::make_unique<LoopEndpoint>(*this, self);
  endpoint_ = made.get();
  return made;
}

std::size_t Loop::take(std::span<Completion> completions) {
  const std::size_t count = std::min(completions.size(), ready_.size());
  std::copy_n(ready_.begin(), count, completions.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

}  // namespace gdrx::net
