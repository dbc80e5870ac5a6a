// SPDX-License-Identifier: Apache-2.0
// gdrxSend and gdrxRecv of GPU memory, by the C API: ranks of one process, a thread each.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/gpu/collectives.hpp"
#include "tests/gpu/delay.hpp"

namespace gdrx::gpu {

inline constexpr std::uint64_t kLarge = 4'000'000;  // elements: no channel has room for it

class GpuSendRecv : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    load_delays();
  }
};

inline std::vector<int> counts_of_ranks() {
  if (kEmulated) return {1, 2, 3, 5};
  return rank_counts();
}

inline gdrxResult_t send(const Member& self, const void* from, std::size_t count, int peer,
                         cudaStream_t stream, gdrxRequest_t* request = nullptr) {
  return gdrxSend(from, count, gdrxUint32, peer, self.comm, reinterpret_cast<gdrxStream_t>(stream),
                  request);
}
inline gdrxResult_t receive(const Member& self, void* to, std::size_t count, int peer,
                            cudaStream_t stream, gdrxRequest_t* request = nullptr) {
  return gdrxRecv(to, count, gdrxUint32, peer, self.comm, reinterpret_cast<gdrxStream_t>(stream),
                  request);
}

/// To the next rank, from the one before. `received`: what is called first.
inline Case ring(const Member& self, std::uint64_t count, bool received) {
  const int next = (self.rank + 1) % self.ranks;
  const int last = (self.rank + self.ranks - 1) % self.ranks;
  Case what;
  append(what.input, self.rank, next, count);
  append(what.expected, last, self.rank, count);
  what.call = [=, &self](const std::uint32_t* in, std::uint32_t* out) {
    gdrxGroupStart();
    for (const bool receives : {received, !received}) {
      EXPECT_EQ(receives ? receive(self, out, count, last, self.stream)
                         : send(self, in, count, next, self.stream),
                gdrxSuccess);
    }
    return gdrxGroupEnd();
  };
  return what;
}

/// All-to-all, a message a pair: each rank calls them in an order of its own.
inline Case all_pairs(const Member& self, std::uint64_t unit) {
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
    gdrxGroupStart();
    for (int i = 0; i < self.ranks; ++i) {
      const int to = (self.rank * 3 + i) % self.ranks;
      const int from = (self.rank * 5 + self.ranks - i) % self.ranks;
      const auto s = static_cast<std::size_t>(to), r = static_cast<std::size_t>(from);
      EXPECT_EQ(send(self, in + sends.begins[s], sends.counts[s], to, self.stream), gdrxSuccess);
      EXPECT_EQ(receive(self, out + receives.begins[r], receives.counts[r], from, self.stream),
                gdrxSuccess);
    }
    return gdrxGroupEnd();
  };
  return what;
}

/// What a rank sends; `what` tells one message from another.
inline Words from(int rank, std::uint64_t count, std::uint32_t what) {
  Words made;
  append(made, rank, static_cast<int>(what), count);
  return made;
}
inline Words content(const std::uint32_t* at, std::uint64_t count, cudaStream_t stream) {
  Words got(count);
  must(cudaMemcpyAsync(got.data(), at, count * 4, cudaMemcpyDeviceToHost, stream), "copy");
  must(cudaStreamSynchronize(stream), "copy");
  return got;
}

}  // namespace gdrx::gpu
