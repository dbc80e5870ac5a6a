// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/qp_channel.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

namespace gdrx::verbs {
namespace {

// Small sends in a row share a completion: one in so many asks for it.
constexpr std::uint32_t kSignalEvery = 16;

std::uint64_t load(std::uint64_t& word) noexcept {
  // The peer's NIC writes it at any moment; a stale value only delays us.
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_relaxed);
}

}  // namespace

Result<void> QpChannel::open(Rail& rail, std::uint32_t id, const ChannelMemory& memory) {
  rail_ = &rail;
  id_ = id;
  memory_ = memory;
  ++epoch_;
  posted_ = retired_ = signalled_ = unsignalled_ = acknowledged_ = received_ = 0;
  receives_left_ = returned_count_ = repeated_ = grant_end_ = confirm_end_ = 0;
  fragments_ = granted_ = receives_posted_ = 0;
  outstanding_ = 0;
  told_receives_ = kReceives;  // the hello says it
  told_delivered_ = 0;
  *memory_.granted = CreditWord{};
  qp_ = GDRX_TRY(rail.make_qp(kChannelLimits));
  for (std::uint32_t slot = 0; slot < kReceives; ++slot) {
    if (const int error = give_back(slot); error != 0) {
      close();
      return fail(Errc::system, std::string("ibv_post_recv on ") + rail.name(), error);
    }
  }
  return {};
}

Result<void> QpChannel::connect(const QpRoute& route, std::uint32_t receives,
                                const PeerCredit& credit, bool guarded) {
  credit_ = credit;
  guarded_ = guarded;
  granted_ = receives;
  return qp_.qp->connect(route);
}

void QpChannel::to_error() noexcept {
  try {
    if (open()) (void)qp_.qp->to_error();  // refused: the NIC is gone, and the QP with it
  } catch (const std::bad_alloc&) {        // for the words of a refusal
  }
}

void QpChannel::close() noexcept {
  if (open()) rail_->destroy_qp(qp_, kChannelLimits);
}

std::uint64_t QpChannel::peer_delivered() const noexcept {
  return load(memory_.granted->delivered);
}

std::uint64_t QpChannel::peer_acknowledged() const noexcept {
  return open() ? load(memory_.granted->acknowledged) : 0;
}

bool QpChannel::saw(std::uint64_t sequence, unsigned fragment) const noexcept {
  const auto kept = std::min<std::size_t>(received_, seen_.size());
  return std::find(seen_.begin(), seen_.begin() + kept, key_of(sequence, fragment)) !=
         seen_.begin() + kept;
}

bool QpChannel::room(std::uint32_t requests) noexcept {
  if (posted_ - retired_ + requests > kLongestFragment) return false;
  if (fragments_ < granted_) return true;
  // A peer that claims more than our ring holds gains nothing: the ring bounds what is posted.
  granted_ = std::max(granted_, load(memory_.granted->receives));
  return fragments_ < granted_;
}

int QpChannel::post_receives() noexcept {
  std::array<ibv_sge, kReceiveBatch> pieces{};
  std::array<ibv_recv_wr, kReceiveBatch> requests{};
  for (std::uint32_t i = 0; i < kReceiveBatch; ++i) {
    pieces[i].addr = reinterpret_cast<std::uintptr_t>(receive_slot(returned_[i]));
    pieces[i].length = kReceiveSlot;
    pieces[i].lkey = memory_.lkey;
    requests[i].wr_id = mark(true, returned_[i]);
    requests[i].next = i + 1 < kReceiveBatch ? &requests[i + 1] : nullptr;
    requests[i].sg_list = &pieces[i];
    requests[i].num_sge = 1;
  }
  returned_count_ = 0;
  ibv_recv_wr* bad = nullptr;
  const int error = qp_.qp->post(requests[0], bad);
  const auto taken = error == 0 ? kReceiveBatch : static_cast<std::uint32_t>(bad - requests.data());
  receives_left_ += taken;
  receives_posted_ += taken;
  return error;
}

