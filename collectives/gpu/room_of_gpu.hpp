// SPDX-License-Identifier: Apache-2.0
// How the communicators that use a GPU divide its multiprocessors, in whatever processes of this
// host they are. No CUDA.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace gdrx::gpu {

/// A rank's row on the page of its GPU. `kept`: blocks of the largest call that its graphs hold.
struct ShareRow {
  std::uint64_t communicator = 0;  // the same of all its ranks; 0: nobody's row
  std::uint32_t kept = 0;
  std::uint32_t unused = 0;
};
inline constexpr std::uint32_t kShareRows = 510;

/// Blocks that each of these ranks may have on a GPU of so many multiprocessors, a multiprocessor
/// each: together they leave one. A rank that keeps more has that. At least 1. 0: as many as a call
/// has, as of two communicators some block always has room.
std::uint32_t share_of(std::span<const ShareRow> rows, int processors) noexcept;

class SharePage;

/// A rank's row, as long as the object lives; of a process that ends, as long as that lives. Where
/// the host has no page for all its processes, or no row is free, the process has one of its own.
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
  GpuShare(std::shared_ptr<SharePage> page, std::uint32_t row, int processors) noexcept
      : page_(std::move(page)), row_(row), processors_(processors) {}
  int bounded() noexcept;
  void change(int before, int after);
  void say_kept() noexcept;  // under the mutex of pages

  const std::shared_ptr<SharePage> page_;
  const std::uint32_t row_;
  const int processors_;
  int kept_ = 0;                 // for as long as it lives
  std::multiset<int> by_graph_;  // under the mutex of pages
};

}  // namespace gdrx::gpu
