// SPDX-License-Identifier: Apache-2.0
// The sending end of a connection: matches isend() with the clear-to-send ring's oldest group, cuts
// the message into chunks and writes them into the receiver's receive ring while there is room.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/core/comm.hpp"
#include "plugin/core/eager.hpp"
#include "plugin/core/memory.hpp"
#include "plugin/gpu/copier.hpp"
#include "plugin/gpu/handover.hpp"
#include "transport/memory/pages.hpp"

namespace gdrx::net {

class Sender final : public Comm {
 public:
  static Result<std::unique_ptr<Sender>> create(std::shared_ptr<DeviceContext> device_context);
  ~Sender() override;

  /// What goes with the greeting.
  Blob clear_to_send_key() const { return device_context().export_key(*clear_to_send_region_); }
  /// The greeting's answer. Checked, the peer not trusted.
  Result<void> attach(const Welcome& welcome, std::span<const std::byte> address,
                      std::span<const std::byte> receive_ring_key, std::string peer_name);

  /// Makes both ways of the connection work before NCCL has it: call until it is done.
  Result<Progress> wire_up();

  /// Null: not yet, ask again with the same arguments. `memory` is null for host memory that is not
  /// registered. The bytes are read until the request is done.
  Result<void*> isend(std::span<const std::byte> bytes, int tag, const Memory* memory);

  void let_go(const Memory& memory) noexcept override;
  void on_immediate(std::uint16_t) override {}
  void on_written(std::uint32_t slot) override;
  Result<Answer> test(RequestId id) override;
  std::string state() const override;

 private:
  struct Send {
    std::uint32_t life = 0;
    bool active = false;
    bool queued = false;      // not all chunks are posted
    bool direct = false;      // straight to its place, then a head without bytes
    bool copied = false;      // by a copy engine, into the peer's GPU memory
    bool filled = false;      // the write itself tells the receiver: no head
    RemoteRegionId region{};  // otherwise written by the fabric, here
    Bytes offset = 0;
    bool written = false;  // that write is posted
    std::span<const std::byte> bytes;
    RegistrationRef local;  // of the bytes; held until the send is done
    std::uint64_t group = 0;
    std::uint32_t item = 0;
    Bytes posted = 0;
    std::uint32_t staged = 0;     // chunks whose head is not posted
    std::uint32_t unwritten = 0;  // chunks under way
    int size = 0;
    int tag = 0;
    Instant begun{};
  };
  explicit Sender(std::shared_ptr<DeviceContext> device_context)
      : Comm(std::move(device_context)) {}
  Result<void> open();
  /// The item of the oldest group that takes this tag; nothing if it is not there yet.
  Result<std::optional<std::uint32_t>> match(int tag);
  std::optional<std::uint32_t> open_item(const Group& group, int tag) const noexcept;
  /// Eager messages take their items, exactly as the receiver gives them out.
  Result<void> match_eager();
  /// The oldest group that is not all matched; null: not there yet.
  Result<const Group*> open_group() const;
  bool may_go_eagerly(std::span<const std::byte> bytes, const Memory* memory) const noexcept;
  /// A slot for a message, queued to be posted once its other fields are set.
  std::uint16_t begin(std::span<const std::byte> bytes, int tag, const Memory* memory) noexcept;
  Result<void*> send(std::uint16_t slot);
  void take_item(std::uint32_t item) noexcept;
  bool is_next(std::uint32_t item) const noexcept;
  /// How a message gets to its place.
  struct Route {
    enum class Way : std::uint8_t {
      receive_ring,  // in chunks, which the receiver copies
      copy,          // by a copy engine, to `target` in the peer's GPU memory
      write,         // by the fabric, to `region`
      later,         // what is to be known of the peer's memory is on its way
    };
    Way way = Way::receive_ring;
    std::span<std::byte> target;
    RemoteRegionId region{};
  };
  Result<Route> route(const Item& item, Bytes size, const Memory* memory);
  Result<Route> route_to_gpu(std::uint32_t id, Bytes offset, Bytes size);
  Result<void> prepare_copies();
  Result<Progress> post_direct(std::uint16_t slot);
  Result<void> on_frame(const Frame& frame) override;
  Result<void> forget_given(std::uint32_t id);
  Result<void> pump();
  Result<Progress> post_chunk(std::uint16_t slot);
  ChunkHead head_of(const Send& send) const noexcept;  // the next chunk's
  Result<Progress> post_head(const ChunkHead& head, std::span<const std::byte> payload,
                             std::uint16_t slot);
  Bytes place_of(std::uint64_t chunk) const noexcept { return chunk % chunks_ * chunk_bytes_; }
  /// Large messages within a host: threads store chunks into the receive ring, and their heads
  /// follow.
  void prepare_staging();
  bool by_threads(const Send& send) const noexcept;
  void stage(const ChunkHead& head, std::uint16_t slot);
  Result<Progress> post_staged();
  void finish_staged() noexcept;

  Pages clear_to_send_memory_;  // nothing else of the process is on pages that the fabric writes
  ClearToSendRing* clear_to_send_ = nullptr;
  std::unique_ptr<MemoryRegion> clear_to_send_region_;
  RemoteRegionId receive_ring_{};
  struct GivenRegion {
    std::uint32_t id = 0;
    RemoteRegionId region{};
    Bytes bytes = 0;
  };
  const GivenRegion* find_given(std::uint32_t id) const noexcept;
  std::vector<GivenRegion> given_;  // not taken back, by id
  std::uint32_t last_given_ = 0;
  std::unique_ptr<gpu::IpcImporter> importer_;  // where the peer takes GPU memory
  std::unique_ptr<gpu::Copier> copier_;
  std::uint32_t peer_comm_ = 0;
  std::uint32_t peer_filled_ = 0;  // as in Welcome
  Bytes chunk_bytes_ = 0;          // with the head
  Bytes most_in_chunk_ = 0;        // without it
  std::uint64_t chunks_ = 0;
  std::uint64_t next_chunk_ = 0;  // posted so far, or staged
  struct Staged {
    CopyJob job;
    ChunkHead head;
    std::uint16_t slot = 0;
  };
  std::vector<Staged> staged_;                // by the receive ring's places; empty: nothing is
  std::uint64_t next_head_ = 0;               // chunks from here to next_chunk_ are staged
  std::span<std::byte> receive_ring_mapped_;  // where this process can store into it
  std::uint64_t group_ = 1;                   // the oldest that is not all matched
  std::uint32_t matched_ = 0;                 // its items, as bits
  bool eager_ = false;                        // the peer takes eager messages
  EagerList<int> eager_tags_;                 // of those that have no item yet, in their order
  std::array<Send, kMaxSends> sends_{};
  std::vector<std::uint16_t> free_;
  std::array<std::uint16_t, kMaxSends> queue_{};  // ring of sends with chunks to post
  std::size_t queue_first_ = 0;
  std::size_t queue_count_ = 0;
  std::uint32_t unwritten_ = 0;
  bool greeted_ = false;
};

}  // namespace gdrx::net
