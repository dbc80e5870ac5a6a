// SPDX-License-Identifier: Apache-2.0
// Collectives that move bytes, by the C API: what each rank has, calls, and then has. Ranks of one
// process, a thread each; every call has to run on the GPUs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {

using Words = std::vector<std::uint32_t>;
using Sizes = std::vector<std::size_t>;

struct Member {
  int rank = 0;
  int ranks = 0;
  gdrxComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::uint32_t* in = nullptr;
  std::uint32_t* out = nullptr;

  gdrxStream_t gdrx_stream() const { return reinterpret_cast<gdrxStream_t>(stream); }
};

inline constexpr std::uint64_t kRoom = 9'000'000;  // elements

class World {
 public:
  explicit World(int ranks, double timeout_s = 20, const char* algorithm = nullptr)
      : members_(static_cast<std::size_t>(ranks)) {
    gdrxUniqueId id{};
    EXPECT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
    for (int r = 0; r < ranks; ++r) members_[static_cast<std::size_t>(r)].rank = r;
    each([&](Member& self) {
      self.ranks = ranks;
      gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
      config.timeout_seconds = timeout_s;
      config.algorithm = algorithm;
      must(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking), "stream");
      self.in = allocate<std::uint32_t>(kRoom);
      self.out = allocate<std::uint32_t>(kRoom);
      ASSERT_EQ(gdrxCommInitRank(&self.comm, ranks, id, self.rank, &config), gdrxSuccess)
          << gdrxGetLastError(nullptr);
    });
  }
  ~World() {
    each([](Member& self) {
      gdrxCommDestroy(self.comm);
      cudaFree(self.in);
      cudaFree(self.out);
      cudaStreamDestroy(self.stream);
    });
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void each(const std::function<void(Member&)>& body) {
    std::vector<std::thread> threads;
    for (Member& self : members_) {
      threads.emplace_back([&body, &self] {
        must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
        body(self);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<Member> members_;
};

inline constexpr std::uint32_t kPoison = 0xa5a5a5a5;

/// Element `i` of what `from` has for `to`; to all, where it is the same.
inline std::uint32_t word(int from, int to, std::uint64_t i) {
  return static_cast<std::uint32_t>((i + 1) * 2654435761U) + static_cast<std::uint32_t>(from) * 77 +
         static_cast<std::uint32_t>(to) * 1313;
}
inline void append(Words& to, int from, int dest, std::uint64_t count, std::uint64_t first = 0) {
  for (std::uint64_t i = 0; i < count; ++i) to.push_back(word(from, dest, first + i));
}

/// What a rank has, what it calls, and what it then has from the output's beginning on.
struct Case {
  Words input;
  std::function<gdrxResult_t(const std::uint32_t* in, std::uint32_t* out)> call;
  Words expected;
  std::ptrdiff_t in_place = -1;  // where in the output its input lies; -1: it does not
};

// In the rank's stream: whoever waits for the whole GPU waits for the kernels of ranks that share
// it, and these for him.
inline void upload(const Member& self, std::uint32_t* to, const Words& from) {
  if (from.empty()) return;
  must(cudaMemcpyAsync(to, from.data(), from.size() * 4, cudaMemcpyHostToDevice, self.stream),
       "copy");
  must(cudaStreamSynchronize(self.stream), "copy");
}

inline void prepare(const Member& self, const Case& what, const std::uint32_t* in,
                    std::uint32_t* out) {
  upload(self, out, Words(std::max(what.expected.size(), what.input.size()) + 16, kPoison));
  upload(self, const_cast<std::uint32_t*>(in), what.input);
}

inline void check(const Member& self, const Case& what, const std::uint32_t* out) {
  Words got(what.expected.size() + 16);
  must(cudaMemcpyAsync(got.data(), out, got.size() * 4, cudaMemcpyDeviceToHost, self.stream),
       "copy");
  must(cudaStreamSynchronize(self.stream), "copy");
  Words expected = what.expected;
  if (what.in_place >= 0 && expected.empty()) return;  // the input is all that there is
  expected.resize(got.size(), kPoison);
  const auto wrong = std::mismatch(got.begin(), got.end(), expected.begin());
  EXPECT_TRUE(wrong.first == got.end())
      << "rank " << self.rank << " of " << self.ranks << ", element " << wrong.first - got.begin();
}

inline void check_runs_on_gpu(const Member& self) {
  gdrxOpInfo_t info{};
  info.size = sizeof info;
  EXPECT_EQ(gdrxCommGetLastOp(self.comm, &info), gdrxSuccess);
  EXPECT_STREQ(info.transport, "gpu");
}

inline void run(const Member& self, const Case& what, std::uint64_t shift = 0) {
  std::uint32_t* const out = self.out + shift;
  const std::uint32_t* const in = what.in_place < 0 ? self.in + shift : out + what.in_place;
  prepare(self, what, in, out);
  EXPECT_EQ(what.call(in, out), gdrxSuccess) << gdrxGetLastError(self.comm);
  EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
  check(self, what, out);
  check_runs_on_gpu(self);
}

/// From a graph, twice.
inline void run_captured(const Member& self, const Case& what) {
  std::uint32_t* const out = self.out;
  const std::uint32_t* const in = what.in_place < 0 ? self.in : out + what.in_place;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
  EXPECT_EQ(what.call(in, out), gdrxSuccess) << gdrxGetLastError(self.comm);
  must(cudaStreamEndCapture(self.stream, &graph), "capture");
  must(cudaGraphInstantiate(&made, graph, 0), "instantiate");
  for (int replay = 0; replay < 2; ++replay) {
    prepare(self, what, in, out);
    must(cudaGraphLaunch(made, self.stream), "launch");
    EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
    check(self, what, out);
  }
  cudaGraphExecDestroy(made);
  cudaGraphDestroy(graph);
}

inline Case broadcast(const Member& self, std::uint64_t count, int root, bool in_place) {
  Case what;
  if (self.rank == root) append(what.input, root, 0, count);
  append(what.expected, root, 0, count);
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxBroadcast(self.rank == root ? in : nullptr, out, count, gdrxUint32, root, self.comm,
                         self.gdrx_stream(), nullptr);
  };
  if (in_place && self.rank == root) what.in_place = 0;
  return what;
}

/// Sums that wrap around.
inline Case reduce(const Member& self, std::uint64_t count, int root, bool in_place) {
  Case what;
  append(what.input, self.rank, 0, count);
  const bool is_root = self.rank == root;
  if (is_root) what.expected.resize(count);
  for (int p = 0; p < self.ranks; ++p) {
    for (std::size_t i = 0; i < what.expected.size(); ++i) what.expected[i] += word(p, 0, i);
  }
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxReduce(in, is_root ? out : nullptr, count, gdrxUint32, gdrxSum, root, self.comm,
                      self.gdrx_stream(), nullptr);
  };
  if (in_place && is_root) what.in_place = 0;
  return what;
}

/// `with_own`: scan, else exscan, of which rank 0's output stays as it is.
inline Case scan(const Member& self, std::uint64_t count, bool with_own, bool in_place) {
  Case what;
  append(what.input, self.rank, 0, count);
  const int end = self.rank + (with_own ? 1 : 0);
  if (end > 0 || in_place) what.expected.resize(count);
  if (end == 0 && in_place) what.expected = what.input;
  for (int p = 0; p < end; ++p) {
    for (std::size_t i = 0; i < count; ++i) what.expected[i] += word(p, 0, i);
  }
  const auto function = with_own ? gdrxScan : gdrxExscan;
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return function(in, out, count, gdrxUint32, gdrxSum, self.comm, self.gdrx_stream(), nullptr);
  };
  if (in_place) what.in_place = 0;
  return what;
}

inline Case all_to_all(const Member& self, std::uint64_t count, bool in_place) {
  Case what;
  for (int p = 0; p < self.ranks; ++p) {
    append(what.input, self.rank, p, count);
    append(what.expected, p, self.rank, count);
  }
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxAllToAll(in, out, count, gdrxUint32, self.comm, self.gdrx_stream(), nullptr);
  };
  if (in_place) what.in_place = 0;
  return what;
}

