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

bool copies_for_mpi() noexcept { return has_cuda() && !settings().off && !mpi_knows_gpus(); }

void die_for_copy(const char* why) noexcept {
  std::fprintf(stderr, "gdrx: a buffer on a GPU cannot be copied for MPI: %s\n", why);
  std::abort();
}

// What is received is read as well: not all of it is written, and what is not goes nowhere.
const void* Copies::stage(const void* at, Touched&& touched, Copy& copy) noexcept {
  const Run bounds = touched.bounds();
  if (bounds.to <= bounds.from) return at;
  copy.gpu = const_cast<std::byte*>(static_cast<const std::byte*>(at)) + bounds.from;
  copy.bytes = static_cast<std::size_t>(bounds.to - bounds.from);
  copy.runs = std::move(touched.runs());
  for (Run& run : copy.runs) run = {run.from - bounds.from, run.to - bounds.from};
  try {
    copy.host = std::make_unique_for_overwrite<std::byte[]>(copy.bytes);
    if (!copy.runs.empty()) copy.before = std::make_unique_for_overwrite<std::byte[]>(copy.bytes);
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
  copy_from_gpu(copy.host.get(), copy.gpu, copy.bytes);
  if (copy.before != nullptr) std::memcpy(copy.before.get(), copy.host.get(), copy.bytes);
  return copy.host.get() - bounds.from;
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
  for (const Copy* const one : {&send_, &recv_}) {
    if (one->host == nullptr) continue;
    copy_from_gpu(one->host.get(), one->gpu, one->bytes);
    if (one->before != nullptr) std::memcpy(one->before.get(), one->host.get(), one->bytes);
  }
}

void Copies::write() noexcept {
  if (recv_.host == nullptr || recv_.before == nullptr) return;
  std::vector<Piece> pieces;
  try {
    for (const Run& run : recv_.runs) {
      auto from = static_cast<std::size_t>(run.from);
      auto to = static_cast<std::size_t>(run.to);
      while (from < to && recv_.host[from] == recv_.before[from]) ++from;
      while (from < to && recv_.host[to - 1] == recv_.before[to - 1]) --to;
      if (from < to) pieces.push_back({recv_.gpu + from, recv_.host.get() + from, to - from});
    }
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
  copy_to_gpu(pieces);
}

}  // namespace gdrx::mpi
