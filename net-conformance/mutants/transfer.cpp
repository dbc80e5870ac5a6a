// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

std::mutex g_mutex;

/// What becomes of a single receive that is done: spoil(note, sizes).
template <auto spoil>
NetResult spoilt_test(void* request, int* done, int* sizes) {
  const Note note = note_of(request);
  int own[64] = {};
  int* const written = sizes != nullptr ? sizes : own;
  const NetResult result = good().test(request, done, written);
  if (result == NetResult::success && *done != 0 && !note.is_send && note.n == 1) {
    spoil(note, written[0]);
  }
  return result;
}

template <auto spoil>
void at_end_of_receive(NetV12& table) {
  table.test = spoilt_test<spoil>;
}

std::size_t g_last_sent = 0;

void overflow(NetV12& table) {
  table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler,
                   void** request) {
    g_last_sent = size;
    return good().isend(comm, data, size, tag, mhandle, profiler, request);
  };
  at_end_of_receive<[](const Note& note, int&) {
    if (note.sizes[0] < g_last_sent) note.data[0][note.sizes[0]] = std::byte{1};
  }>(table);
}

/// Every other receive of a long-lived communicator gets the message of its neighbour.
void swap_neighbours(const Note& note, int&) {
  constexpr int kLongLived = 64;
  static std::unordered_map<void*, Note> previous;
  const std::lock_guard lock(g_mutex);
  const auto at = previous.find(note.comm);
  if (at == previous.end()) {
    previous[note.comm] = note;
    return;
  }
  const Note& other = at->second;
  if (posted(note.comm) > kLongLived && other.sizes[0] == note.sizes[0] &&
      other.data[0] != note.data[0]) {
    std::swap_ranges(note.data[0], note.data[0] + note.sizes[0], other.data[0]);
  }
  previous.erase(at);
}

/// A small message that follows a large one takes its place.
void overtake(const Note& note, int& size) {
  static std::unordered_map<void*, std::byte*> large;
  const std::lock_guard lock(g_mutex);
  if (size > 100'000) {
    large[note.comm] = note.data[0];
  } else if (const auto at = large.find(note.comm); size == 8 && at != large.end()) {
    std::swap_ranges(note.data[0], note.data[0] + 8, at->second);
    large.erase(at);
  }
}

std::atomic<bool> g_accepted{false};  // the receiver is in this process

/// Sends of some sizes are reported as done at once, and leave when the next call comes.
struct Deferred {
  void* comm;
  void* data;
  std::size_t size;
  int tag;
  void* mhandle;
  void* request = nullptr;
};
std::list<Deferred> g_deferred;
char g_done_at_once;  // its address is their request

void go_on() {
  const std::lock_guard lock(g_mutex);
  std::erase_if(g_deferred, [](Deferred& each) {
    int done = 0, size = 0;
    if (each.request == nullptr) {
      good().isend(each.comm, each.data, each.size, each.tag, each.mhandle, nullptr, &each.request);
    } else if (good().test(each.request, &done, &size) != NetResult::success) {
      return true;
    }
    return done != 0;
  });
}

template <std::size_t kFrom, std::size_t kTo>
void report_early(NetV12& table) {
  table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler,
                   void** request) {
    go_on();
    if (size < kFrom || size > kTo) {
      return good().isend(comm, data, size, tag, mhandle, profiler, request);
    }
    const std::lock_guard lock(g_mutex);
    g_deferred.push_back({comm, data, size, tag, mhandle});
    *request = &g_done_at_once;
    return NetResult::success;
  };
  table.test = [](void* request, int* done, int* sizes) {
    if (request != &g_done_at_once) {
      go_on();
      return good().test(request, done, sizes);
    }
    *done = 1;
    return NetResult::success;
  };
  table.close_send = [](void* comm) {
    const std::lock_guard lock(g_mutex);
    std::erase_if(g_deferred, [&](const Deferred& each) { return each.comm == comm; });
    return good().close_send(comm);
  };
}