inline Case gather(const Member& self, std::uint64_t count, int root, bool in_place) {
  Case what;
  append(what.input, self.rank, 0, count);
  const bool is_root = self.rank == root;
  for (int p = 0; is_root && p < self.ranks; ++p) append(what.expected, p, 0, count);
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxGather(in, is_root ? out : nullptr, count, gdrxUint32, root, self.comm,
                      self.gdrx_stream(), nullptr);
  };
  if (in_place && is_root) {
    what.in_place = static_cast<std::ptrdiff_t>(count) * self.rank;
  }
  return what;
}

inline Case scatter(const Member& self, std::uint64_t count, int root) {
  Case what;
  const bool is_root = self.rank == root;
  for (int p = 0; is_root && p < self.ranks; ++p) append(what.input, root, p, count);
  append(what.expected, root, self.rank, count);
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxScatter(is_root ? in : nullptr, out, count, gdrxUint32, root, self.comm,
                       self.gdrx_stream(), nullptr);
  };
  return what;
}

/// Elements from a rank to another: some none.
inline std::size_t count_of(int from, int to, std::size_t unit) {
  return (static_cast<std::size_t>(from * 5 + to * 3) % 7) * unit + static_cast<std::size_t>(to);
}

/// Parts with gaps between them that are nobody's.
struct Parts {
  Sizes counts, begins;
  std::size_t end = 0;
  void add(std::size_t count) {
    begins.push_back(end);
    counts.push_back(count);
    end += count + 3;
  }
};

