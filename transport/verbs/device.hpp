// SPDX-License-Identifier: Apache-2.0
// The Device of the verbs fabric: all usable ports of this host as rails, a Peer for each device
// that is connected to or that said hello.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "gdrx/log_limit.hpp"
#include "transport/verbs/flush.hpp"
#include "transport/verbs/peer.hpp"
#include "transport/verbs/region.hpp"
#include "transport/verbs/turns.hpp"

namespace gdrx::verbs {

class VerbsDevice final : public Device, public std::enable_shared_from_this<VerbsDevice> {
 public:
  static Result<std::shared_ptr<VerbsDevice>> create(const std::shared_ptr<const VerbsTable>& table,
                                                     Rank self, const Options& options,
                                                     const Clock& clock, const Log& log,
                                                     std::uint64_t nonce,
                                                     const cuda::GpuCalls& gpu = cuda::gpu_calls());
  Blob address() const override;
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory,
                                                        MemoryKind kind) override;
  Result<std::unique_ptr<MemoryRegion>> register_dma_buf(std::span<std::byte> memory, int fd,
                                                         Bytes offset) override;
  Result<std::unique_ptr<PinnedMemory>> pin(std::span<std::byte> memory,
                                            MemoryKind kind) const override;
  Result<std::unique_ptr<PinnedMemory>> pin_dma_buf(std::span<std::byte> memory, int fd,
                                                    Bytes offset) const override;
  std::unique_ptr<MemoryRegion> adopt(std::unique_ptr<PinnedMemory> pinned) override;
  std::unique_ptr<PinnedMemory> disown(std::unique_ptr<MemoryRegion> region) override;
  Result<std::unique_ptr<MemoryRegion>> allocate_memory(std::size_t bytes) override;
  Result<Flush> flush(const MemoryRegion& region, std::uint64_t cookie) override;
  Result<std::unique_ptr<Endpoint>> connect(Rank peer, std::span<const std::byte> address) override;
  Result<std::size_t> poll(std::span<Completion> completions) override;
  bool busy() const noexcept override;
  void isolate_peers() noexcept override { core_.isolating = true; }
  void report_to(Hearing& hearing) noexcept override { core_.hearing = &hearing; }

  const Counters& counters() const noexcept { return core_.counters; }
  DeviceEvents events() const noexcept override {
    return {core_.counters.rails_down, core_.counters.resent, core_.counters.copied};
  }
  std::vector<int> near_cpus() const override;
  std::string describe() const override;
  std::string ports() const;
  std::string state() const;

 private:
  struct ChannelPlace {
    Peer* peer = nullptr;
    PortPair* pair = nullptr;
    QpChannel* channel = nullptr;
  };
  VerbsDevice() = default;
  Result<void> open(const std::shared_ptr<const VerbsTable>& table);
  void place_helper();
  Result<void> open_rails(const std::shared_ptr<const VerbsTable>& table);
  Result<Peer*> make_peer(Rank rank, std::uint64_t nonce, const Pairing& pairing, std::size_t qps);
  void drop_newest_peer(Rank rank) noexcept;
  Result<Peer*> welcome(const Control& hello);
  bool poll_rails(bool all);
  void fail_qp(const Rail& rail, std::uint32_t number, Instant now);
  void rest(bool any);
  void read_control(Instant now);
  void tick(Instant now);

  Core core_;
  Flusher flusher_{core_};
  std::map<Rank, std::unique_ptr<Peer>> peers_;
  Turns turns_;
  std::vector<ChannelPlace> channels_;  // by id
  std::uint32_t polls_ = 0;
  bool soft_ = false;       // all rails are
  std::uint32_t vain_ = 0;  // polls in a row that found nothing
  Instant next_tick_{};
  Instant next_events_{};
  LogLimit refused_;  // hellos
};

}  // namespace gdrx::verbs
