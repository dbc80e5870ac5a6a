// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <vector>

#include "mpi-tests/calls.hpp"

namespace gdrx::bench {
namespace {

/// One call's arguments that are alike for all.
struct Given {
  gdrxDataType_t type{};
  gdrxRedOp_t op{};
  gdrxComm_t comm = nullptr;
  gdrxStream_t stream = nullptr;
};

gdrxResult_t all_to_all_v(const Place& place, const Ends& ends, const Given& given) {
  std::vector<std::size_t> sends;
  std::vector<std::size_t> receives;
  std::vector<std::size_t> places;
  for (int peer = 0; peer < place.ranks; ++peer) {
    sends.push_back(place.part_between(place.rank, peer));
    receives.push_back(place.part_between(peer, place.rank));
    places.push_back(place.at(peer));
  }
  return gdrxAllToAllv(ends.input, sends.data(), places.data(), ends.output, receives.data(),
                       places.data(), given.type, given.comm, given.stream, nullptr);
}

/// Messages of one group, up to the first that is refused.
class Group {
 public:
  explicit Group(const Given& given) : given_(given), result_(gdrxGroupStart()) {}
  void send(const std::byte* from, std::uint64_t count, int peer) {
    if (result_ != gdrxSuccess) return;
    result_ = gdrxSend(from, count, given_.type, peer, given_.comm, given_.stream, nullptr);
  }
  void receive(std::byte* to, std::uint64_t count, int peer) {
    if (result_ != gdrxSuccess) return;
    result_ = gdrxRecv(to, count, given_.type, peer, given_.comm, given_.stream, nullptr);
  }
  gdrxResult_t end() {
    const gdrxResult_t ended = gdrxGroupEnd();
    return result_ != gdrxSuccess ? result_ : ended;
  }

 private:
  const Given& given_;
  gdrxResult_t result_;
};

gdrxResult_t send_and_receive(const Place& place, const Ends& ends, const Given& given) {
  Group group(given);
  group.send(ends.input, place.count, place.next());
  group.receive(ends.output, place.count, place.last());
  return group.end();
}

// Each round a rank has twice as much, and gives all that it has.
gdrxResult_t hypercube(const Place& place, std::size_t element, const Ends& ends,
                       const Given& given) {
  const auto part_of = [&](int rank) { return ends.output + place.at(rank) * element; };
  if (!ends.in_place) {
    Group own(given);
    own.send(ends.input, place.part(), place.rank);
    own.receive(part_of(place.rank), place.part(), place.rank);
    if (const gdrxResult_t result = own.end(); result != gdrxSuccess) return result;
  }
  for (int mask = 1; mask < place.ranks; mask *= 2) {
    const int peer = place.rank ^ mask;
    const int from = place.rank & ~(mask - 1);
    const std::uint64_t count = place.part() * static_cast<std::uint64_t>(mask);
    Group round(given);
    round.send(part_of(from), count, peer);
    round.receive(part_of(from ^ mask), count, peer);
    if (const gdrxResult_t result = round.end(); result != gdrxSuccess) return result;
  }
  return gdrxSuccess;
}

}  // namespace

Ends ends_of(const Place& place, DataType type, std::byte* input, std::byte* output,
             bool in_place) {
  if (!in_place) return {input, output, false};
  const std::size_t element = size_of(type);
  return {output + place.input_at() * element, output + place.output_at() * element, true};
}

gdrxResult_t call_gdrx(const Place& place, DataType type, ReduceOp op, const Ends& ends,
                       gdrxComm_t comm, void* stream) {
  const Given given{static_cast<gdrxDataType_t>(type), static_cast<gdrxRedOp_t>(op), comm,
                    static_cast<gdrxStream_t>(stream)};
  const auto* const in = ends.input;
  auto* const out = ends.output;
  switch (place.kind) {
    case Kind::all_reduce:
      return gdrxAllReduce(in, out, place.count, given.type, given.op, comm, given.stream, nullptr);
    case Kind::all_gather:
      return gdrxAllGather(in, out, place.part(), given.type, comm, given.stream, nullptr);
    case Kind::reduce_scatter:
      return gdrxReduceScatter(in, out, place.part(), given.type, given.op, comm, given.stream,
                               nullptr);
    case Kind::broadcast:
      return gdrxBroadcast(in, out, place.count, given.type, place.root, comm, given.stream,
                           nullptr);
    case Kind::reduce:
      return gdrxReduce(in, out, place.count, given.type, given.op, place.root, comm, given.stream,
                        nullptr);
    case Kind::all_to_all:
      return gdrxAllToAll(in, out, place.part(), given.type, comm, given.stream, nullptr);
    case Kind::all_to_all_v:
      return all_to_all_v(place, ends, given);
    case Kind::gather:
      return gdrxGather(in, out, place.part(), given.type, place.root, comm, given.stream, nullptr);
    case Kind::scatter:
      return gdrxScatter(in, out, place.part(), given.type, place.root, comm, given.stream,
                         nullptr);
    case Kind::send_recv:
      return send_and_receive(place, ends, given);
    case Kind::hypercube:
      return hypercube(place, size_of(type), ends, given);
  }
  return gdrxInvalidArgument;
}

}  // namespace gdrx::bench
