// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/lane.hpp"

#include <atomic>

namespace gdrx::perf {
namespace {

using SteadyClock = std::chrono::steady_clock;

}  // namespace

GiveUp give_up_after(double seconds) {
  return SteadyClock::now() +
         std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

ibv_send_wr request_of(const Lane& lane, ibv_wr_opcode opcode) {
  ibv_send_wr request{};
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = lane.remote;
  request.wr.rdma.rkey = lane.rkey;
  return request;
}

Result<void> post(const Lane& lane, ibv_wr_opcode opcode) {
  ibv_sge piece = lane.piece;
  ibv_send_wr request = request_of(lane, opcode);
  request.sg_list = &piece;
  if (const int error = lane.end->qp->post(request); error != 0) {
    return fail(Errc::system, "ibv_post_send", error);
  }
  return {};
}

Result<void> completion(const Lane& lane, GiveUp end) {
  for (;;) {
    ibv_wc done{};
    const int count = lane.end->queue->poll({&done, 1});
    if (count < 0) return fail(Errc::system, "ibv_poll_cq failed");
    if (count > 0 && done.status == IBV_WC_SUCCESS) return {};
    if (count > 0) return fail(Errc::system, completion_problem(done));
    if (SteadyClock::now() > end) {
      return fail(Errc::timeout, "no completion within the deadline");
    }
  }
}

Result<std::uint8_t> arrival(const std::byte* at, std::uint8_t before, GiveUp end) {
  const auto* seen = reinterpret_cast<const std::atomic<std::uint8_t>*>(at);
  for (;;) {
    // Acquire: the message's other bytes are there when its last one is.
    const std::uint8_t now = seen->load(std::memory_order_acquire);
    if (now != before) return now;
    if (SteadyClock::now() > end) {
      return fail(Errc::timeout, "a write did not arrive within the deadline");
    }
  }
}

}  // namespace gdrx::perf
