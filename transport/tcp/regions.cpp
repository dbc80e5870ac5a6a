// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/regions.hpp"

#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>
#include <utility>

namespace gdrx::tcp {

Result<std::uint32_t> Regions::add(std::span<std::byte> bytes) {
  Entry entry{bytes, 0, true};
  if (getrandom(&entry.nonce, sizeof entry.nonce, 0) != sizeof entry.nonce) {
    return fail(Errc::system, "getrandom", errno);
  }
  if (free_.empty()) {
    all_.push_back(entry);
    free_.reserve(all_.capacity());
    return static_cast<std::uint32_t>(all_.size() - 1);
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  all_[id] = entry;
  return id;
}

void Regions::remove(std::uint32_t id) noexcept {
  all_[id] = {};
  free_.push_back(id);
}

RegionKey Regions::key(std::uint32_t id) const noexcept {
  RegionKey key;
  key.region = id;
  key.nonce = all_[id].nonce;
  key.length = all_[id].bytes.size();
  return key;
}

Result<Pages> Pages::map(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return fail(Errc::system, "mmap", errno);
  Pages pages;
  pages.bytes_ = {static_cast<std::byte*>(at), bytes};
  return pages;
}

Pages::Pages(Pages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Pages::~Pages() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace gdrx::tcp
