// SPDX-License-Identifier: Apache-2.0
#include "mpi/copied_requests.hpp"

#include <exception>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace gdrx::mpi {

struct Copied {
  std::mutex mutex;  // of what follows
  Copies copies;
  const bool persistent;
  bool written;  // since it was started

  Copied(Copies&& its, bool is_persistent) noexcept
      : copies(std::move(its)), persistent(is_persistent), written(is_persistent) {}
  void write() noexcept {
    const std::lock_guard lock(mutex);
    if (!std::exchange(written, true)) copies.write();
  }
};

namespace {

using Shared = std::shared_ptr<Copied>;

struct CopiedRequests {
  std::mutex mutex;  // never held in a call of MPI's or CUDA's
  std::unordered_map<std::uintptr_t, Shared> all;
  std::vector<std::pair<MPI_Request, Shared>> freed;
  std::atomic<std::size_t> count{0};  // of both

  void recount() noexcept { count = all.size() + freed.size(); }
};
CopiedRequests& requests() noexcept {
  static auto& ours = *new CopiedRequests;  // they may be asked for while the program ends
  return ours;
}

Shared find_copied(MPI_Request request) noexcept {
  const std::lock_guard lock(requests().mutex);
  const auto found = requests().all.find(number_of(request));
  return found != requests().all.end() ? found->second : nullptr;
}

// The handle may be another request's by now.
void forget(MPI_Request request, const Shared& one) noexcept {
  const std::lock_guard lock(requests().mutex);
  const auto found = requests().all.find(number_of(request));
  if (found != requests().all.end() && found->second == one) requests().all.erase(found);
  requests().recount();
}

bool is_done(MPI_Request request) noexcept {
  int done = 0;
  return real::Request_get_status(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
}

}  // namespace

// MPIs have one request for all calls that are done already: it is nobody's.
void adopt(MPI_Request request, Copies&& copies, bool persistent) {
  if (!persistent && is_done(request)) return copies.write();
  auto one = std::make_shared<Copied>(std::move(copies), persistent);
  const std::lock_guard lock(requests().mutex);
  requests().all.insert_or_assign(number_of(request), std::move(one));
  requests().recount();
}

bool any_copied() noexcept { return requests().count.load(std::memory_order_relaxed) > 0; }

void read_copies(MPI_Request request) noexcept {
  if (!any_copied()) return;
  const Shared one = find_copied(request);
  if (one == nullptr) return;
  const std::lock_guard lock(one->mutex);
  if (!one->written) {
    if (!is_done(request)) return;  // MPI says that it has been started already
    one->copies.write();            // it was completed by a call that nobody saw
  }
  one->copies.read();
  one->written = false;
}

bool keep_freed(MPI_Request* request) noexcept {
  if (request == nullptr || !any_copied()) return false;
  const Shared one = find_copied(*request);
  if (one == nullptr) return false;
  forget(*request, one);
  {
    const std::lock_guard lock(one->mutex);
    if (one->written) return false;
  }
  try {
    const std::lock_guard lock(requests().mutex);
    requests().freed.emplace_back(*request, one);
    requests().recount();
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
  *request = MPI_REQUEST_NULL;
  look_at_freed();
  return true;
}

void look_at_freed() noexcept {
  if (!any_copied()) return;
  std::vector<std::pair<MPI_Request, Shared>> looked;
  {
    const std::lock_guard lock(requests().mutex);
    looked.swap(requests().freed);
  }
  for (auto& [request, one] : looked) {
    int done = 0;
    if (real::Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) continue;
    one->write();
    if (one->persistent) real::Request_free(&request);
    one = nullptr;
  }
  const std::lock_guard lock(requests().mutex);
  for (auto& kept : looked) {
    if (kept.second != nullptr) requests().freed.push_back(std::move(kept));
  }
  requests().recount();
}

// A session's calls may be under way yet.
void end_copied() noexcept {
  if (!any_copied()) return;
  const std::lock_guard lock(requests().mutex);
  std::erase_if(requests().all, [](const auto& entry) {
    const std::lock_guard copy_lock(entry.second->mutex);
    return entry.second->written;
  });
  requests().recount();
}

Completion::Completion(const MPI_Request* list, int count, bool keeps) noexcept
    : list_(list), keeps_(keeps) {
  if (list == nullptr) return;
  try {
    for (int i = 0; i < count; ++i) {
      if (Shared one = find_copied(list[i])) asked_.push_back({i, list[i], std::move(one)});
    }
  } catch (const std::exception& error) {
    die_for_copy(error.what());
  }
}

Completion::~Completion() = default;

int Completion::look(int result) noexcept {
  for (const Asked& asked : asked_) {
    const bool is_gone = list_[asked.at] != asked.handle;
    if (is_gone) {
      forget(asked.handle, asked.copied);
    } else if ((!keeps_ && !asked.copied->persistent) || !is_done(asked.handle)) {
      continue;
    }
    asked.copied->write();
  }
  look_at_freed();
  return result;
}

}  // namespace gdrx::mpi
