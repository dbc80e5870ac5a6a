// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/flush.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "transport/verbs/wc_text.hpp"

namespace gdrx::verbs {
namespace {

constexpr std::size_t kFlushPage = 4096;
// What a NIC has written has left PCIe for certain after this: the longest default time-out of a
// PCIe transaction (PCI Express Base Specification, Device Control 2).
constexpr Duration kPcieTime = std::chrono::milliseconds(50);
constexpr Duration kAgain = std::chrono::milliseconds(1);
// A read to ourselves takes microseconds. On a QP in error some drivers never complete it.
constexpr Duration kLongestRead = std::chrono::milliseconds(100);

}  // namespace

Result<void> Flusher::open() {
  if (!loops_.empty()) return {};
  sink_ = GDRX_TRY(Buffer::create(kFlushPage));
  std::vector<Loop> made(core_.rails.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].sink =
        GDRX_TRY(core_.rails[i]->domain()->register_memory(sink_.bytes(), IBV_ACCESS_LOCAL_WRITE));
  }
  loops_ = std::move(made);
  return {};
}

Result<void> Flusher::open_loop(const Rail& rail, Loop& loop) const {
  constexpr QpLimits kLimits{1, 1, 0};
  loop.queue = GDRX_TRY(CompletionQueue::create(rail.domain()->context(), 2));
  loop.qp = GDRX_TRY(rail.make_loopback(loop.queue, kLimits));
  return {};
}

Result<Flush> Flusher::start(std::uint32_t region, std::uint64_t cookie) {
  const LocalRegion& target = core_.regions[region];
  if (!target.flush) return Flush::not_needed;
  GDRX_TRY(open());
  if (started_ - finished_ == kOutstanding) return Flush::pending;
  ring_[started_++ % kOutstanding] = {cookie, region};
  ++core_.counters.flushes;
  for (std::size_t i = 0; i < loops_.size(); ++i) advance(loops_[i], i);
  return Flush::started;
}

void Flusher::advance(Loop& loop, std::size_t rail) {
  if (loop.reading) take_completion(loop, rail);
  if (loop.reading || loop.done == started_) return;
  if (loop.waiting) {
    const Instant now = core_.clock->now();
    if (now >= loop.until) {
      loop.waiting = false;
      loop.done = loop.waited;
      if (loop.done == started_) return;
    } else if (now < loop.again) {
      return;
    }
  }
  read(loop, rail);
}

void Flusher::read(Loop& loop, std::size_t rail) {
  const Rail& through = *core_.rails[rail];
  const std::uint64_t landed = through.landed();
  const LocalRegion& region = core_.regions[ring_[(started_ - 1) % kOutstanding].region];
  // Nothing came over this rail since it was last read through, or the memory is given back.
  if (landed == loop.seen || region.registrations.empty()) {
    loop.done = started_;
    loop.waiting = false;
    return;
  }
  if (through.dead()) return cannot_read(loop, rail, "the NIC is dead");
  if (!loop.qp) {
    if (auto opened = open_loop(through, loop); !opened) {
      return cannot_read(loop, rail, describe(opened.error()));
    }
  }
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(sink_.data());
  piece.length = 1;
  piece.lkey = loop.sink->lkey();
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(region.bytes.data());
  request.wr.rdma.rkey = region.registrations[rail]->rkey();
  if (const int error = loop.qp->post(request); error != 0) {
    return cannot_read(loop, rail, std::strerror(error));
  }
  loop.reading = true;
  loop.overdue = core_.clock->now() + kLongestRead;
  loop.covers = started_;
  loop.seen = landed;
}

void Flusher::take_completion(Loop& loop, std::size_t rail) {
  ibv_wc done{};
  const int count = loop.queue->poll({&done, 1});
  const bool dead = core_.rails[rail]->dead();
  if (count == 0 && !dead && core_.clock->now() < loop.overdue) return;
  loop.reading = false;
  if (count == 1 && done.status == IBV_WC_SUCCESS) {
    loop.waiting = false;
    loop.done = loop.covers;
    return;
  }
  loop.seen = ~std::uint64_t{0};  // nothing was pushed
  cannot_read(loop, rail,
              count == 1 ? text_of(done.status) : (dead ? "the NIC is dead" : "it does not end"));
}

// The driver may do what the NIC cannot; else nothing is left but to wait until the writes have
// landed by themselves, or the NIC can again.
void Flusher::cannot_read(Loop& loop, std::size_t rail, const std::string& why) {
  const Instant now = core_.clock->now();
  loop.qp.reset();
  loop.queue.reset();
  loop.again = now + kAgain;
  if (loop.waiting) return;
  loop.waiting = true;
  loop.waited = started_;
  loop.until = now + kPcieTime;
  const LocalRegion& region = core_.regions[ring_[(started_ - 1) % kOutstanding].region];
  if (!region.bytes.empty() && core_.gpu->flush_writes(region.bytes.data())) loop.until = now;
  core_.log.debug("rail {}: no flush by a read ({})", core_.rails[rail]->name(), why);
}

void Flusher::poll() {
  std::uint32_t behind = 0;  // of the slowest rail
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    advance(loops_[i], i);
    behind = std::max(behind, started_ - loops_[i].done);
  }
  while (started_ - finished_ > behind) {
    const Entry& entry = ring_[finished_++ % kOutstanding];
    core_.finish({CompletionKind::write_done, core_.self, 0, entry.cookie});
  }
}

}  // namespace gdrx::verbs
