// SPDX-License-Identifier: Apache-2.0
// The receiving end of a connection: tells the sender on its clear-to-send ring what may come,
// empties the receive ring into NCCL's buffers and gives the room back; names the memory that needs
// no receive ring.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/core/comm.hpp"
#include "plugin/core/eager.hpp"
#include "plugin/core/memory.hpp"
#include "plugin/gpu/handover.hpp"

namespace gdrx::net {

/// Where one receive of a group goes.
struct Target {
  std::span<std::byte> bytes;
  int tag = 0;
  const Memory* memory = nullptr;  // null: host memory that is not registered
};

class Receiver final : public Comm {
 public:
  /// What the sender's greeting said, checked here.
  static Result<std::unique_ptr<Receiver>> create(std::shared_ptr<DeviceContext> device_context,
                                                  const Hello& hello,
                                                  std::span<const std::byte> address,
                                                  std::span<const std::byte> clear_to_send_key,
                                                  std::string peer_name);
  ~Receiver() override;

  Welcome welcome() const;
  Blob receive_ring_key() const { return device_context().export_key(*receive_ring_region_); }

  /// As Sender::wire_up().
  Result<Progress> wire_up();

  /// One to kMaxGroup receives. Null: not yet, ask again.
  Result<void*> irecv(std::span<const Target> targets);

  Result<std::uint32_t> hand_over(std::span<std::byte> memory) override;
  std::uint32_t hand_over(const MemoryRegion& region) override;
  void take_back(const MemoryRegion& region) override;
  void let_go(const Memory& memory) noexcept override;
  /// What has been received into GPU memory becomes visible to the GPU when the request is done.
  /// Null: it is already.
  Result<void*> flush(const MemoryRegion& region);
  void on_immediate(std::uint16_t index) override;
  void on_written(std::uint32_t slot) override;
  Result<Answer> test(RequestId id) override;
  std::string state() const override;

 private:
  struct Receive {
    std::uint32_t life = 0;
    bool active = false;
    std::uint64_t group = 0;
    std::uint32_t count = 0;
    std::uint32_t open = 0;  // items that have not all come
    std::array<std::span<std::byte>, kMaxGroup> targets;
    std::array<Bytes, kMaxGroup> got;
    std::array<bool, kMaxGroup> done;
    std::array<bool, kMaxGroup> come;              // its last chunk
    std::array<std::uint32_t, kMaxGroup> copying;  // chunks, by threads
    std::array<bool, kMaxGroup> gpu;
    std::array<bool, kMaxGroup> handed_over;
    std::array<const Memory*, kMaxGroup> memory;  // registered as; null: not registered
    std::array<bool, kMaxGroup> gone;             // let go: what comes is dropped
    std::array<int, kMaxGroup> sizes;
    Instant begun{};
  };
  struct Flushing {
    std::uint32_t life = 0;
    bool active = false;
    bool started = false;
    bool done = false;
    const MemoryRegion* region = nullptr;
  };
  struct HandedOver {
    std::uint32_t id = 0;
    std::uint32_t owners = 0;
  };
  Result<bool> start(Flushing& flush);  // false: it needs nothing
  Result<Answer> test_flush(RequestId id);
  explicit Receiver(std::shared_ptr<DeviceContext> device_context)
      : Comm(std::move(device_context)) {}
  Result<void> open(const Hello& hello, std::span<const std::byte> address,
                    std::span<const std::byte> clear_to_send_key);
  Result<void> take(const ChunkHead& head, const std::byte* bytes);
  /// Clear to send: onto the clear-to-send ring with what is not on it yet, unless that may wait
  /// for more.
  Result<void> tell_groups();
  bool may_wait() const noexcept;
  void take_chunks();
  /// Chunks of large messages, whose copies are done: their room goes back.
  void settle_copies() noexcept;
  /// Waits for those of them that are under way.
  void finish_copies() noexcept;
  /// The first item that no message has come for is in its place.
  Result<void> take_filled();
  /// A message has come for it: in the order in which the sender matches them.
  Result<void> claim(std::uint64_t group, std::uint32_t item);
  void finish(Receive& receive, std::uint32_t item) noexcept;
  Result<void> mark(std::uint64_t group, std::uint32_t item);
  /// An eager message goes to its receive, or is kept until that is posted.
  Result<void> take_eager(const ChunkHead& head, const std::byte* bytes);
  Result<void> match_eager();
  std::optional<std::uint32_t> open_item(int tag) const noexcept;
  Result<void> deliver(std::uint32_t item, std::span<const std::byte> bytes);
  Result<void> give_room_back();

  std::uint32_t chunks_ = 0;  // of the receive ring
  std::unique_ptr<MemoryRegion> receive_ring_region_;
  gpu::SocketName gpu_name_{};
  std::unique_ptr<gpu::IpcExporter> exporter_;  // where GPU memory is taken
  std::uint32_t given_ = 0;                     // regions, ever
  std::map<const MemoryRegion*, HandedOver> handed_over_;
  RemoteRegionId clear_to_send_{};
  std::uint64_t next_group_ = 1;
  std::uint64_t told_ = 1;      // the first group that is not on the sender's clear-to-send ring
  std::uint64_t claiming_ = 1;  // the oldest group with an item that no message has come for
  std::uint32_t claimed_ = 0;   // its other items, as bits
  std::uint16_t filled_index_ = 0;
  struct Eager {
    int tag = 0;
    std::uint16_t bytes = 0;
    std::uint8_t place = 0;  // in eager_memory_
  };
  EagerList<Eager> eager_;               // that no receive is posted for, in their order
  std::uint32_t eager_places_ = 0;       // taken, as bits
  std::vector<std::byte> eager_memory_;  // empty: none are taken
  bool greeted_ = false;                 // the sender's first immediate has come
  bool answered_ = false;
  std::uint64_t arrived_ = 0;   // immediates; only then is a chunk's head looked at
  std::uint64_t taken_ = 0;     // chunks
  std::uint64_t emptied_ = 0;   // of them
  std::uint64_t returned_ = 0;  // of them, told to the sender
  struct Copying {
    CopyJob job;
    std::uint64_t group = 0;  // 0: the chunk was emptied as it was taken
    std::uint32_t item = 0;
  };
  std::vector<Copying> copying_;                    // by the receive ring's places
  std::array<Group, kClearToSendGroups> groups_{};  // what is being written to the ring
  std::array<Receive, kClearToSendGroups> receives_{};
  std::array<Flushing, nccl::kMaxRequests> flushes_{};
};

}  // namespace gdrx::net
