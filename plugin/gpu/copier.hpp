// SPDX-License-Identifier: Apache-2.0
// Copies of one connection, in order, on a stream of its own: GPU or host memory to a peer's GPU
// memory. The copy engines do them while NCCL's kernel runs, and write into host memory that they
// have: to look costs no call of the driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gdrx/result.hpp"
#include "plugin/gpu/own_context.hpp"

namespace gdrx::gpu {

class Copier {
 public:
  /// `slots` copies may be under way. On the GPU of the calling thread's context.
  static Result<std::unique_ptr<Copier>> create(std::size_t slots);
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  const std::shared_ptr<OwnContext>& context() const noexcept { return context_; }

  /// From any thread, one at a time. Of little host memory a copy is taken at once; pending: there
  /// is no room for it now.
  Result<Progress> start(std::size_t slot, std::byte* to, std::span<const std::byte> from,
                         bool from_host);
  Result<Progress> poll(std::size_t slot);

 private:
  /// Where little host memory goes by way of this GPU.
  struct Room {
    std::byte* host = nullptr;
    Pointer gpu = 0;
    std::size_t slot = 0;  // whose copy was here last, and its number
    std::uint32_t number = 0;
  };
  explicit Copier(std::shared_ptr<OwnContext> context) : context_(std::move(context)) {}
  Result<void> open(std::size_t slots);
  Result<void> copy(Pointer to, Pointer from, std::size_t bytes);
  Result<void> write(Pointer to, std::span<const std::byte> values, std::size_t slot);
  bool done(std::size_t slot) const noexcept;
  std::shared_ptr<OwnContext> context_;
  Stream stream_ = nullptr;
  std::uint32_t* written_ = nullptr;    // by the GPU, a word a slot: the number of its newest copy
  std::vector<std::uint32_t> started_;  // those numbers, of copies that were started
  std::array<Room, 16> rooms_;
  std::size_t next_room_ = 0;
  void* rooms_of_host_ = nullptr;
  Pointer rooms_of_gpu_ = 0;
  std::uint32_t idle_ = 0;
};

}  // namespace gdrx::gpu
