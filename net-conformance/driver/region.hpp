// SPDX-License-Identifier: Apache-2.0
// Memory with known contents between two guards, registered with a communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>

#include "gdrx/result.hpp"
#include "net-conformance/driver/session.hpp"

namespace gdrx::conformance {

inline constexpr std::byte kUntouched{0x5a};

/// Byte `i` of the message `seed`.
std::byte pattern(std::uint64_t seed, std::size_t i) noexcept;
void fill(std::span<std::byte> bytes, std::uint64_t seed) noexcept;
/// Where `bytes` first differ from the message `seed`.
std::optional<std::size_t> first_wrong(std::span<const std::byte> bytes,
                                       std::uint64_t seed) noexcept;
bool untouched(std::span<const std::byte> bytes) noexcept;

/// Owns the memory and its registration. Dies before the communicator.
class Region {
 public:
  /// `skew`: bytes by which the start is off a page.
  static Result<Region> make(Session& session, void* comm, std::size_t size, std::size_t skew = 0);
  Region(Region&&) noexcept = default;
  Region& operator=(Region&&) = delete;
  ~Region() { deregister(); }

  std::span<std::byte> bytes() const noexcept { return {start_, size_}; }
  std::byte* data() const noexcept { return start_; }
  std::size_t size() const noexcept { return size_; }
  void* mhandle() const noexcept { return registered_ ? registered_->mhandle : nullptr; }
  bool guards_hold() const noexcept;
  NetResult deregister() noexcept;

 private:
  struct Registered {
    Session* session;
    void* comm;
    void* mhandle;
  };
  struct Free {
    void operator()(std::byte* memory) const noexcept { ::operator delete[](memory, kPage); }
  };
  static constexpr std::align_val_t kPage{4096};
  Region() = default;

  std::unique_ptr<std::byte[], Free> memory_;
  std::byte* start_ = nullptr;
  std::size_t size_ = 0;
  std::unique_ptr<Registered> registered_;
};

}  // namespace gdrx::conformance
