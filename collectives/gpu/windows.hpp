// SPDX-License-Identifier: Apache-2.0
// The registered memory of one communicator: where each window lies here and, mapped, at the peers.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/gpu/exportable_memory.hpp"
#include "collectives/gpu/mapping.hpp"
#include "collectives/gpu/path.hpp"
#include "collectives/kernels/call.hpp"

namespace gdrx::gpu {

/// The device of the path is current in every call but find().
class Windows {
 public:
  struct Window {
    std::uint64_t id = 0;
    std::uint64_t begin = 0;  // of this rank's memory
    std::uint64_t bytes = 0;
    std::uint64_t owners = 1;
    bool aligned = true;                        // each rank's memory, to a pack
    std::array<std::uint8_t*, kMaxRanks> at{};  // each rank's, as reached from here
    std::vector<std::unique_ptr<Mapping>> mappings;
    std::shared_ptr<const ExportableMemory> held;  // this rank's, if a path allocated it
  };

  /// `processes`: of each rank; `process`: of this one.
  void connect(std::vector<std::uint64_t> processes, std::uint64_t process, int self);
  /// Windows do not overlap, unless they are the same range: then a kernel's buffers lie in one
  /// window at most, and all ranks find the same.
  Result<std::unique_ptr<ExportedMemory>> offer(void* memory, std::uint64_t bytes);
  Result<WindowId> open(std::span<const Blob> tickets, Deadline deadline);
  /// True: it was the last owner's, and is gone.
  bool close(WindowId id) noexcept;
  void close_all() noexcept { windows_.clear(); }
  /// The window that all of the range lies in, or null. Allocates nothing.
  const Window* find(const void* memory, std::uint64_t bytes) const noexcept;
  /// Both ranges lie in windows, each at a multiple of a pack on every rank. Allocates nothing.
  bool reach(const void* input, const void* output, std::uint64_t bytes) const noexcept;
  /// What a kernel needs of both buffers' windows. False: one of them is in none.
  bool fill(DirectCall& call, const void* input, const void* output,
            std::uint64_t bytes) const noexcept;

 private:
  Result<std::unique_ptr<Mapping>> map(const WindowTicket& ticket, std::uint64_t process,
                                       Deadline deadline) const;

  std::vector<std::uint64_t> processes_;
  std::uint64_t process_ = 0;
  std::size_t self_ = 0;
  std::uint64_t next_id_ = 1;
  std::vector<Window> windows_;  // few
};

}  // namespace gdrx::gpu
