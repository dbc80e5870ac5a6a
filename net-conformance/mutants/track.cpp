// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/mutants/track.hpp"

#include <dlfcn.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace gdrx::mutants {

namespace {

/// NET_MUTANT_BASE, loaded with this library and unloaded with it.
class Base {
 public:
  Base() {
    const char* path = std::getenv("NET_MUTANT_BASE");
    library_ = dlopen(path != nullptr ? path : "", RTLD_NOW | RTLD_LOCAL);
    auto* table =
        static_cast<NetV12*>(library_ == nullptr ? nullptr : dlsym(library_, "ncclNetPlugin_v12"));
    if (table == nullptr) {
      std::fputs("NET_MUTANT_BASE names no plugin of v12\n", stderr);
      std::abort();
    }
    table_ = *table;
  }
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;
  ~Base() { dlclose(library_); }
  const NetV12& table() const { return table_; }

 private:
  void* library_;
  NetV12 table_{};
};

const NetV12& base() {
  static const Base loaded;
  return loaded.table();
}

struct Ledger {
  std::mutex mutex;
  std::unordered_map<void*, Note> notes;
  std::unordered_map<void*, int> posted;
  std::uint64_t posts = 0;
};

Ledger& ledger() {
  static Ledger instance;
  return instance;
}

void keep(void* request, Note note) {
  if (request == nullptr) {
    return;
  }
  const std::lock_guard lock(ledger().mutex);
  ledger().posted[note.comm] += note.is_send ? 0 : 1;
  note.age = ledger().posts++;
  ledger().notes[request] = note;
}

NetResult isend(void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler,
                void** request) {
  ++g_isends;
  const NetResult result = base().isend(comm, data, size, tag, mhandle, profiler, request);
  keep(result == NetResult::success ? *request : nullptr,
       {comm, true, 1, {static_cast<std::byte*>(data)}, {size}, {tag}});
  return result;
}

NetResult irecv(void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
                void** profilers, void** request) {
  ++g_irecvs;
  const NetResult result = base().irecv(comm, n, data, sizes, tags, mhandles, profilers, request);
  Note note{comm, false, n};
  for (std::size_t i = 0; i < static_cast<std::size_t>(n) && i < note.data.size(); ++i) {
    note.data[i] = static_cast<std::byte*>(data[i]);
    note.sizes[i] = sizes[i];
    note.tags[i] = tags[i];
  }
  keep(result == NetResult::success ? *request : nullptr, note);
  return result;
}

NetResult test(void* request, int* done, int* sizes) {
  const NetResult result = base().test(request, done, sizes);
  if (result == NetResult::success && *done != 0) {
    const std::lock_guard lock(ledger().mutex);
    ledger().notes.erase(request);
  }
  return result;
}

void forget(void* comm) {
  const std::lock_guard lock(ledger().mutex);
  ledger().posted.erase(comm);
  std::erase_if(ledger().notes, [&](const auto& note) { return note.second.comm == comm; });
}

NetResult close_send(void* comm) {
  forget(comm);
  return base().close_send(comm);
}

NetResult close_recv(void* comm) {
  forget(comm);
  return base().close_recv(comm);
}

}  // namespace

const NetV12& good() {
  static const NetV12 tracked = [] {
    NetV12 table = base();
    table.isend = isend;
    table.irecv = irecv;
    table.test = test;
    table.close_send = close_send;
    table.close_recv = close_recv;
    return table;
  }();
  return tracked;
}

void* youngest_of(void* comm) {
  const std::lock_guard lock(ledger().mutex);
  void* youngest = nullptr;
  std::uint64_t age = 0;
  for (const auto& [request, note] : ledger().notes) {
    if (note.comm == comm && note.age >= age) {
      youngest = request;
      age = note.age;
    }
  }
  return youngest;
}

Note note_of(void* request, bool count) {
  const std::lock_guard lock(ledger().mutex);
  const auto at = ledger().notes.find(request);
  if (at == ledger().notes.end()) {
    return {};
  }
  at->second.tests += count ? 1 : 0;
  return at->second;
}

int under_way(void* comm, bool grouped_alone) {
  const std::lock_guard lock(ledger().mutex);
  int count = 0;
  for (const auto& [request, note] : ledger().notes) {
    count += note.comm == comm && (!grouped_alone || note.n > 1) ? 1 : 0;
  }
  return count;
}

int posted(void* comm) {
  const std::lock_guard lock(ledger().mutex);
  return ledger().posted[comm];
}

void dawdle() {
  const timespec nap{1, 500'000'000};
  nanosleep(&nap, nullptr);
}

}  // namespace gdrx::mutants
