// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/windows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/gpu/export.hpp"

namespace gdrx::gpu {
namespace {

class ExportedWindow final : public ExportedMemory {
 public:
  ExportedWindow(Blob ticket, std::optional<Export> held)
      : ticket_(std::move(ticket)), export_(std::move(held)) {}
  const Blob& ticket() const noexcept override { return ticket_; }

 private:
  Blob ticket_;
  std::optional<Export> export_;
};

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

void Windows::connect(std::vector<std::uint64_t> processes, std::uint64_t process, int self) {
  processes_ = std::move(processes);
  process_ = process;
  self_ = static_cast<std::size_t>(self);
}

Result<std::unique_ptr<ExportedMemory>> Windows::offer(void* memory, std::uint64_t bytes) {
  const std::uint64_t begin = address_of(memory);
  if (bytes == 0 || bytes > UINT64_MAX - begin) {
    return fail(Errc::invalid_argument, fmt::format("{} bytes cannot be registered", bytes));
  }
  std::uint64_t again = 0;
  for (const Window& window : windows_) {
    if (begin == window.begin && bytes == window.bytes) {
      again = window.id;
    } else if (begin < window.begin + window.bytes && window.begin < begin + bytes) {
      return fail(Errc::invalid_argument,
                  "a part of this memory is registered already, in another range: register the "
                  "whole once, or the same range again");
    }
  }
  const bool abroad =
      std::any_of(processes_.begin(), processes_.end(), [&](auto p) { return p != process_; });
  WindowTicket ticket;
  std::optional<Export> held;
  if (again == 0) {
    held.emplace(GDRX_TRY(Export::create(memory, bytes, abroad)));
    ticket = held->ticket();
  } else {  // nothing is mapped again
    ticket.pointer = begin;
    ticket.bytes = bytes;
    ticket.again = again;
  }
  ticket.process = process_;
  ticket.next_id = next_id_;
  return std::make_unique<ExportedWindow>(encode(ticket), std::move(held));
}

Result<std::unique_ptr<Mapping>> Windows::map(const WindowTicket& ticket, std::uint64_t process,
                                              Deadline deadline) const {
  if (ticket.process != process) {
    return fail(Errc::protocol, "a window ticket of another process than the communicator's");
  }
  return process == process_ ? map_here(ticket) : map_from_abroad(ticket, deadline);
}

Result<WindowId> Windows::open(std::span<const Blob> tickets, Deadline deadline) {
  if (tickets.size() != processes_.size()) {
    return fail(Errc::internal, "as many window tickets as ranks are needed");
  }
  std::vector<WindowTicket> decoded;
  for (const Blob& ticket : tickets) decoded.push_back(GDRX_TRY(decode_window_ticket(ticket)));
  const WindowPlan plan = GDRX_TRY(plan_window(decoded));
  if (plan.again) {
    const auto known = std::find_if(windows_.begin(), windows_.end(),
                                    [&](const Window& window) { return window.id == plan.id; });
    if (known == windows_.end()) return fail(Errc::internal, "a window that is not open");
    ++known->owners;
    return WindowId{plan.id};
  }
  Window made;
  made.id = plan.id;
  made.begin = decoded[self_].pointer;
  made.bytes = decoded[self_].bytes;
  for (std::size_t rank = 0; rank < decoded.size(); ++rank) {
    made.aligned = made.aligned && decoded[rank].pointer % sizeof(Pack) == 0;
    if (rank == self_) {
      made.at[rank] = pointer_to(made.begin);
      made.held = ExportableMemory::at(made.begin);
      continue;
    }
    auto mapping = map(decoded[rank], processes_[rank], deadline);
    if (!mapping) {
      Error error = std::move(mapping).error();
      error.what = fmt::format("mapping the memory of rank {}: {}", rank, error.what);
      return tl::unexpected(std::move(error));
    }
    made.at[rank] = (*mapping)->data();
    made.mappings.push_back(std::move(*mapping));
  }
  next_id_ = plan.id + 1;
  windows_.push_back(std::move(made));
  return WindowId{plan.id};
}

bool Windows::close(WindowId id) noexcept {
  const auto found = std::find_if(windows_.begin(), windows_.end(),
                                  [&](const Window& window) { return WindowId{window.id} == id; });
  if (found == windows_.end() || --found->owners > 0) return false;
  windows_.erase(found);
  return true;
}

const Windows::Window* Windows::find(const void* memory, std::uint64_t bytes) const noexcept {
  const std::uint64_t begin = address_of(memory);
  for (const Window& window : windows_) {
    if (begin < window.begin || begin - window.begin > window.bytes) continue;
    if (bytes <= window.bytes - (begin - window.begin)) return &window;
  }
  return nullptr;
}

// Offsets are the same on every rank, or the call fails; so all ranks find the same here.
bool Windows::reach(const void* input, const void* output, std::uint64_t bytes) const noexcept {
  const auto good = [&](const void* memory) {
    const Window* const window = find(memory, bytes);
    return window != nullptr && window->aligned &&
           (address_of(memory) - window->begin) % sizeof(Pack) == 0;
  };
  return good(input) && good(output);
}

bool Windows::fill(DirectCall& call, const void* input, const void* output,
                   std::uint64_t bytes) const noexcept {
  const Window* const from = find(input, bytes);
  const Window* const to = find(output, bytes);
  if (from == nullptr || to == nullptr) return false;
  const std::uint64_t from_offset = address_of(input) - from->begin;
  const std::uint64_t to_offset = address_of(output) - to->begin;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    call.inputs[rank] = from->at[rank] + from_offset;
    call.outputs[rank] = to->at[rank] + to_offset;
  }
  call.place = place_in_windows(from->id, from_offset, to->id, to_offset);
  return true;
}

}  // namespace gdrx::gpu
