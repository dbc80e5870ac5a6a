// SPDX-License-Identifier: Apache-2.0
// The transport every fabric implements: one-sided writes into a peer's registered memory, with an
// optional 32-bit immediate that tells the peer. Fabric > Device > Endpoint, MemoryRegion,
// Completion.
//
// Threads: a Device and everything made from it are used by one thread at a time, but for pin() and
// PinnedMemory; the caller serialises. Nothing is allocated, locked or logged between post and
// completion once a Device has reached its working set of requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/bootstrap.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx {

class Hearing;

/// A write's header travels beside its payload and lands directly before it: at most this long.
inline constexpr std::size_t kMaxWriteHeader = 64;

enum class RemoteRegionId : std::uint32_t {};  // an imported key, an index of its Endpoint

/// How NICs reach a region. The last three are of GPU memory.
enum class MemoryPath : std::uint8_t {
  host,
  dma_buf,  // directly: its pages were exported to the NIC's driver
  peermem,  // directly: nvidia-peermem gave them
  staged,   // a pinned copy on the host is sent from and written to
};
constexpr std::string_view to_string(MemoryPath path) noexcept {
  switch (path) {
    case MemoryPath::host:
      return "host";
    case MemoryPath::dma_buf:
      return "dma-buf";
    case MemoryPath::peermem:
      return "nvidia-peermem";
    case MemoryPath::staged:
      return "staged";
  }
  return "?";
}

/// Local memory registered with a Device; deregistered when destroyed. The memory stays the
/// caller's and must outlive it and every write in flight.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual std::span<std::byte> bytes() const noexcept = 0;
  /// What a peer needs to write here; opaque, a few hundred bytes at most.
  virtual Blob export_key() const = 0;
  virtual MemoryPath path() const noexcept { return MemoryPath::host; }
};

/// What register_memory() takes long to make, and to end: pages that NICs have. No Device works
/// with it. It outlives none of the memory, keeps its Device, and is for any thread.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
};

/// One write: [header | payload] lands at `offset` of the remote region, then, if `immediate` is
/// set, the peer's poll() reports it. The header is copied by post(); the payload is read until the
/// write's completion.
struct WriteOp {
  std::span<const std::byte> header;    // <= kMaxWriteHeader bytes, may be empty
  std::span<const std::byte> payload;   // may be empty
  const MemoryRegion* local = nullptr;  // region that holds the payload; null: host memory, copied
  RemoteRegionId remote{};
  Bytes offset = 0;
  bool has_immediate = false;
  std::uint32_t immediate = 0;
  std::uint64_t cookie = 0;  // returned by this write's own completion
};

/// What Device::flush() did.
enum class Flush : std::uint8_t {
  not_needed,  // all that has been reported is visible
  started,     // a write_done with the cookie and this Device's own rank will tell
  pending,     // no room now: poll and try again
};

enum class CompletionKind : std::uint8_t {
  write_done,  // payload may be reused; it is in the peer's memory or on its way without our help
  immediate,   // a peer's write with immediate has landed: its bytes are visible to this thread
};

struct Completion {
  CompletionKind kind{};
  Rank peer{};
  std::uint32_t immediate = 0;  // immediate only
  std::uint64_t cookie = 0;     // write_done only
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual Rank peer() const noexcept = 0;
  /// Makes a peer's region a target. The key is checked, the peer not trusted.
  virtual Result<RemoteRegionId> import_region(std::span<const std::byte> key) = 0;
  /// Posts one write. `pending`: no room now, poll and try again. Never blocks.
  virtual Result<Progress> post(const WriteOp& op) = 0;
  /// The region where this process has it mapped, to store into what a later post() tells of.
  /// Empty: it has not.
  virtual std::span<std::byte> mapped(RemoteRegionId region) const noexcept {
    (void)region;
    return {};
  }
  /// "posix, cma" and so on: what carries the bytes, for people.
  virtual std::string describe() const = 0;
  /// Ends an import. The region must be no target of a write that is not done.
  virtual void release_region(RemoteRegionId region) noexcept = 0;
  /// Why this peer is lost, null while it is not. Only of a Device that isolates its peers.
  virtual const Error* error() const noexcept = 0;
};

/// What has happened to a Device since it was opened.
struct DeviceEvents {
  std::uint64_t rails_down = 0;
  std::uint64_t resent = 0;  // parts of messages, after a rail went down
  std::uint64_t copied = 0;  // bytes of payloads that were not registered
};

