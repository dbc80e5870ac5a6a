// SPDX-License-Identifier: Apache-2.0
// trace_cost COUNT alone|rooted: so many blocking calls that nobody watches, through the whole API;
// under callgrind with --collect-atstart=no only they are collected. alone: allReduces of one rank.
// rooted: broadcasts, half of them made by each of two ranks, the root's first: then neither waits,
// however busy the machine is.
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "gdrx/gdrx.h"

namespace {

// The root is so far ahead of its reader without waiting for it.
constexpr int kAhead = 4;

struct Ranks {
  std::array<gdrxComm_t, 2> comms{};
  int count = 1;
  std::array<float, 2> in{1, 2};
  std::array<float, 2> out{};

  bool make() { return gdrxCommInitAll(comms.data(), count, nullptr) == gdrxSuccess; }
  bool call(int n) {
    gdrxResult_t worst = gdrxSuccess;
    for (int i = 0; i < n && count == 1; ++i) {
      worst = std::max(worst, gdrxAllReduce(in.data(), out.data(), 2, gdrxFloat32, gdrxSum,
                                            comms[0], nullptr, nullptr));
    }
    for (int i = 0; i < n && count == 2; ++i) {
      worst = std::max(
          worst, gdrxBroadcast(in.data(), out.data(), 2, gdrxFloat32, 0,
                               comms[static_cast<std::size_t>(i / kAhead % 2)], nullptr, nullptr));
    }
    return worst == gdrxSuccess && out == in;
  }
  bool end() {
    bool ended = true;
    for (int i = 0; i < count; ++i) {
      ended = gdrxCommDestroy(comms[static_cast<std::size_t>(i)]) == gdrxSuccess && ended;
    }
    return ended;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc == 3 ? std::atoi(argv[1]) : 0;
  Ranks ranks;
  ranks.count = argc == 3 && argv[2] == std::string_view("rooted") ? 2 : 1;
  if (count < 1 || !ranks.make()) {
    std::fprintf(stderr, "trace_cost: %s\n", gdrxGetLastError(nullptr));
    return 1;
  }
  bool right = ranks.call(96);
  CALLGRIND_TOGGLE_COLLECT;
  right = ranks.call(count) && right;
  CALLGRIND_TOGGLE_COLLECT;
  return ranks.end() && right ? 0 : 1;
}
