// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/probe.hpp"

#include <cstring>

namespace gdrx::shm {
namespace {

ArenaTicket ticket_of(std::span<const std::byte> words) noexcept {
  ArenaTicket ticket;
  std::memcpy(&ticket, words.data(), sizeof ticket);
  return ticket;
}

}  // namespace

Result<Probe> Probe::create() { return Probe(GDRX_TRY(Segment::create(1))); }

Blob Probe::words_of(const std::optional<Probe>& probe) {
  const ArenaTicket ticket = probe ? probe->segment_->ticket() : ArenaTicket{};
  const auto bytes = std::as_bytes(std::span(&ticket, 1));
  return {bytes.begin(), bytes.end()};
}

bool Probe::is_none(std::span<const std::byte> words) noexcept { return ticket_of(words).pid == 0; }

Result<void> Probe::attempt(std::span<const std::byte> words) {
  GDRX_TRY(Segment::open(ticket_of(words)));
  return {};
}

}  // namespace gdrx::shm
