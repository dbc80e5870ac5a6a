// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

/// What becomes of a group that is done: spoil(note, done, sizes).
template <auto spoil>
NetResult spoilt_test(void* request, int* done, int* sizes) {
  const Note note = note_of(request);
  const NetResult result = good().test(request, done, sizes);
  if (result == NetResult::success && note.n > 1 && sizes != nullptr) {
    spoil(note, *done, sizes);
  }
  return result;
}

template <auto spoil>
void grouped(NetV12& table) {
  table.test = spoilt_test<spoil>;
}

/// The n-th message goes to the n-th receive of a group, whatever its tag.
void ignores_tags(NetV12& table) {
  table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler,
                   void** request) {
    return good().isend(comm, data, size, tag == 0 ? 0 : 1, mhandle, profiler, request);
  };
  table.irecv = [](void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
                   void** profilers, void** request) {
    std::vector<int> same(tags, tags + n);
    std::ranges::transform(same, same.begin(), [](int tag) { return tag == 0 ? 0 : 1; });
    return good().irecv(comm, n, data, sizes, same.data(), mhandles, profilers, request);
  };
}

/// The last receive of a tag is taken first.
void last_of_a_tag_first(const Note& note, int done, int*) {
  const auto parts = static_cast<std::size_t>(note.n);
  const bool one_tag =
      std::equal(note.tags.begin() + 1, note.tags.begin() + note.n, note.tags.begin());
  if (done != 0 && one_tag) {
    std::swap_ranges(note.data[0], note.data[0] + note.sizes[0], note.data[parts - 1]);
  }
}

/// A group with a message of 0 bytes comes to no end.
void waits_for_empty_parts(NetV12& table) {
  static std::atomic<void*> stuck{nullptr};
  table.test = [](void* request, int* done, int* sizes) {
    *done = 0;
    if (request == stuck) return NetResult::success;
    const Note note = note_of(request);
    const NetResult result = good().test(request, done, sizes);
    if (*done != 0 && note.n > 1 && std::find(sizes, sizes + note.n, 0) != sizes + note.n) {
      stuck = request;
      *done = 0;
    }
    return result;
  };
}

std::mutex g_mutex;

/// The message of a tag goes to the second of two groups that have it.
void later_group_first(const Note& note, int done, int*) {
  static std::unordered_map<void*, Note> previous;
  const std::lock_guard lock(g_mutex);
  if (done == 0 || note.n != 2) return;
  const auto at = previous.find(note.comm);
  if (at != previous.end() && at->second.tags == note.tags) {
    std::swap_ranges(note.data[0], note.data[0] + note.sizes[0], at->second.data[0]);
  }
  previous[note.comm] = note;
}

/// A single receive after a group gets what the group got.
void single_after_group(NetV12& table) {
  table.test = [](void* request, int* done, int* sizes) {
    static std::unordered_map<void*, Note> group;
    const Note note = note_of(request);
    const NetResult result = good().test(request, done, sizes);
    const std::lock_guard lock(g_mutex);
    if (*done != 0 && note.n > 1) {
      group[note.comm] = note;
    } else if (*done != 0 && !note.is_send && group.contains(note.comm)) {
      std::copy_n(group[note.comm].data[0], note.sizes[0], note.data[0]);
    }
    return result;
  };
}

/// A message for another group than the one that is due is an error.
void wants_its_turn(NetV12& table) {
  static std::deque<std::pair<void*, std::vector<int>>> groups;  // requests and tags
  table.irecv = [](void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
                   void** profilers, void** request) {
    const NetResult result = good().irecv(comm, n, data, sizes, tags, mhandles, profilers, request);
    const std::lock_guard lock(g_mutex);
    if (*request != nullptr) groups.emplace_back(*request, std::vector<int>(tags, tags + n));
    return result;
  };
  table.test = [](void* request, int* done, int* sizes) {
    const NetResult result = good().test(request, done, sizes);
    const std::lock_guard lock(g_mutex);
    if (*done != 0) std::erase_if(groups, [&](const auto& each) { return each.first == request; });
    return result;
  };
  table.isend = [](void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler,
                   void** request) {
    {
      const std::lock_guard lock(g_mutex);
      if (!groups.empty() && groups.front().second.size() > 1 &&
          std::ranges::count(groups.front().second, tag) == 0) {
        return NetResult::internal_error;
      }
    }
    return good().isend(comm, data, size, tag, mhandle, profiler, request);
  };
}

char g_flush;  // its address is a request

template <int kDone, bool kSizes>
void odd_flush(NetV12& table) {
  table.iflush = [](void*, int, void**, int*, void**, void** request) {
    *request = &g_flush;
    return NetResult::success;
  };
  table.test = [](void* request, int* done, int* sizes) {
    if (request != &g_flush) return good().test(request, done, sizes);
    *done = kDone;
    if (kSizes) sizes[0] = 0;
    return NetResult::success;
  };
}

constexpr Mutant kMutants[] = {
    {"ignores-tags", ignores_tags},
    {"later-group-first", grouped<later_group_first>},
    {"single-after-group", single_after_group},
    {"wants-its-turn", wants_its_turn},
    {"last-of-a-tag-first", grouped<last_of_a_tag_first>},
    {"sizes-in-another-order", grouped<[](const Note& note, int done, int* sizes) {
       if (done != 0 && 2 < note.n) std::reverse(sizes, sizes + note.n);
     }>},
    {"one-size-more", grouped<[](const Note& note, int done, int* sizes) {
       if (done != 0 && note.n == 2) sizes[note.n] = 0;
     }>},
    {"done-without-the-last", grouped<[](const Note& note, int& done, int*) {
       if (1000 < note.tests) done = 1;
     }>},
    {"empty-part-never-comes", waits_for_empty_parts},
    {"flush-never-ends", odd_flush<0, false>},
    {"flush-has-sizes", odd_flush<1, true>},
    {"flush-wants-bytes",
     [](NetV12& table) {
       table.iflush = [](void*, int n, void**, int* sizes, void**, void** request) {
         *request = nullptr;
         return std::find(sizes, sizes + n, 0) != sizes + n ? NetResult::invalid_argument
                                                            : NetResult::success;
       };
     }},
};

}  // namespace

std::span<const Mutant> group_mutants() { return kMutants; }

}  // namespace gdrx::mutants
