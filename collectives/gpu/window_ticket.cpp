// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/window_ticket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gdrx::gpu {
namespace {

constexpr std::uint32_t kMagic = 0x67647877;  // "gdxw"
constexpr std::uint32_t kVersion = 1;

// Everything of a ticket but its segments, as it travels: between processes of one host.
struct Wire {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t process;
  std::uint64_t pointer;
  std::uint64_t bytes;
  std::uint64_t offset;
  std::uint64_t again;
  std::uint64_t next_id;
  std::uint32_t sharing;
  std::uint32_t segments;
  std::array<std::uint8_t, 64> ipc;
  DescriptorAddress listener;
};
static_assert(sizeof(Wire) == 160 && std::is_trivially_copyable_v<Wire>);

std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

Result<void> check_segments(const WindowTicket& ticket) {
  std::uint64_t mapped = 0;
  for (const std::uint64_t segment : ticket.segments) {
    if (segment == 0 || segment > UINT64_MAX - mapped) {
      return fail(Errc::protocol, "registered memory with a segment of no size");
    }
    mapped += segment;
  }
  if (ticket.offset > mapped || ticket.bytes > mapped - ticket.offset) {
    return fail(Errc::protocol, "registered memory that ends behind its segments");
  }
  return {};
}

}  // namespace

Blob encode(const WindowTicket& ticket) {
  Wire wire{};
  wire.magic = kMagic;
  wire.version = kVersion;
  wire.process = ticket.process;
  wire.pointer = ticket.pointer;
  wire.bytes = ticket.bytes;
  wire.offset = ticket.offset;
  wire.again = ticket.again;
  wire.next_id = ticket.next_id;
  wire.sharing = static_cast<std::uint32_t>(ticket.sharing);
  wire.segments = static_cast<std::uint32_t>(ticket.segments.size());
  wire.ipc = ticket.ipc;
  wire.listener = ticket.listener;
  const std::size_t tail = ticket.segments.size() * sizeof(std::uint64_t);
  Blob out(sizeof wire + tail);
  std::memcpy(out.data(), &wire, sizeof wire);
  if (tail > 0) std::memcpy(out.data() + sizeof wire, ticket.segments.data(), tail);
  return out;
}

Result<WindowTicket> decode_window_ticket(std::span<const std::byte> bytes) {
  Wire wire{};
  if (bytes.size() < sizeof wire) return fail(Errc::protocol, "a window ticket that ends early");
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.magic != kMagic || wire.version != kVersion) {
    return fail(Errc::protocol, "not a window ticket of this version of gdrx");
  }
  if (wire.sharing > static_cast<std::uint32_t>(Sharing::descriptors)) {
    return fail(Errc::protocol, "a window ticket of an unknown kind");
  }
  const std::size_t tail = bytes.size() - sizeof wire;
  if (wire.segments > kMaxSegments || tail != wire.segments * sizeof(std::uint64_t)) {
    return fail(Errc::protocol, "a window ticket whose length is not that of its segments");
  }
  WindowTicket ticket;
  ticket.process = wire.process;
  ticket.pointer = wire.pointer;
  ticket.bytes = wire.bytes;
  ticket.offset = wire.offset;
  ticket.again = wire.again;
  ticket.next_id = wire.next_id;
  ticket.sharing = static_cast<Sharing>(wire.sharing);
  ticket.ipc = wire.ipc;
  ticket.listener = wire.listener;
  ticket.segments.resize(wire.segments);
  if (tail > 0) std::memcpy(ticket.segments.data(), bytes.data() + sizeof wire, tail);
  if (ticket.process == 0 || ticket.pointer == 0 || ticket.bytes == 0 || ticket.next_id == 0 ||
      ticket.bytes > UINT64_MAX - ticket.pointer || ticket.offset > ticket.pointer ||
      ticket.bytes > UINT64_MAX - ticket.offset) {
    return fail(Errc::protocol, "a window ticket of no memory");
  }
  const bool needs_segments = ticket.sharing == Sharing::descriptors;
  if (needs_segments && ticket.segments.empty()) {
    return fail(Errc::protocol, "a window ticket without segments");
  }
  if (!ticket.segments.empty()) GDRX_TRY(check_segments(ticket));
  return ticket;
}

Result<WindowPlan> plan_window(std::span<const WindowTicket> tickets) {
  std::uint64_t id = 0;
  for (std::size_t rank = 0; rank < tickets.size(); ++rank) {
    const WindowTicket& ticket = tickets[rank];
    if (ticket.bytes != tickets[0].bytes) {
      return fail(Errc::mismatch,
                  fmt::format("rank 0 registers {} bytes and rank {} registers {}: register the "
                              "same size on every rank",
                              tickets[0].bytes, rank, ticket.bytes));
    }
    if (ticket.again != tickets[0].again) {
      if (ticket.again != 0 && tickets[0].again != 0) {
        return fail(Errc::mismatch,
                    fmt::format("ranks 0 and {} register two different ranges again", rank));
      }
      const std::size_t has = ticket.again != 0 ? rank : 0;
      return fail(Errc::mismatch,
                  fmt::format("rank {} registers a range that it has registered already, rank {} a "
                              "new one: deregister it first",
                              has, rank - has));
    }
    id = std::max(id, ticket.next_id);
  }
  if (tickets[0].again != 0) return WindowPlan{tickets[0].again, true};
  return WindowPlan{id, false};
}

std::uint64_t place_in_windows(std::uint64_t input_window, std::uint64_t input_offset,
                               std::uint64_t output_window, std::uint64_t output_offset) noexcept {
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (const std::uint64_t part : {input_window, input_offset, output_window, output_offset}) {
    state = mix(state + part) + 0x9e3779b97f4a7c15;
  }
  return state == 0 ? 1 : state;
}

}  // namespace gdrx::gpu
