// SPDX-License-Identifier: Apache-2.0
// Collectives whose ranks have a count each. The caller's lists are his again when a call returns.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_state.hpp"
#include "collectives/comm/parts.hpp"
#include "transport/memory/surely_host.hpp"

namespace gdrx::c_api {
namespace {

using exec::Part;
using exec::Parts;
using exec::Range;

// A buffer with a part for each rank, as the caller has described it.
struct Side {
  const void* buffer = nullptr;
  const std::size_t* counts = nullptr;
  const std::size_t* displs = nullptr;  // null: one part behind another
  const char* name = "";
};

/// The parts of a call. Most are waited for by their thread, whose lists they are then, in turn: no
/// memory is taken for them. A thread may make such a call in another one, as in a handler.
class Lists {
 public:
  Lists() : kept_(Keep::of_thread().taken ? nullptr : &Keep::of_thread()) {
    if (kept_ == nullptr) return;
    kept_->taken = true;
    kept_->parts.sends.clear();
    kept_->parts.receives.clear();
  }
  ~Lists() {
    if (kept_ != nullptr) kept_->taken = false;
  }
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  Parts& parts() noexcept { return kept_ != nullptr ? kept_->parts : own_; }
  /// Nobody has them when the call that has them has ended, if it is waited for.
  std::shared_ptr<const Parts> share(bool waited) {
    if (kept_ == nullptr || !waited) return std::make_shared<const Parts>(std::move(parts()));
    return {std::shared_ptr<const Parts>(), &kept_->parts};
  }

 private:
  struct Keep {
    Parts parts;
    bool taken = false;
    static Keep& of_thread() {
      thread_local Keep keep;
      return keep;
    }
  };
  Keep* kept_;  // null: it is taken
  Parts own_;
};

// Sums that stay far from overflow, whatever the lists say.
Result<void> take(const gdrxComm* comm, const Side& side, DataType type, std::vector<Part>& parts) {
  const int ranks = comm->impl->size();
  if (side.counts == nullptr) {
    return fail(Errc::invalid_argument,
                fmt::format("the counts of {} are NULL: one a rank", side.name));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    GDRX_TRY(check_count(comm, side.counts[rank], type));
    if (side.displs != nullptr) GDRX_TRY(check_count(comm, side.displs[rank], type));
  }
  parts = parts_of(side.counts, side.displs, ranks, std::move(parts));
  return check_buffer(side.buffer, extent_of(parts), side.name);
}

const std::byte* at(const void* buffer, std::uint64_t element, DataType type) {
  return static_cast<const std::byte*>(buffer) + element * size_of(type);
}

/// A call with the arguments that all of them have. `root` 0 where there is none.
Result<Call> begin(gdrxComm* comm, Collective collective, const void* sendbuff, void* recvbuff,
                   gdrxDataType_t type, int root) {
  GDRX_TRY(check_comm(comm));
  Call call;
  call.collective = collective;
  call.type = GDRX_TRY(data_type(type));
  call.root = GDRX_TRY(rank_of(comm, root, "root"));
  call.input = bytes_of(sendbuff);
  call.output = bytes_of(recvbuff);
  return call;
}

const Range& part_of(const std::vector<Part>& parts, Rank rank) {
  return parts[static_cast<std::size_t>(index(rank))].range;
}

// One of the two buffers has parts, and the other is one block: in place it is this rank's part.
Result<void> check_block(const gdrxComm* comm, const Call& call, std::uint64_t count,
                         const std::vector<Part>& parts, bool parts_are_input) {
  const Rank self = comm->impl->rank();
  const std::uint64_t element = size_of(call.type);
  const void* const with_parts = parts_are_input ? call.input : call.output;
  const std::byte* const block =
      parts_are_input ? static_cast<const std::byte*>(call.output) : call.input;
  if (!in_order(parts)) GDRX_TRY(runs_of(parts, parts_are_input ? "sendbuff" : "recvbuff"));
  for (const Part& part : parts) {
    if (part.peer == self && block == at(with_parts, part.range.begin, call.type)) continue;
    const std::byte* const other = at(with_parts, part.range.begin, call.type);
    GDRX_TRY(
        check_overlap(block, other, {count * element, part.range.count * element, Bounds::kNever}));
  }
  return {};
}

Result<void> check_own(std::uint64_t count, const std::vector<Part>& parts, Rank self,
                       const char* name) {
  if (part_of(parts, self).count == count) return {};
  return fail(Errc::invalid_argument,
              fmt::format("{} is {}, and the root's own entry in the list of counts is {}", name,
                          count, part_of(parts, self).count));
}

bool same(const std::vector<Part>& a, const std::vector<Part>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Part& x, const Part& y) {
    return x.range.count == y.range.count && (x.range.count == 0 || x.range.begin == y.range.begin);
  });
}