class Device {
 public:
  virtual ~Device() = default;
  /// To be handed to the peers' connect().
  virtual Blob address() const = 0;
  /// GPU memory is reached as MemoryRegion::path() says, chosen once a GPU and logged with the
  /// reason. Staged regions cost a blocking copy in post() and before a completion is reported.
  virtual Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory,
                                                                MemoryKind kind) = 0;
  /// GPU memory whose pages somebody has exported: `fd` is the caller's, and `offset` where the
  /// memory begins in it. Errc::unsupported where the NICs take no dma-buf.
  virtual Result<std::unique_ptr<MemoryRegion>> register_dma_buf(std::span<std::byte> memory,
                                                                 int fd, Bytes offset) {
    (void)memory;
    (void)fd;
    (void)offset;
    return fail(Errc::unsupported, "this fabric takes no dma-buf");
  }
  /// register_memory() and register_dma_buf() in two steps, of which the first takes long and is
  /// for any thread at any time, while another one uses the Device. Null: there is nothing to do
  /// before.
  virtual Result<std::unique_ptr<PinnedMemory>> pin(std::span<std::byte> memory,
                                                    MemoryKind kind) const {
    (void)memory;
    (void)kind;
    return nullptr;
  }
  virtual Result<std::unique_ptr<PinnedMemory>> pin_dma_buf(std::span<std::byte> memory, int fd,
                                                            Bytes offset) const {
    (void)memory;
    (void)fd;
    (void)offset;
    return nullptr;
  }
  /// The second step, for what this Device has pinned.
  virtual std::unique_ptr<MemoryRegion> adopt(std::unique_ptr<PinnedMemory> pinned) {
    (void)pinned;
    return nullptr;
  }
  /// The region ends. What is left of it, if anything, is still to be ended, which takes long.
  virtual std::unique_ptr<PinnedMemory> disown(std::unique_ptr<MemoryRegion> region) {
    region.reset();
    return nullptr;
  }
  /// Memory of the kind into which peers write fastest (shared, where they are on this host), zero
  /// at first and committed only where it is touched.
  virtual Result<std::unique_ptr<MemoryRegion>> allocate_memory(std::size_t bytes) = 0;
  /// Makes what peers have written into a region of GPU memory, and of which poll() has told,
  /// visible to the GPU: by a read through every NIC, where the GPU does not order it itself.
  virtual Result<Flush> flush(const MemoryRegion& region, std::uint64_t cookie) {
    (void)region;
    (void)cookie;
    return Flush::not_needed;
  }
  /// Non-blocking; the connection is made while poll() is called on both sides.
  virtual Result<std::unique_ptr<Endpoint>> connect(Rank peer,
                                                    std::span<const std::byte> address) = 0;
  /// Drives everything, returns how many completions it filled. An error is final for the Device; a
  /// peer that is gone is Errc::peer_lost with its rank in the text.
  virtual Result<std::size_t> poll(std::span<Completion> completions) = 0;
  /// True while something of ours still needs poll() to leave this process (unfinished writes,
  /// protocol answers). A caller may sleep or return when it is false.
  virtual bool busy() const noexcept = 0;
  /// From here on the loss of a peer, and what a peer does wrong, ends its Endpoint and nothing
  /// else: poll() goes on for the others. Late writes to regions that have ended are dropped.
  virtual void isolate_peers() noexcept = 0;
  /// From here on `hearing` is told of each peer whose bytes or acknowledgements come. It outlives
  /// the Device's last poll().
  virtual void report_to(Hearing& hearing) noexcept { (void)hearing; }
  virtual DeviceEvents events() const noexcept { return {}; }
  /// The CPUs near its NICs, in ascending order. Empty: not known, or it has no NIC of its own.
  virtual std::vector<int> near_cpus() const { return {}; }
  /// NICs, how GPU memory is reached and why, counters: one line, for people.
  virtual std::string describe() const = 0;
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual std::string_view name() const noexcept = 0;  // "ucx", "verbs", "sim"
  virtual std::string describe() const = 0;            // version and what it may use, for people
  /// `self` is this side's rank, which peers see in Completion::peer.
  virtual Result<std::shared_ptr<Device>> open_device(Rank self, const Config& config,
                                                      const Log& log) = 0;
};

/// Opens a fabric by name ("ucx"). Loads its module, so that nothing else links UCX.
/// Errc::unsupported says what is missing and what to install. Changes no signal disposition of the
/// process.
Result<std::shared_ptr<Fabric>> open_fabric(std::string_view name, const Config& config,
                                            const Log& log);

}  // namespace gdrx