/// One communicator at a time may send.
void one_sender(NetV12& table) {
  static void* last = nullptr;
  table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler,
                   void** request) {
    const std::lock_guard lock(g_mutex);
    if (last != nullptr && last != comm && under_way(last) > 0) {
      return NetResult::internal_error;
    }
    last = comm;
    return good().isend(comm, data, size, tag, mhandle, profiler, request);
  };
  table.close_send = [](void* comm) {
    const std::lock_guard lock(g_mutex);
    if (last == comm) last = nullptr;
    return good().close_send(comm);
  };
}

/// A request ends when the youngest of its communicator has been tested.
void needs_all_tested(NetV12& table) {
  table.test = [](void* request, int* done, int* sizes) {
    const Note note = note_of(request);
    void* const youngest = youngest_of(note.comm);
    if (youngest != nullptr && youngest != request && note_of(youngest, false).tests == 0) {
      *done = 0;
      return NetResult::success;
    }
    return good().test(request, done, sizes);
  };
}

constexpr Mutant kMutants[] = {
    {"wrong-thousand", at_end_of_receive<[](const Note& note, int& size) {
       if (size == 1000) note.data[0][500] ^= std::byte{1};
     }>},
    {"one-sender-at-a-time", one_sender},
    {"wants-all-tested", needs_all_tested},
    {"wrong-last-byte", at_end_of_receive<[](const Note& note, int& size) {
       if ((1 << 20) < size && size < (8 << 20)) note.data[0][size - 1] ^= std::byte{1};
     }>},
    {"nothing-is-one-byte", at_end_of_receive<[](const Note&, int& size) {
       if (size == 0) size = 1;
     }>},
    {"reports-what-was-posted", at_end_of_receive<[](const Note& note, int& size) {
       if (size != 0) size = static_cast<int>(note.sizes[0]);
     }>},
    {"writes-behind-the-message", at_end_of_receive<[](const Note& note, int& size) {
       const auto end = static_cast<std::size_t>(size);
       if (end != 0 && end < note.sizes[0]) note.data[0][end] = std::byte{1};
     }>},
    {"does-not-cut", overflow},
    {"neighbours-swapped", at_end_of_receive<swap_neighbours>},
    {"small-overtakes-large", at_end_of_receive<overtake>},
    {"done-before-read", report_early<100'000, 160'000>},
    {"done-before-left", report_early<290'000, 310'000>},
    {"late-receive-fails",
     [](NetV12& table) {
       table.accept = [](void* listener, void** comm, NetDeviceHandle** device) {
         const NetResult result = good().accept(listener, comm, device);
         g_accepted = g_accepted || *comm != nullptr;
         return result;
       };
       table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle,
                        void* profiler, void** request) {
         static std::atomic<int> refused{0};
         const NetResult result = good().isend(comm, data, size, tag, mhandle, profiler, request);
         refused = *request != nullptr || g_irecvs > 0 || !g_accepted ? 0 : refused + 1;
         return refused > 40 ? NetResult::internal_error : result;
       };
     }},
    {"one-receive-a-buffer",
     [](NetV12& table) {
       table.irecv = [](void* comm, int n, void** data, std::size_t* sizes, int* tags,
                        void** mhandles, void** profilers, void** request) {
         static std::unordered_map<void*, void*> last;  // buffer and request
         const std::lock_guard lock(g_mutex);
         const auto at = last.find(data[0]);
         if (at != last.end() && note_of(at->second).comm == comm) {
           *request = at->second;
           return NetResult::success;
         }
         const NetResult result =
             good().irecv(comm, n, data, sizes, tags, mhandles, profilers, request);
         last[data[0]] = *request;
         return result;
       };
     }},
};

}  // namespace

std::span<const Mutant> transfer_mutants() { return kMutants; }

}  // namespace gdrx::mutants
