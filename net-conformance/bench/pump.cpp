// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/bench/pump.hpp"

#include <array>
#include <chrono>
#include <thread>

#include "gdrx/clock.hpp"
#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

namespace {

constexpr std::chrono::seconds g_patience{30};
constexpr std::size_t kPage = 4096;

/// Null when the plugin says "later".
Result<void*> post(const End& end, std::size_t size, std::size_t slot) {
  Net& net = end.session->net();
  const std::size_t stride = end.same_buffer ? 0 : (size + kPage - 1) / kPage * kPage;
  void* data = end.region->data() + slot * stride;
  void* mhandle = end.region->mhandle();
  void* request = nullptr;
  if (end.sends) {
    GDRX_TRY(succeeds(net.isend(end.comm, data, size, 0, mhandle, &request), "isend"));
  } else {
    int tag = 0;
    GDRX_TRY(succeeds(net.irecv(end.comm, 1, &data, &size, &tag, &mhandle, &request), "irecv"));
  }
  return request;
}

}  // namespace

Result<void> pump(const End& end, std::size_t size, std::size_t count, std::size_t window,
                  std::chrono::microseconds nap) {
  std::array<void*, kMostWindow> requests{};
  std::size_t posted = 0, ended = 0;
  // Rounds between two looks at the clock, which may be slow.
  const std::size_t look = nap.count() > 0 ? 64 : 4096;
  Deadline deadline = Deadline::after(steady_clock(), g_patience);
  for (std::size_t idle = 0; ended < count;) {
    if (posted < count && posted - ended < window) {
      void* request = GDRX_TRY(post(end, size, posted % window));
      if (request != nullptr) {
        requests[posted++ % window] = request;
      }
    }
    int done = 0;
    if (ended < posted) {  // the oldest, as NCCL does
      GDRX_TRY(succeeds(end.session->net().test(requests[ended % window], &done, nullptr), "test"));
    }
    if (done != 0) {
      ++ended;
      idle = 0;
      continue;
    }
    ++idle;
    if (nap.count() > 0) {
      std::this_thread::sleep_for(nap);
    } else {
      std::this_thread::yield();  // as NCCL's progress thread does in every idle round
    }
    if (idle % look != 0) continue;
    if (idle == look) {
      deadline = Deadline::after(steady_clock(), g_patience);
    } else if (deadline.passed(steady_clock().now())) {
      return fail(Errc::timeout, "no message came to an end for 30 s");
    }
  }
  return {};
}

}  // namespace gdrx::conformance
