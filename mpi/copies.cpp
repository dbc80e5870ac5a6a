// SPDX-License-Identifier: Apache-2.0
#include "mpi/copies.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mpi/cuda.hpp"
#include "mpi/settings.hpp"

namespace gdrx::mpi {
namespace {

struct Copied {
  Copies copies;
  bool persistent = false;
  bool written = false;  // since it was started
};
struct Requests {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Copied>> all;
  std::vector<std::unique_ptr<Copied>> freed;  // nobody says when those are done
  std::atomic<int> count{0};
};
Requests& copied() noexcept {
  static auto& ours = *new Requests;  // requests may be asked for while the program ends
  return ours;
}

[[noreturn]] void die_for_memory() noexcept {
  std::fprintf(stderr, "gdrx: no memory for the copy of a buffer on a GPU\n");
  std::abort();
}

// The mutex held.
Copied* find_copied(MPI_Request request) noexcept {
  const auto found = copied().all.find(number_of(request));
  return found != copied().all.end() ? found->second.get() : nullptr;
}

void adopt(MPI_Request request, Copies&& copies, bool persistent) {
  auto one = std::make_unique<Copied>();
  one->copies = std::move(copies);
  one->persistent = persistent;
  one->written = persistent;  // it is not started yet
  const std::lock_guard lock(copied().mutex);
  copied().all.insert_or_assign(number_of(request), std::move(one));
  copied().count = static_cast<int>(copied().all.size());
}

bool is_done(MPI_Request request) noexcept {
  int done = 0;
  return real::Request_get_status(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
}

// A request that MPI has done with, or that may be done.
void look_at(MPI_Request request, bool is_gone) noexcept {
  std::unique_ptr<Copied> ended;
  Copied* one = nullptr;
  {
    const std::lock_guard lock(copied().mutex);
    one = find_copied(request);
    if (one == nullptr) return;
    if (is_gone) {
      const auto found = copied().all.find(number_of(request));
      ended = std::move(found->second);
      copied().all.erase(found);
      copied().count = static_cast<int>(copied().all.size());
    }
  }
  if (one->written || (!is_gone && !is_done(request))) return;
  one->copies.write();
  one->written = true;
}

}  // namespace

bool copies_for_mpi() noexcept { return has_cuda() && !settings().off && !mpi_knows_gpus(); }

void add(Span& span, MPI_Datatype type, std::ptrdiff_t place, std::ptrdiff_t count) noexcept {
  MPI_Aint bound = 0;
  MPI_Aint extent = 0;
  MPI_Aint lowest = 0;
  MPI_Aint true_extent = 0;
  static const MPI_Datatype kNone = MPI_DATATYPE_NULL;
  if (count <= 0 || type == kNone || number_of(type) == 0 ||
      real::Type_get_extent(type, &bound, &extent) != MPI_SUCCESS ||
      real::Type_get_true_extent(type, &lowest, &true_extent) != MPI_SUCCESS) {
    return;
  }
  const std::ptrdiff_t first = place * extent;
  const std::ptrdiff_t last = (place + count - 1) * extent;
  const Span one{std::min(first, last) + lowest, std::max(first, last) + lowest + true_extent};
  const bool is_first = span.from == span.to;
  span = is_first ? one : Span{std::min(span.from, one.from), std::max(span.to, one.to)};
}

const void* Copies::stage(const void* at, const Span& span, Copy& copy) noexcept {
  if (span.to <= span.from || !is_on_gpu(at)) return at;
  try {
    copy.bytes = static_cast<std::size_t>(span.to - span.from);
    copy.host = std::make_unique_for_overwrite<std::byte[]>(copy.bytes);
  } catch (const std::bad_alloc&) {
    die_for_memory();
  }
  copy.gpu = const_cast<std::byte*>(static_cast<const std::byte*>(at)) + span.from;
  copy_from_gpu(copy.host.get(), copy.gpu, copy.bytes);
  return copy.host.get() - span.from;
}

const void* Copies::send(const void* at, std::ptrdiff_t count, MPI_Datatype type) noexcept {
  if (!is_on_gpu(at)) return at;
  Span span;
  add(span, type, 0, count);
  return send(at, span);
}

void* Copies::recv(void* at, std::ptrdiff_t count, MPI_Datatype type) noexcept {
  if (!is_on_gpu(at)) return at;
  Span span;
  add(span, type, 0, count);
  return recv(at, span);
}

int Copies::done(int result) noexcept {
  write();
  return result;
}

int Copies::done(int result, const MPI_Request* request, bool persistent) noexcept {
  if (!any() || result != MPI_SUCCESS || request == nullptr) return result;
  try {
    adopt(*request, std::move(*this), persistent);
  } catch (const std::bad_alloc&) {
    die_for_memory();
  }
  return result;
}

void Copies::read() noexcept {
  for (const Copy* const one : {&send_, &recv_}) {
    if (one->host != nullptr) copy_from_gpu(one->host.get(), one->gpu, one->bytes);
  }
}

void Copies::write() noexcept {
  if (recv_.host != nullptr) copy_to_gpu(recv_.gpu, recv_.host.get(), recv_.bytes);
}

bool any_copied() noexcept { return copied().count.load(std::memory_order_relaxed) > 0; }

void read_copies(MPI_Request request) noexcept {
  const std::lock_guard lock(copied().mutex);
  Copied* const one = find_copied(request);
  if (one == nullptr || !one->written) return;  // MPI says that it has been started already
  one->copies.read();
  one->written = false;
}

void forget_copies(const MPI_Request* request) noexcept {
  if (request == nullptr) return;
  const std::lock_guard lock(copied().mutex);
  const auto found = copied().all.find(number_of(*request));
  if (found == copied().all.end()) return;
  try {
    if (!found->second->written) copied().freed.push_back(std::move(found->second));
  } catch (const std::bad_alloc&) {
    die_for_memory();
  }
  copied().all.erase(found);
  copied().count = static_cast<int>(copied().all.size());
}

Completion::Completion(const MPI_Request* list, int count) noexcept : list_(list) {
  if (list == nullptr || count <= 0) return;
  try {
    before_ = std::make_unique_for_overwrite<MPI_Request[]>(static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
    die_for_memory();
  }
  std::copy_n(list, count, before_.get());
  count_ = count;
}

int Completion::look(int result) noexcept {
  static const MPI_Request kNone = MPI_REQUEST_NULL;
  for (int i = 0; i < count_; ++i) {
    const MPI_Request before = before_[static_cast<std::size_t>(i)];
    if (before != kNone) look_at(before, list_[i] != before);
  }
  return result;
}

}  // namespace gdrx::mpi
