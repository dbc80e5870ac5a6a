// SPDX-License-Identifier: Apache-2.0
// Several ranks that one thread has, by groups.
#pragma once

#include <vector>

#include "tests/nccl/world.hpp"

namespace gdrx::nccl {

/// Ranks of one thread.
class Thread {
 public:
  explicit Thread(std::size_t ranks) : members(ranks) {
    for (std::size_t r = 0; r < ranks; ++r) {
      members[r].rank = static_cast<int>(r);
      members[r].ranks = static_cast<int>(ranks);
      members[r].open();
    }
  }
  ~Thread() {
    for (Member& self : members) self.close();
  }
  void sum_in_a_group() {
    for (const Member& self : members) {
      const auto value = static_cast<std::uint32_t>(self.rank + 1);
      self.upload(self.in, &value, sizeof value);
    }
    ASSERT_EQ(ncclGroupStart(), kSuccess);
    for (const Member& self : members) {
      must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
      EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream),
                kSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
    const auto all = static_cast<std::uint32_t>(members.size() * (members.size() + 1) / 2);
    for (const Member& self : members) EXPECT_EQ(self.got<std::uint32_t>(1)[0], all);
  }
  void destroy_in_a_group() {
    ASSERT_EQ(ncclGroupStart(), kSuccess);
    for (const Member& self : members) EXPECT_EQ(ncclCommDestroy(self.comm), kSuccess);
    EXPECT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
  }
  std::vector<Member> members;
};

inline void init_in_a_group(Thread& thread) {
  UniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  ASSERT_EQ(ncclGroupStart(), kSuccess);
  for (Member& self : thread.members) {
    must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
    EXPECT_EQ(ncclCommInitRank(&self.comm, self.ranks, id, self.rank), kSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), kSuccess) << ncclGetLastError(nullptr);
}

}  // namespace gdrx::nccl