bool are_apart(const Call& call, const Parts& parts) {
  const std::byte* const in_end = call.input + extent_of(parts.sends) * size_of(call.type);
  const std::byte* const out_end = call.output + extent_of(parts.receives) * size_of(call.type);
  return in_end <= call.output || out_end <= call.input;
}

// In place, what comes from a rank replaces what goes to it.
Result<void> check_exchange(const Call& call, const Parts& parts) {
  if (in_order(parts.sends) && in_order(parts.receives) && are_apart(call, parts)) return {};
  const std::vector<Range> reads = GDRX_TRY(runs_of(parts.sends, "sendbuff"));
  const std::vector<Range> writes = GDRX_TRY(runs_of(parts.receives, "recvbuff"));
  if (call.input == call.output && same(parts.sends, parts.receives)) return {};
  const std::uint64_t element = size_of(call.type);
  for (const Range& write : writes) {
    for (const Range& read : reads) {
      GDRX_TRY(check_overlap(at(call.input, read.begin, call.type),
                             at(call.output, write.begin, call.type),
                             {read.count * element, write.count * element, Bounds::kNever}));
    }
  }
  return {};
}

Result<void> post(gdrxComm* comm, Call call, Lists& lists, gdrxStream_t stream,
                  gdrxRequest_t* request) {
  const bool waited = stream == nullptr && request == nullptr && !in_group() &&
                      comm->impl->has_quick() && are_surely_host(call.input, call.output);
  call.parts = lists.share(waited);
  return submit(comm, call, stream, request);
}

}  // namespace
}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxAllToAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                           void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                           gdrxDataType_t type, gdrxComm_t comm, gdrxStream_t stream,
                           gdrxRequest_t* request) {
  return guarded_call(comm, [&]() -> Result<void> {
    Call call = GDRX_TRY(begin(comm, Collective::all_to_all_v, sendbuff, recvbuff, type, 0));
    Lists lists;
    Parts& parts = lists.parts();
    GDRX_TRY(take(comm, {sendbuff, sendcounts, sdispls, "sendbuff"}, call.type, parts.sends));
    GDRX_TRY(take(comm, {recvbuff, recvcounts, rdispls, "recvbuff"}, call.type, parts.receives));
    const Rank self = comm->impl->rank();
    if (part_of(parts.sends, self).count != part_of(parts.receives, self).count) {
      return fail(
          Errc::invalid_argument,
          fmt::format("rank {} sends {} elements to itself and receives {}", index(self),
                      part_of(parts.sends, self).count, part_of(parts.receives, self).count));
    }
    GDRX_TRY(check_exchange(call, parts));
    call.count = elements_of(parts.sends) + elements_of(parts.receives);
    return post(comm, std::move(call), lists, stream, request);
  });
}

