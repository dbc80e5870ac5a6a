// SPDX-License-Identifier: Apache-2.0
// A queue pair as a state machine: what may be called follows from its state, and a move that the
// state does not allow is a defect that is reported before the NIC sees it.
#pragma once

#include <memory>
#include <optional>

#include "transport/verbs/context.hpp"

namespace gdrx::verbs {

enum class QpState : std::uint8_t { reset, init, ready_to_receive, ready_to_send, error };

struct QpLimits {
  std::uint32_t sends = 128;
  std::uint32_t receives = 64;
  std::uint32_t inline_bytes = 0;  // wished; QueuePair::inline_bytes() is what was given
};

/// How a QP reaches its peer's.
struct QpRoute {
  ibv_ah_attr address{};
  std::uint32_t peer_qp = 0;
  std::uint32_t peer_psn = 0;
  std::uint32_t psn = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint8_t timeout = 16;  // 4.096 us * 2^timeout
  std::uint8_t retries = 7;
  std::uint8_t reads = 1;        // RDMA reads on their way at once, in each direction
  std::uint8_t rnr_retries = 7;  // for ever: credits keep it from happening, a stray one may wait
};

class QueuePair {
 public:
  static Result<std::unique_ptr<QueuePair>> create(std::shared_ptr<ProtectionDomain> domain,
                                                   std::shared_ptr<CompletionQueue> queue,
                                                   ibv_qp_type type, const QpLimits& limits);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  QpState state() const noexcept { return state_; }
  std::uint32_t number() const noexcept { return qp_->qp_num; }
  std::uint32_t inline_bytes() const noexcept { return inline_bytes_; }
  /// What its provider has to offer to a peer's (enhanced connection establishment), or what was
  /// agreed on when connected; nothing where there is none.
  std::optional<ibv_ece> ece() const noexcept;
  /// Before connect(). What the provider does not know of it stays off.
  void set_ece(const ibv_ece& wanted) noexcept;
  /// `access`: what its peer may do to our memory, IBV_ACCESS_REMOTE_*. Datagrams: nothing.
  Result<void> to_init(std::uint8_t port, std::uint16_t pkey_index, std::uint32_t qkey,
                       int access = 0);
  Result<void> connect(const QpRoute& route);  // reliable: init to ready_to_send
  Result<void> activate();                     // datagram: init to ready_to_send
  /// From here on nothing that comes for it touches memory, and what is posted is flushed.
  Result<void> to_error();

  /// 0 or errno. Allowed from init on.
  int post(ibv_recv_wr& request) noexcept {
    ibv_recv_wr* bad = nullptr;
    return post(request, bad);
  }
  /// 0 or errno. Allowed when ready_to_send.
  int post(ibv_send_wr& request) noexcept {
    ibv_send_wr* bad = nullptr;
    return post(request, bad);
  }
  /// The same for a chain, with one ring of the NIC's bell; `bad`: the first that was not taken.
  int post(ibv_recv_wr& chain, ibv_recv_wr*& bad) noexcept {
    return ibv_post_recv(qp_, &chain, &bad);
  }
  int post(ibv_send_wr& chain, ibv_send_wr*& bad) noexcept {
    return ibv_post_send(qp_, &chain, &bad);
  }

 private:
  QueuePair(std::shared_ptr<ProtectionDomain> domain, std::shared_ptr<CompletionQueue> queue,
            ibv_qp* qp)
      : domain_(std::move(domain)), queue_(std::move(queue)), qp_(qp) {}
  Result<void> modify(ibv_qp_attr& attributes, int mask, QpState from, QpState to,
                      const char* what);

  std::shared_ptr<ProtectionDomain> domain_;
  std::shared_ptr<CompletionQueue> queue_;
  ibv_qp* qp_;
  std::uint32_t inline_bytes_ = 0;
  QpState state_ = QpState::reset;
};

}  // namespace gdrx::verbs
