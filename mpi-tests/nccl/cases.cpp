// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/nccl/cases.hpp"

#include <bit>
#include <cstring>

namespace gdrx::bench {
namespace {

std::int64_t sum(int ranks, std::size_t i) {
  std::int64_t total = 0;
  for (int r = 0; r < ranks; ++r) total += value(r, i);
  return total;
}

double around(int ranks) { return static_cast<double>(ranks - 1) / ranks; }
double once(int) { return 1; }

Result<void> all_reduce(const Call& c) {
  return c.nccl.check(c.nccl.all_reduce(c.in, c.out, c.count, c.type, kNcclSum, c.comm, c.stream),
                      "ncclAllReduce");
}
Result<void> all_gather(const Call& c) {
  return c.nccl.check(c.nccl.all_gather(c.in, c.out, c.count, c.type, c.comm, c.stream),
                      "ncclAllGather");
}
Result<void> reduce_scatter(const Call& c) {
  return c.nccl.check(
      c.nccl.reduce_scatter(c.in, c.out, c.count, c.type, kNcclSum, c.comm, c.stream),
      "ncclReduceScatter");
}
Result<void> broadcast(const Call& c) {
  return c.nccl.check(c.nccl.broadcast(c.in, c.out, c.count, c.type, c.ranks - 1, c.comm, c.stream),
                      "ncclBroadcast");
}
Result<void> reduce(const Call& c) {
  return c.nccl.check(c.nccl.reduce(c.in, c.out, c.count, c.type, kNcclSum, 0, c.comm, c.stream),
                      "ncclReduce");
}
Result<void> all_to_all(const Call& c) {
  GDRX_TRY(c.nccl.check(c.nccl.group_start(), "ncclGroupStart"));
  for (int peer = 0; peer < c.ranks; ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * c.count * c.width;
    GDRX_TRY(
        c.nccl.check(c.nccl.send(c.in + at, c.count, c.type, peer, c.comm, c.stream), "ncclSend"));
    GDRX_TRY(
        c.nccl.check(c.nccl.recv(c.out + at, c.count, c.type, peer, c.comm, c.stream), "ncclRecv"));
  }
  return c.nccl.check(c.nccl.group_end(), "ncclGroupEnd");
}
Result<void> send_recv(const Call& c) {
  const int next = (c.rank + 1) % c.ranks;
  const int previous = (c.rank + c.ranks - 1) % c.ranks;
  GDRX_TRY(c.nccl.check(c.nccl.group_start(), "ncclGroupStart"));
  GDRX_TRY(c.nccl.check(c.nccl.send(c.in, c.count, c.type, next, c.comm, c.stream), "ncclSend"));
  GDRX_TRY(
      c.nccl.check(c.nccl.recv(c.out, c.count, c.type, previous, c.comm, c.stream), "ncclRecv"));
  return c.nccl.check(c.nccl.group_end(), "ncclGroupEnd");
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {"all_reduce", 1, 1, all_reduce,
       [](int, int ranks, std::size_t, std::size_t i) { return sum(ranks, i); },
       [](int ranks) { return 2 * around(ranks); }},
      {"all_gather", 1, kEach, all_gather,
       [](int, int, std::size_t count, std::size_t i) {
         return value(static_cast<int>(i / count), i % count);
       },
       around},
      {"reduce_scatter", kEach, 1, reduce_scatter,
       [](int rank, int ranks, std::size_t count, std::size_t i) {
         return sum(ranks, static_cast<std::size_t>(rank) * count + i);
       },
       around},
      {"broadcast", 1, 1, broadcast,
       [](int, int ranks, std::size_t, std::size_t i) { return value(ranks - 1, i); }, once},
      {"reduce", 1, 1, reduce,
       [](int rank, int ranks, std::size_t, std::size_t i) {
         return rank == 0 ? sum(ranks, i) : kAnything;
       },
       once},
      {"all_to_all", kEach, kEach, all_to_all,
       [](int rank, int, std::size_t count, std::size_t i) {
         return value(static_cast<int>(i / count),
                      static_cast<std::size_t>(rank) * count + i % count);
       },
       around},
      {"send_recv", 1, 1, send_recv,
       [](int rank, int ranks, std::size_t, std::size_t i) {
         return value((rank + ranks - 1) % ranks, i);
       },
       once},
  };
  return kCases;
}

const std::vector<ElementType>& element_types() {
  static const std::vector<ElementType> kTypes{
      {"float", NcclType::single, 4},  {"half", NcclType::half, 2},
      {"bfloat16", NcclType::bf16, 2}, {"double", NcclType::dual, 8},
      {"int32", NcclType::int32, 4},   {"uint8", NcclType::uint8, 1},
  };
  return kTypes;
}

void store(NcclType type, std::int64_t number, std::byte* at) {
  const auto put = [at](auto bits) { std::memcpy(at, &bits, sizeof bits); };
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(number));
  switch (type) {
    case NcclType::int8:
    case NcclType::uint8:
      return put(static_cast<std::uint8_t>(number));
    case NcclType::int32:
    case NcclType::uint32:
      return put(static_cast<std::uint32_t>(number));
    case NcclType::int64:
    case NcclType::uint64:
      return put(number);
    case NcclType::half:  // exact for small whole numbers: another bias, a shorter mantissa
      return put(static_cast<std::uint16_t>(number == 0 ? 0 : (single - (112U << 23)) >> 13));
    case NcclType::bf16:
      return put(static_cast<std::uint16_t>(single >> 16));
    case NcclType::single:
      return put(single);
    case NcclType::dual:
      return put(static_cast<double>(number));
  }
}

}  // namespace gdrx::bench
