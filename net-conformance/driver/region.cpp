// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/driver/region.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::size_t kGuard = 4096;

/// Splitmix64's finaliser: neighbouring words have nothing in common.
std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t word(std::uint64_t seed, std::size_t index) noexcept {
  return mix((seed << 32) ^ index);
}

}  // namespace

std::byte pattern(std::uint64_t seed, std::size_t i) noexcept {
  return static_cast<std::byte>(word(seed, i / 8) >> (8 * (i % 8)));
}

void fill(std::span<std::byte> bytes, std::uint64_t seed) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t value = word(seed, at / 8);
    std::memcpy(&bytes[at], &value, std::min<std::size_t>(8, bytes.size() - at));
  }
}

std::optional<std::size_t> first_wrong(std::span<const std::byte> bytes,
                                       std::uint64_t seed) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t value = word(seed, at / 8);
    if (std::memcmp(&bytes[at], &value, std::min<std::size_t>(8, bytes.size() - at)) != 0) {
      while (bytes[at] == pattern(seed, at)) {
        ++at;
      }
      return at;
    }
  }
  return std::nullopt;
}

bool untouched(std::span<const std::byte> bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == kUntouched; });
}

Result<Region> Region::make(Session& session, void* comm, std::size_t size, std::size_t skew) {
  Region region;
  const std::size_t whole = kGuard + skew + size + kGuard;
  region.memory_.reset(static_cast<std::byte*>(::operator new[](whole, kPage)));
  std::memset(region.memory_.get(), static_cast<int>(kUntouched), whole);
  region.start_ = region.memory_.get() + kGuard + skew;
  region.size_ = size;
  void* mhandle = nullptr;
  const NetResult result = session.net().reg_mr(comm, region.start_, std::max<std::size_t>(size, 1),
                                                nccl::kPtrHost, &mhandle);
  if (result != NetResult::success) {
    return broken(std::string("regMr of host memory returned ") + to_string(result));
  }
  region.registered_ = std::make_unique<Registered>(Registered{&session, comm, mhandle});
  return region;
}

bool Region::guards_hold() const noexcept {
  return untouched({start_ - kGuard, kGuard}) && untouched({start_ + size_, kGuard});
}

NetResult Region::deregister() noexcept {
  if (!registered_) {
    return NetResult::success;
  }
  const auto registered = std::exchange(registered_, nullptr);
  return registered->session->net().dereg_mr(registered->comm, registered->mhandle);
}

}  // namespace gdrx::conformance
