// SPDX-License-Identifier: Apache-2.0
// Writes between the ranks of a host: stores, and a word that tells of them. See README.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gdrx/transport.hpp"
#include "transport/shm/done.hpp"
#include "transport/shm/mailbox.hpp"
#include "transport/shm/part.hpp"
#include "transport/shm/wire.hpp"

namespace gdrx::shm {

class ShmDevice;

class ShmRegion final : public MemoryRegion {
 public:
  /// `memory`: of no segment where it is the caller's, into which no other process writes.
  ShmRegion(std::shared_ptr<ShmDevice> device, std::uint16_t number, Part memory)
      : device_(std::move(device)), number_(number), memory_(std::move(memory)) {}
  ~ShmRegion() override;
  std::span<std::byte> bytes() const noexcept override { return memory_.bytes; }
  Blob export_key() const override;

 private:
  std::shared_ptr<ShmDevice> device_;
  std::uint16_t number_;
  Part memory_;
};

class ShmDevice final : public Device, public std::enable_shared_from_this<ShmDevice> {
 public:
  static Result<std::shared_ptr<ShmDevice>> create(Rank self, std::uint32_t ranks);
  /// `mailbox`: of Mailbox::bytes(). `room`: what is allocated first has it; the rest is given up.
  static Result<std::shared_ptr<ShmDevice>> create(Rank self, std::uint32_t ranks, Part mailbox,
                                                   Part room);

  Blob address() const override;
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory,
                                                        MemoryKind kind) override;
  Result<std::unique_ptr<MemoryRegion>> allocate_memory(std::size_t bytes) override;
  Result<std::unique_ptr<Endpoint>> connect(Rank peer, std::span<const std::byte> address) override;
  Result<std::size_t> poll(std::span<Completion> completions) override;
  /// What was posted is in the peer's memory already.
  bool busy() const noexcept override { return false; }
  void isolate_peers() noexcept override { isolating_ = true; }
  void report_to(Hearing& hearing) noexcept override { hearing_ = &hearing; }
  std::string describe() const override;

  // For endpoints and regions.
  struct Sent {
    std::uint16_t told = 0;   // the newest word's number
    std::uint16_t taken = 0;  // by the peer, when it was last looked at
  };
  Sent& sent(Rank peer) noexcept { return sent_[static_cast<std::size_t>(index(peer))]; }
  Done& done() noexcept { return done_; }
  std::uint32_t self() const noexcept { return self_; }
  std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(sources_.size()); }
  const Error* error_of(Rank peer) const noexcept;
  void end_region(std::uint16_t number) noexcept;

 private:
  struct Source {
    Word taken;            // the newest that was handed out
    bool refused = false;  // it tells what cannot be
  };
  ShmDevice(std::uint32_t self, std::uint32_t ranks) : self_(self), sent_(ranks), sources_(ranks) {}
  std::unique_ptr<MemoryRegion> add_region(Part memory);
  bool is_live(std::uint16_t region) const noexcept;
  void hear_bell() noexcept;
  // Both return how many completions are filled, of which there were `count`.
  std::size_t collect(std::span<Completion> completions, std::size_t count);
  std::size_t collect_from(std::uint32_t source, std::span<Completion> completions,
                           std::size_t count);
  void refuse(std::uint32_t source, std::string what);

  std::uint32_t self_;
  Part mailbox_part_;
  Mailbox mailbox_;
  Part room_;
  Done done_;
  std::vector<Sent> sent_;
  std::vector<Source> sources_;
  std::vector<std::uint64_t> rung_;  // groups of ranks of which something may be new
  std::uint32_t next_ = 0;           // the source that is looked at first
  std::vector<std::uint16_t> regions_;
  std::uint16_t next_region_ = 0;
  std::optional<Error> error_;
  std::map<Rank, Error> lost_;
  Hearing* hearing_ = nullptr;  // or nobody asks
  bool isolating_ = false;
};

}  // namespace gdrx::shm