inline void place(Words& words, const Parts& parts, int part, int from, int to) {
  const auto p = static_cast<std::size_t>(part);
  words.resize(std::max(words.size(), parts.end), kPoison);
  for (std::size_t i = 0; i < parts.counts[p]; ++i) words[parts.begins[p] + i] = word(from, to, i);
}

inline Case all_to_all_v(const Member& self, std::size_t unit) {
  Case what;
  Parts sends, receives;
  for (int p = 0; p < self.ranks; ++p) {
    sends.add(count_of(self.rank, p, unit));
    receives.add(count_of(p, self.rank, unit));
  }
  for (int p = 0; p < self.ranks; ++p) {
    place(what.input, sends, p, self.rank, p);
    place(what.expected, receives, p, p, self.rank);
  }
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxAllToAllv(in, sends.counts.data(), sends.begins.data(), out, receives.counts.data(),
                         receives.begins.data(), gdrxUint32, self.comm, self.gdrx_stream(),
                         nullptr);
  };
  return what;
}

/// A part for each rank, as all know it, or as the root does.
inline Parts parts_of_all(const Member& self, std::size_t unit) {
  Parts parts;
  for (int p = 0; p < self.ranks; ++p) parts.add(count_of(p, 1, unit));
  return parts;
}

inline Case gather_v(const Member& self, std::size_t unit, int root) {
  Case what;
  const Parts parts = parts_of_all(self, unit);
  const std::size_t mine = parts.counts[static_cast<std::size_t>(self.rank)];
  append(what.input, self.rank, 0, mine);
  const bool is_root = self.rank == root;
  for (int p = 0; is_root && p < self.ranks; ++p) place(what.expected, parts, p, p, 0);
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    // Who has nothing gives no buffer either.
    return gdrxGatherv(mine > 0 ? in : nullptr, mine, is_root ? out : nullptr, parts.counts.data(),
                       parts.begins.data(), gdrxUint32, root, self.comm, self.gdrx_stream(),
                       nullptr);
  };
  return what;
}

inline Case scatter_v(const Member& self, std::size_t unit, int root) {
  Case what;
  const Parts parts = parts_of_all(self, unit);
  const std::size_t mine = parts.counts[static_cast<std::size_t>(self.rank)];
  const bool is_root = self.rank == root;
  for (int p = 0; is_root && p < self.ranks; ++p) place(what.input, parts, p, root, p);
  append(what.expected, root, self.rank, mine);
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxScatterv(is_root ? in : nullptr, parts.counts.data(), parts.begins.data(),
                        mine > 0 ? out : nullptr, mine, gdrxUint32, root, self.comm,
                        self.gdrx_stream(), nullptr);
  };
  return what;
}

/// Parts behind one another, some empty.
inline Case reduce_scatter_v(const Member& self, std::size_t unit) {
  Case what;
  Sizes counts;
  for (int p = 0; p < self.ranks; ++p) counts.push_back(count_of(p, 1, unit) + (p % 3 == 1));
  const std::size_t all = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const auto own = counts.begin() + self.rank;
  const std::size_t begin = std::accumulate(counts.begin(), own, std::size_t{0});
  append(what.input, self.rank, 0, all);
  what.expected.resize(*own);
  for (int p = 0; p < self.ranks; ++p) {
    for (std::size_t i = 0; i < *own; ++i) what.expected[i] += word(p, 0, begin + i);
  }
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxReduceScatterv(in, out, counts.data(), gdrxUint32, gdrxSum, self.comm,
                              self.gdrx_stream(), nullptr);
  };
  return what;
}

inline Case all_gather_v(const Member& self, std::size_t unit, bool in_place) {
  Case what;
  const Parts parts = parts_of_all(self, unit);
  append(what.input, self.rank, 0, parts.counts[static_cast<std::size_t>(self.rank)]);
  for (int p = 0; p < self.ranks; ++p) place(what.expected, parts, p, p, 0);
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    return gdrxAllGatherv(in, out, parts.counts.data(), parts.begins.data(), gdrxUint32, self.comm,
                          self.gdrx_stream(), nullptr);
  };
  if (in_place) {
    what.in_place = static_cast<std::ptrdiff_t>(parts.begins[static_cast<std::size_t>(self.rank)]);
  }
  return what;
}

}  // namespace gdrx::gpu
