// SPDX-License-Identifier: Apache-2.0
// Traffic between the hosts of a Cluster that notices every wrong byte: slots with canaries,
// poisoned while nobody may write them, sources that are scribbled over as soon as they may be. All
// of it in host memory, or in that of a GPU, where what came is looked at after a flush.
#pragma once

#include <deque>
#include <map>

#include "tests/fabric/cluster.hpp"
#include "tests/fabric/fake_gpu.hpp"

namespace gdrx::sim {

class Traffic {
 public:
  static constexpr std::size_t kSlots = 4;
  static constexpr std::size_t kLongest = 96 * 1024;
  static constexpr std::size_t kCanary = 64;
  static constexpr std::size_t kStride = kLongest + 64 + 2 * kCanary;
  static std::size_t receive_ring_bytes(int hosts) { return static_cast<std::size_t>(hosts) * 64; }
  static std::size_t gpu_bytes(int hosts) {
    return static_cast<std::size_t>(hosts * hosts) * (kSlots * kStride + 6 * kLongest);
  }

  /// `gpu`: all but the credits is its memory; of gpu_bytes(), outlives the cluster.
  Traffic(Cluster& cluster, std::uint64_t seed, FakeGpu* gpu = nullptr);

  /// One round: takes what has completed, posts what may be posted. The first thing that is wrong,
  /// in words; empty while all is well.
  std::string round();
  void stop() noexcept { stopped_ = true; }  // posts nothing new
  bool finished() const noexcept;
  std::string unfinished() const;
  std::uint64_t messages() const noexcept { return delivered_; }

 private:
  struct Flow;
  struct Source {
    std::unique_ptr<MemoryRegion> region;
    bool busy = false;
  };
  struct Arrival {
    Flow* flow = nullptr;
    std::uint32_t immediate = 0;
    bool flushing = false;
  };
  struct ReceiveRing {
    std::unique_ptr<MemoryRegion> slots;
    std::vector<RemoteRegionId> remote;  // as each host knows it
    std::deque<Arrival> arrived;         // in GPU memory, not looked at
    std::uint64_t flushed = 0;
  };
  struct Flow {
    int from = 0;
    int to = 0;
    std::uint64_t sent = 0;
    std::uint64_t done = 0;                                  // write_done of messages
    std::uint64_t received = 0;                              // by `to`
    std::uint64_t returned = 0;                              // credits written by `to`
    std::deque<std::pair<Instant, std::uint64_t>> consumed;  // when to return which credit
    std::map<std::uint64_t, bool> open;                      // cookies posted: true when done
    std::array<Source, 6> sources;
  };
  Flow& flow(int from, int to) { return flows_[static_cast<std::size_t>(from * hosts_ + to)]; }
  std::unique_ptr<MemoryRegion> allocate(int rank, std::size_t bytes);
  std::span<std::byte> seen(const MemoryRegion& region) const;
  std::span<std::byte> slot(const Flow& f, std::uint64_t number);
  std::string arrive(Flow& f, std::uint32_t immediate);
  std::string flush_next(int rank);
  std::string flushed(int rank, std::uint64_t cookie);
  static std::size_t slot_at(int from, std::uint64_t number);
  std::size_t size_of(const Flow& f, std::uint64_t number) const;
  std::uint64_t seed_of(const Flow& f, std::uint64_t number) const;
  std::uint32_t immediate_of(const Flow& f, std::uint64_t number) const;
  std::string take(int rank, const Completion& completion);
  std::string receive(Flow& f, std::uint32_t immediate);
  std::string give_credits(Flow& f);
  std::string post(Flow& f);

  Cluster& cluster_;
  FakeGpu* gpu_;
  int hosts_;
  Random random_;
  std::uint64_t seed_;
  std::vector<Flow> flows_;
  std::vector<ReceiveRing> receive_rings_;
  std::vector<std::size_t> taken_;  // completions of each host looked at
  std::uint64_t delivered_ = 0;
  bool stopped_ = false;
};

}  // namespace gdrx::sim
