// SPDX-License-Identifier: Apache-2.0
// Ranks of one rail on a simulated network, each with memory of a GPU that is none: what a rail and
// those that use it need around them. One thread, a virtual clock, seeds.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/exec/rail.hpp"
#include "tests/fabric/cluster.hpp"
#include "tests/fabric/fake_gpu.hpp"

namespace gdrx::sim {

/// What is enqueued runs in order, each some rounds after it could. What `ready` asks first is like
/// a kernel that waits for others: nothing behind it begins.
class GpuStream {
 public:
  explicit GpuStream(std::uint64_t seed, std::uint64_t slowest = 6)
      : random_(seed), slowest_(slowest) {}
  /// Where it stands.
  std::uint64_t push(std::function<void()> what, std::function<bool()> ready = {}) {
    queue_.push_back({std::move(what), std::move(ready)});
    return ++pushed_;
  }
  std::uint64_t pushed() const noexcept { return pushed_; }
  bool reached(std::uint64_t place) const noexcept { return run_ >= place; }
  void tick() {
    if (queue_.empty()) return;
    if (rounds_ > 0) {
      --rounds_;
      return;
    }
    if (queue_.front().ready && !queue_.front().ready()) return;
    queue_.front().run();
    queue_.pop_front();
    ++run_;
    rounds_ = random_.below(slowest_);
  }

 private:
  struct Entry {
    std::function<void()> run;
    std::function<bool()> ready;
  };
  Random random_;
  std::uint64_t slowest_;
  std::deque<Entry> queue_;
  std::uint64_t pushed_ = 0;
  std::uint64_t run_ = 0;
  std::uint64_t rounds_ = 0;
};

/// One rank's connections: the cluster's endpoints as send rings.
class RailLinks final : public exec::Links {
 public:
  RailLinks(Cluster& cluster, int rank)
      : cluster_(cluster), rank_(rank), send_rings_(cluster.hosts.size()) {
    shape_.ranks = static_cast<std::uint32_t>(cluster.hosts.size());
    shape_.lanes = 1 + exec::kFlowLanes;
    shape_.slice = 4096;
    receive_ring_ = *exec::ReceiveRing::create(shape_, *cluster[rank].device);
  }
  void meet(const std::vector<std::unique_ptr<RailLinks>>& all) {
    for (std::size_t peer = 0; peer < all.size(); ++peer) {
      if (static_cast<int>(peer) == rank_) continue;
      auto& endpoint = cluster_[rank_].endpoints[peer];
      const RemoteRegionId receive_ring = *endpoint->import_region(all[peer]->receive_ring_->key());
      send_rings_[peer] =
          std::make_unique<exec::SendRing>(std::move(endpoint), receive_ring, shape_, self());
    }
  }
  Result<exec::SendRing*> to(Rank peer) override {
    return send_rings_[static_cast<std::size_t>(index(peer))].get();
  }
  const exec::RingShape& shape() const noexcept override { return shape_; }
  exec::ReceiveRing& receive_ring() noexcept override { return *receive_ring_; }
  Rank self() const noexcept override { return Rank{rank_}; }
  RegistrationRef registered(std::span<const std::byte>) noexcept override { return nullptr; }
  Result<Scratch> scratch(std::size_t) override { return fail(Errc::unsupported, "not here"); }

 private:
  Cluster& cluster_;
  int rank_;
  exec::RingShape shape_;
  std::unique_ptr<exec::ReceiveRing> receive_ring_;
  std::vector<std::unique_ptr<exec::SendRing>> send_rings_;
};

/// The cluster, and for each rank links, GPU memory and a rail. Adders are the test's.
class RailWorld {
 public:
  /// `locals`: ranks of each host, so many rails; rank r is on host r / locals.
  RailWorld(ClusterSettings settings, exec::RailLayout layout, int locals = 1)
      : locals_(locals),
        hosts_(settings.hosts),
        layout_(layout),
        gpu_(static_cast<std::size_t>(settings.hosts * locals) * (layout_.bytes() + 4096)),
        cluster_(with_gpu(std::move(settings), gpu_, locals)) {
    for (int rank = 0; rank < size(); ++rank) {
      links_.push_back(std::make_unique<RailLinks>(cluster_, rank));
    }
    for (auto& links : links_) links->meet(links_);
  }
  /// One a rank. `track`: rank 0's.
  void make_rails(const std::vector<exec::RailAdder*>& adders, trace::Track* track = nullptr) {
    std::vector<std::unique_ptr<MemoryRegion>> areas;
    std::vector<Blob> keys;
    for (int rank = 0; rank < size(); ++rank) {
      const auto memory = gpu_.allocate(layout_.bytes());
      areas.push_back(*cluster_[rank].device->register_memory(memory, MemoryKind::cuda));
      keys.push_back(areas.back()->export_key());
    }
    for (int rank = 0; rank < size(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      exec::Rail::Setup setup;
      setup.layout = layout_;
      setup.self = rank / locals_;
      for (int peer = rank % locals_; peer < size(); peer += locals_) {
        setup.ranks.push_back(Rank{peer});
        setup.keys.push_back(keys[static_cast<std::size_t>(peer)]);
      }
      setup.area = std::move(areas[at]);
      setup.device = cluster_[rank].device.get();
      setup.adder = adders[at];
      rails_.push_back(std::make_unique<exec::Rail>(std::move(setup)));
      auto connected = rails_.back()->connect(*links_[at], rank == 0 ? track : nullptr);
      if (!connected) throw std::runtime_error(describe(connected.error()));
    }
  }
  /// What a communicator does with completions; `done` has those of own writes.
  Result<void> poll(int rank, const std::function<void(std::uint64_t cookie)>& done) {
    std::array<Completion, 16> batch;
    const std::size_t count = GDRX_TRY(cluster_[rank].device->poll(batch));
    for (std::size_t i = 0; i < count; ++i) {
      const Completion& one = batch[i];
      if (one.kind == CompletionKind::write_done) {
        if (one.cookie != exec::kNoCookie) done(one.cookie);
      } else if (exec::Rail::is_mine(one.immediate)) {
        GDRX_TRY(rail(rank).arrived(one.peer, one.immediate));
      } else {
        GDRX_TRY(links(rank).receive_ring().arrived(one.peer, one.immediate));
      }
    }
    return {};
  }

  int size() const noexcept { return hosts_ * locals_; }
  const exec::RailLayout& layout() const noexcept { return layout_; }
  FakeGpu& gpu() noexcept { return gpu_; }
  Network& network() noexcept { return cluster_.network; }
  RailLinks& links(int rank) { return *links_[static_cast<std::size_t>(rank)]; }
  exec::Rail& rail(int rank) { return *rails_[static_cast<std::size_t>(rank)]; }
  /// GPU memory as a kernel sees it.
  std::span<std::byte> seen(const std::byte* at, Bytes bytes) const {
    return gpu_.seen({at, bytes});
  }

 private:
  static ClusterSettings with_gpu(ClusterSettings settings, FakeGpu& gpu, int locals) {
    settings.hosts *= locals;
    settings.gpu = &gpu.calls();
    settings.gpu_flush = true;
    settings.receive_ring = 4096;
    return settings;
  }
  int locals_;
  int hosts_;
  exec::RailLayout layout_;
  FakeGpu gpu_;
  Cluster cluster_;
  std::vector<std::unique_ptr<RailLinks>> links_;
  std::vector<std::unique_ptr<exec::Rail>> rails_;
};

}  // namespace gdrx::sim
