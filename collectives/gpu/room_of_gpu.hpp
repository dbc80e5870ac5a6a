// SPDX-License-Identifier: Apache-2.0
// How the communicators that use a GPU divide its multiprocessors, in whatever processes of this
// host they are. No CUDA.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace gdrx::gpu {

/// A rank's row on the page of its GPU. `kept`: blocks of the largest call that its graphs hold.
/// `processors`: as its process sees them; 0: not said.
struct ShareRow {
  std::uint64_t communicator = 0;  // the same of all its ranks; 0: nobody's row
  std::uint32_t kept = 0;
  std::uint32_t processors = 0;
};
inline constexpr std::uint32_t kShareRows = 510;

/// Blocks that each of these ranks may have on a GPU of so many multiprocessors, or of the fewest
/// that one of them sees, a multiprocessor each: together they leave one. A rank that keeps more
/// has that. At least 1. 0: as many as a call has, as of two communicators some block always has
/// room.
std::uint32_t share_of(std::span<const ShareRow> rows, int processors) noexcept;

class SharePage;
/// A folder of memory that processes share, and a GPU's UUID.
using SharePageName = std::pair<std::string, std::array<std::uint8_t, 16>>;

/// A rank's row, as long as the object lives; of a process that ends, as long as that lives. Where
/// the host has no page for all its processes the process has one of its own. Where no row is free,
/// or a stopped process keeps the page's door shut, a rank has one block until it finds a row.
class GpuShare {
 public:
  /// `device`: the GPU's UUID. `folder`: of memory that processes share.
  static std::shared_ptr<GpuShare> take(const std::array<std::uint8_t, 16>& device, int processors,
                                        std::uint64_t communicator,
                                        const std::string& folder = "/dev/shm");
  ~GpuShare();
  GpuShare(const GpuShare&) = delete;
  GpuShare& operator=(const GpuShare&) = delete;

  /// Blocks that a kernel of this rank may have now; 0: as many as its call has. One load then.
  int most() noexcept;

  /// Of a call that went into a graph, until the share goes. One thread at a time, as most().
  void keep(int blocks) noexcept;

  /// The same until the object goes. It may outlive the share: of a communicator that is gone the
  /// kernels in graphs wait for nobody.
  class Kept {
   public:
    Kept(const std::shared_ptr<GpuShare>& share, int blocks);
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    void raise(int blocks);

   private:
    std::weak_ptr<GpuShare> share_;
    int blocks_;
  };

 private:
  GpuShare(SharePageName name, std::shared_ptr<SharePage> page, std::uint64_t communicator,
           int processors) noexcept
      : name_(std::move(name)),
        page_(std::move(page)),
        communicator_(communicator),
        processors_(processors) {}
  bool find_row() noexcept;
  int bounded() noexcept;
  void change(int before, int after);
  void say_kept() noexcept;  // under the mutex of pages

  const SharePageName name_;
  // These two under the mutex of pages, but for the thread of most(), which alone changes them.
  std::shared_ptr<SharePage> page_;
  std::optional<std::uint32_t> row_;
  const std::uint64_t communicator_;
  const int processors_;
  std::chrono::steady_clock::time_point looked_;  // for a row
  int kept_ = 0;                                  // for as long as it lives
  std::multiset<int> by_graph_;                   // under the mutex of pages
};

}  // namespace gdrx::gpu
