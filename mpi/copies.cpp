// SPDX-License-Identifier: Apache-2.0
#include "mpi/copies.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "mpi/copied_requests.hpp"
#include "mpi/settings.hpp"

namespace gdrx::mpi {

struct Copies::Copy {
  HostMemory host;
  std::unique_ptr<std::byte[]> before;  // as it was read; of what receives
  std::byte* gpu = nullptr;
  std::size_t bytes = 0;
  std::vector<Rows> rows;  // of `bytes`; empty: all of them
  bool is_sparse = false;  // the rest is not even read

  const void* stage(const void* at, Touched&& touched, bool receives);
  Piece piece(const Rows& rows) const noexcept;
  void read();
  void write();
};

struct Copies::Held {
  Copy send;
  Copy recv;
};

bool copies_for_mpi() noexcept { return has_cuda() && !settings().off && !mpi_knows_gpus(); }

void die_for_copy(const char* why) noexcept {
  std::fprintf(stderr, "gdrx: a buffer on a GPU cannot be copied for MPI: %s\n", why);
  std::abort();
}

Piece Copies::Copy::piece(const Rows& some) const noexcept {
  return {.gpu = gpu + some.first.from,
          .host = host.get() + some.first.from,
          .bytes = static_cast<std::size_t>(some.first.to - some.first.from),
          .stride = static_cast<std::size_t>(some.stride),
          .rows = some.count};
}

void Copies::Copy::read() {
  if (bytes == 0) return;
  std::vector<Piece> pieces;
  if (is_sparse) {
    for (const Rows& some : rows) pieces.push_back(piece(some));
  } else {
    pieces.push_back({.gpu = gpu, .host = host.get(), .bytes = bytes});
  }
  copy_from_gpu(pieces);
  if (before == nullptr) return;
  for (const Rows& some : rows) {
    const auto length = static_cast<std::size_t>(some.first.to - some.first.from);
    for (std::size_t i = 0; i < some.count; ++i) {
      const std::ptrdiff_t at = some.first.from + static_cast<std::ptrdiff_t>(i) * some.stride;
      std::memcpy(before.get() + at, host.get() + at, length);
    }
  }
}

// What is received is read as well: not all of it is written, and what is not goes nowhere.
const void* Copies::Copy::stage(const void* at, Touched&& touched, bool receives) {
  const Run bounds = touched.bounds();
  gpu = const_cast<std::byte*>(static_cast<const std::byte*>(at)) + bounds.from;
  bytes = static_cast<std::size_t>(bounds.to - bounds.from);
  is_sparse = touched.is_sparse();
  for (Run& run : touched.runs()) run = {run.from - bounds.from, run.to - bounds.from};
  rows = rows_of(touched.runs());
  host = HostMemory(bytes, gpu);
  if (receives) before = std::make_unique_for_overwrite<std::byte[]>(bytes);
  read();
  return host.get() - bounds.from;
}

void Copies::Drop::operator()(Held* held) const noexcept { delete held; }

Copies::Held& Copies::held() {
  if (!held_) held_.reset(new Held);
  return *held_;
}

const void* Copies::stage_sent(const void* at, Touched&& touched) noexcept {
  if (touched.bounds().to <= touched.bounds().from) return at;
  try {
    return held().send.stage(at, std::move(touched), false);
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
}

void* Copies::stage_received(void* at, Touched&& touched) noexcept {
  if (touched.bounds().to <= touched.bounds().from) return at;
  try {
    return const_cast<void*>(held().recv.stage(at, std::move(touched), true));
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
}

void Copies::receive_nothing() noexcept {
  if (held_) held_->send = std::exchange(held_->recv, {});
}

const void* Copies::send(const void* at, std::ptrdiff_t count, MPI_Datatype type,
                         int peer) noexcept {
  if (peer == MPI_PROC_NULL) return at;
  return send_blocks(at, [&](Touched& touched) { touched.add(type, 0, count); });
}

void* Copies::recv(void* at, std::ptrdiff_t count, MPI_Datatype type, int peer) noexcept {
  if (peer == MPI_PROC_NULL) return at;
  return recv_blocks(at, [&](Touched& touched) { touched.add(type, 0, count); });
}

int Copies::done(int result) noexcept {
  write();
  look_at_freed();
  return result;
}

int Copies::done(int result, const MPI_Request* request, bool persistent) noexcept {
  if (!any() || result != MPI_SUCCESS || request == nullptr) return result;
  try {
    adopt(*request, std::move(*this), persistent);
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
  return result;
}

void Copies::read() noexcept {
  if (!held_) return;
  try {
    held_->send.read();
    held_->recv.read();
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
}

namespace {

// Bytes of a row that are written: from the first to the last that differ from what was read.
Run changed(const Run& row, const std::byte* now, const std::byte* before) noexcept {
  Run run = row;
  while (run.from < run.to && now[run.from] == before[run.from]) ++run.from;
  while (run.from < run.to && now[run.to - 1] == before[run.to - 1]) --run.to;
  return run;
}

// Of rows, those from the first to the last that have changed, and of them the columns that have.
// The rest of the call's own bytes is what it was.
Rows changed(const Rows& rows, const std::byte* now, const std::byte* before) noexcept {
  Rows found{.first = {rows.first.to, rows.first.from}, .stride = rows.stride, .count = 0};
  std::ptrdiff_t first = 0;
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::ptrdiff_t shift = static_cast<std::ptrdiff_t>(i) * rows.stride;
    const Run run = changed(Run{rows.first.from + shift, rows.first.to + shift}, now, before);
    if (run.from >= run.to) continue;
    if (found.count == 0) first = static_cast<std::ptrdiff_t>(i);
    found.count = i - static_cast<std::size_t>(first) + 1;
    found.first.from = std::min(found.first.from, run.from - shift);
    found.first.to = std::max(found.first.to, run.to - shift);
  }
  found.first.from += first * rows.stride;
  found.first.to += first * rows.stride;
  return found;
}

}  // namespace

void Copies::Copy::write() {
  std::vector<Piece> pieces;
  for (const Rows& some : rows) {
    const Rows written = changed(some, host.get(), before.get());
    if (written.count > 0) pieces.push_back(piece(written));
  }
  copy_to_gpu(pieces);
}

void Copies::write() noexcept {
  if (!held_ || held_->recv.before == nullptr) return;
  try {
    held_->recv.write();
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
}

}  // namespace gdrx::mpi
