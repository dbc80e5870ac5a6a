// SPDX-License-Identifier: Apache-2.0
// GPU memory of one process, mapped in another of the same host: an allocation of CUDA's virtual
// memory management travels as a file descriptor over a Unix socket, to a process of the same user.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "gdrx/result.hpp"
#include "plugin/gpu/own_context.hpp"
#include "transport/bootstrap/socket.hpp"

namespace gdrx::gpu {

/// The name of a receiver's socket, random: no file, and gone with its process.
using SocketName = std::array<std::uint64_t, 2>;

/// What goes with a descriptor.
struct Note {
  std::uint32_t id = 0;  // 1, 2, ...: the receiver's number for this memory
  std::uint32_t reserved = 0;
  std::uint64_t allocation = 0;  // bytes of all of it
  std::uint64_t offset = 0;      // where the registered part begins in it
  std::uint64_t bytes = 0;       // of that part
};
static_assert(sizeof(Note) == 32 && std::is_trivially_copyable_v<Note>);

/// The receiver's end: gives its memory away.
class IpcExporter {
 public:
  static Result<std::unique_ptr<IpcExporter>> listen(const SocketName& name);
  /// The number by which the other side knows the memory from here on. Errc::unsupported if it is
  /// not of a kind that can be handed over.
  Result<std::uint32_t> give(std::span<std::byte> memory);

 private:
  Result<void> meet();
  Socket listening_;
  Socket peer_;
  std::uint32_t next_ = 1;
};

/// The sender's end: maps it for its own GPU.
class IpcImporter {
 public:
  static Result<std::unique_ptr<IpcImporter>> connect(const SocketName& name);
  ~IpcImporter();
  IpcImporter(const IpcImporter&) = delete;
  IpcImporter& operator=(const IpcImporter&) = delete;
  /// The memory of that number; its description may still be on the way: then nothing. It is mapped
  /// within that context, always the same one, for what copies there.
  Result<std::optional<std::span<std::byte>>> find(std::uint32_t id,
                                                   const std::shared_ptr<OwnContext>& context);

 private:
  struct Mapping {
    Pointer at = 0;
    std::size_t size = 0;
    std::span<std::byte> part;
  };
  IpcImporter() = default;
  Result<bool> take_one();
  Result<void> map(const Note& note, int descriptor);
  Socket socket_;
  std::vector<Mapping> mapped_;
  std::shared_ptr<OwnContext> context_;  // once something was mapped
};

}  // namespace gdrx::gpu
