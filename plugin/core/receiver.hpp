// SPDX-License-Identifier: Apache-2.0
// The receiving end of a connection: tells the sender on its board what may come, empties the inbox
// into NCCL's buffers and gives the room back.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "plugin/core/comm.hpp"
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
  static Result<std::unique_ptr<Receiver>> create(std::shared_ptr<Lane> lane, const Hello& hello,
                                                  std::span<const std::byte> address,
                                                  std::span<const std::byte> board_key,
                                                  std::string peer_name);
  ~Receiver() override;

  Welcome welcome() const;
  Blob inbox_key() const { return lane().export_key(*inbox_region_); }

  /// As Sender::wire_up().
  Result<Progress> wire_up();

  /// One to kMaxGroup receives. Null: not yet, ask again.
  Result<void*> irecv(std::span<const Target> targets);

  Result<std::uint32_t> hand_over(std::span<std::byte> memory) override;
  Result<std::uint32_t> hand_over(const MemoryRegion& region) override;
  void on_immediate() override;
  void on_written(std::uint32_t) override {}
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
    std::array<bool, kMaxGroup> gpu;
    std::array<bool, kMaxGroup> handed_over;
    std::array<int, kMaxGroup> sizes;
    Instant begun{};
  };
  explicit Receiver(std::shared_ptr<Lane> lane) : Comm(std::move(lane)) {}
  Result<void> open(const Hello& hello, std::span<const std::byte> address,
                    std::span<const std::byte> board_key);
  Result<void> take(const ChunkHead& head, const std::byte* bytes);
  Result<void> give_room_back();

  std::unique_ptr<MemoryRegion> inbox_region_;
  gpu::SocketName gpu_name_{};
  std::unique_ptr<gpu::Giver> giver_;  // where GPU memory is taken
  std::uint32_t given_ = 0;            // regions
  RemoteRegionId board_{};
  std::uint64_t next_group_ = 1;
  bool greeted_ = false;  // the sender's first immediate has come
  bool answered_ = false;
  std::uint64_t arrived_ = 0;                 // immediates; only then is a chunk's head looked at
  std::uint64_t taken_ = 0;                   // chunks
  std::uint64_t returned_ = 0;                // of them, told to the sender
  std::array<Group, kBoardGroups> groups_{};  // what is being written to the board
  std::array<Receive, kBoardGroups> receives_{};
};

}  // namespace gdrx::net