gdrxResult_t gdrxGatherv(const void* sendbuff, size_t sendcount, void* recvbuff,
                         const size_t* recvcounts, const size_t* displs, gdrxDataType_t type,
                         int root, gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request) {
  return guarded_call(comm, [&]() -> Result<void> {
    Call call = GDRX_TRY(begin(comm, Collective::gather_v, sendbuff, recvbuff, type, root));
    GDRX_TRY(check_count(comm, sendcount, call.type));
    GDRX_TRY(check_buffer(sendbuff, sendcount, "sendbuff"));
    call.count = sendcount;
    Lists lists;
    Parts& parts = lists.parts();
    parts.sends = {{call.root, {0, sendcount}}};
    if (call.root == comm->impl->rank()) {
      GDRX_TRY(take(comm, {recvbuff, recvcounts, displs, "recvbuff"}, call.type, parts.receives));
      GDRX_TRY(check_own(sendcount, parts.receives, call.root, "sendcount"));
      GDRX_TRY(check_block(comm, call, sendcount, parts.receives, false));
    }
    return post(comm, std::move(call), lists, stream, request);
  });
}

gdrxResult_t gdrxScatterv(const void* sendbuff, const size_t* sendcounts, const size_t* displs,
                          void* recvbuff, size_t recvcount, gdrxDataType_t type, int root,
                          gdrxComm_t comm, gdrxStream_t stream, gdrxRequest_t* request) {
  return guarded_call(comm, [&]() -> Result<void> {
    Call call = GDRX_TRY(begin(comm, Collective::scatter_v, sendbuff, recvbuff, type, root));
    GDRX_TRY(check_count(comm, recvcount, call.type));
    GDRX_TRY(check_buffer(recvbuff, recvcount, "recvbuff"));
    call.count = recvcount;
    Lists lists;
    Parts& parts = lists.parts();
    parts.receives = {{call.root, {0, recvcount}}};
    if (call.root == comm->impl->rank()) {
      GDRX_TRY(take(comm, {sendbuff, sendcounts, displs, "sendbuff"}, call.type, parts.sends));
      GDRX_TRY(check_own(recvcount, parts.sends, call.root, "recvcount"));
      GDRX_TRY(check_block(comm, call, recvcount, parts.sends, true));
    }
    return post(comm, std::move(call), lists, stream, request);
  });
}

gdrxResult_t gdrxAllGatherv(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                            const size_t* displs, gdrxDataType_t type, gdrxComm_t comm,
                            gdrxStream_t stream, gdrxRequest_t* request) {
  return guarded_call(comm, [&]() -> Result<void> {
    Call call = GDRX_TRY(begin(comm, Collective::all_gather_v, sendbuff, recvbuff, type, 0));
    Lists lists;
    Parts& parts = lists.parts();
    GDRX_TRY(take(comm, {recvbuff, recvcounts, displs, "recvbuff"}, call.type, parts.receives));
    const std::uint64_t own = part_of(parts.receives, comm->impl->rank()).count;
    GDRX_TRY(check_buffer(sendbuff, own, "sendbuff"));
    GDRX_TRY(check_block(comm, call, own, parts.receives, false));
    call.count = elements_of(parts.receives);
    return post(comm, std::move(call), lists, stream, request);
  });
}

gdrxResult_t gdrxReduceScatterv(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                gdrxDataType_t type, gdrxRedOp_t op, gdrxComm_t comm,
                                gdrxStream_t stream, gdrxRequest_t* request) {
  return guarded_call(comm, [&]() -> Result<void> {
    Call call = GDRX_TRY(begin(comm, Collective::reduce_scatter_v, sendbuff, recvbuff, type, 0));
    GDRX_TRY(set_operator(comm, op, call));
    Lists lists;
    Parts& parts = lists.parts();
    GDRX_TRY(take(comm, {sendbuff, recvcounts, nullptr, "sendbuff"}, call.type, parts.sends));
    const std::uint64_t own = part_of(parts.sends, comm->impl->rank()).count;
    GDRX_TRY(check_buffer(recvbuff, own, "recvbuff"));
    GDRX_TRY(check_block(comm, call, own, parts.sends, true));
    call.count = elements_of(parts.sends);
    return post(comm, std::move(call), lists, stream, request);
  });
}