void QpChannel::book(const Fragment& fragment, bool signal) noexcept {
  fifo_[posted_++ % kSends] = fragment;
  if (signal) {
    ++signalled_;
    unsignalled_ = 0;
  } else {
    ++unsignalled_;
  }
}

int QpChannel::submit(ibv_send_wr& request, const Fragment& fragment, bool signal,
                      ibv_send_wr* before) noexcept {
  if (before != nullptr) {
    before->wr_id = mark(false, posted_);
    before->next = &request;
  }
  request.wr_id = mark(false, posted_ + (before != nullptr ? 1 : 0));
  if (signal) request.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int error = qp_.qp->post(before != nullptr ? *before : request, bad);
  if (before != nullptr && (error == 0 || bad == &request)) book(Fragment{}, false);
  if (error == 0) book(fragment, signal);
  return error;
}

int QpChannel::post(ibv_send_wr& request, const Fragment& fragment, bool soon,
                    ibv_send_wr* before) noexcept {
  const bool signal = soon || signalled_ == 0 || unsignalled_ + 1 >= kSignalEvery;
  const int error = submit(request, fragment, signal, before);
  if (error != 0) {
    doubt(fragment);
    return error;
  }
  ++fragments_;
  outstanding_ += fragment.bytes;
  return 0;
}

// A part of it may be on its way, or all of it: not to be sent again before nothing of this QP can
// land any more.
void QpChannel::doubt(const Fragment& fragment) noexcept {
  fifo_[posted_++ % kSends] = fragment;
  outstanding_ += fragment.bytes;
}

bool QpChannel::grant_is_due(std::uint64_t delivered) const noexcept {
  return receives_posted_ - repeated_ >= told_receives_ + kReceives / 4 ||
         delivered - told_delivered_ >= kWindow / 4;
}

void QpChannel::grant(std::uint64_t delivered) noexcept {
  const std::uint64_t receives = receives_posted_ - repeated_;
  if (!grant_is_due(delivered) || posted_ - retired_ >= kSends ||
      (guarded_ && under_way(grant_end_)))
    return;
  memory_.granting->receives = receives;
  memory_.granting->delivered = delivered;
  const bool signal = guarded_ || unsignalled_ + 1 >= kSignalEvery || signalled_ == 0;
  if (write_word(&memory_.granting->receives, kGrantBytes, signal) != 0) return;
  grant_end_ = posted_;
  told_receives_ = receives;
  told_delivered_ = delivered;
}

bool QpChannel::confirm(std::uint64_t messages) noexcept {
  if (posted_ - retired_ >= kSends || confirming()) return false;
  memory_.granting->acknowledged = messages;
  if (write_word(&memory_.granting->acknowledged, sizeof messages, true) != 0) return false;
  confirm_end_ = posted_;
  return true;
}

// Into the same member of the peer's word.
int QpChannel::write_word(const std::uint64_t* from, std::size_t bytes, bool signal) noexcept {
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(from);
  piece.length = static_cast<std::uint32_t>(bytes);
  piece.lkey = memory_.lkey;
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.rdma.remote_addr =
      credit_.address + (piece.addr - reinterpret_cast<std::uintptr_t>(memory_.granting));
  request.wr.rdma.rkey = credit_.rkey;
  if (inline_bytes() >= bytes) request.send_flags = IBV_SEND_INLINE;
  // Not inline: the NIC may read the word later, when it says more, which is as true.
  return submit(request, Fragment{}, signal);
}

void QpChannel::flush() noexcept {
  if (unsignalled_ == 0 || signalled_ != 0 || posted_ - retired_ >= kSends) return;
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;  // of no bytes: takes no receive of the peer's
  request.wr.rdma.remote_addr = credit_.address;
  request.wr.rdma.rkey = credit_.rkey;
  (void)submit(request, Fragment{}, true);
}

}  // namespace gdrx::verbs
