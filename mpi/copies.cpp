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
  std::unique_ptr<std::byte[]> host;
  std::unique_ptr<std::byte[]> before;  // as it was read; of what receives
  std::byte* gpu = nullptr;
  std::size_t bytes = 0;
  std::vector<Run> runs;  // of `bytes`

  const void* stage(const void* at, Touched&& touched);
  void read() noexcept;
  void write() noexcept;
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

// What is received is read as well: not all of it is written, and what is not goes nowhere.
const void* Copies::Copy::stage(const void* at, Touched&& touched) {
  const Run bounds = touched.bounds();
  gpu = const_cast<std::byte*>(static_cast<const std::byte*>(at)) + bounds.from;
  bytes = static_cast<std::size_t>(bounds.to - bounds.from);
  runs = std::move(touched.runs());
  for (Run& run : runs) run = {run.from - bounds.from, run.to - bounds.from};
  host = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (!runs.empty()) before = std::make_unique_for_overwrite<std::byte[]>(bytes);
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
    return held().send.stage(at, std::move(touched));
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
}

void* Copies::stage_received(void* at, Touched&& touched) noexcept {
  if (touched.bounds().to <= touched.bounds().from) return at;
  try {
    return const_cast<void*>(held().recv.stage(at, std::move(touched)));
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

void Copies::Copy::read() noexcept {
  if (host == nullptr) return;
  copy_from_gpu(host.get(), gpu, bytes);
  if (before != nullptr) std::memcpy(before.get(), host.get(), bytes);
}

void Copies::Copy::write() noexcept {
  if (host == nullptr || before == nullptr) return;
  std::vector<Piece> pieces;
  try {
    for (const Run& run : runs) {
      auto from = static_cast<std::size_t>(run.from);
      auto to = static_cast<std::size_t>(run.to);
      while (from < to && host[from] == before[from]) ++from;
      while (from < to && host[to - 1] == before[to - 1]) --to;
      if (from < to) pieces.push_back({gpu + from, host.get() + from, to - from});
    }
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
  copy_to_gpu(pieces);
}

void Copies::read() noexcept {
  if (!held_) return;
  held_->send.read();
  held_->recv.read();
}

void Copies::write() noexcept {
  if (held_) held_->recv.write();
}

}  // namespace gdrx::mpi
