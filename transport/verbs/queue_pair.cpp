// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/queue_pair.hpp"

#include <cerrno>

namespace gdrx::verbs {
namespace {

constexpr std::uint8_t kRnrTimer = 12;  // 0.64 ms

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(std::shared_ptr<ProtectionDomain> domain,
                                                     std::shared_ptr<CompletionQueue> queue,
                                                     ibv_qp_type type, const QpLimits& limits) {
  ibv_qp_init_attr wish{};
  wish.send_cq = wish.recv_cq = queue->raw();
  wish.qp_type = type;
  wish.cap.max_send_wr = limits.sends;
  wish.cap.max_recv_wr = limits.receives;
  wish.cap.max_send_sge = 2;
  wish.cap.max_recv_sge = 1;
  // NICs differ in what they grant and refuse what is too much: ask for less until one is given.
  const VerbsTable& verbs = domain->context()->verbs();
  for (std::uint32_t bytes = limits.inline_bytes;; bytes /= 2) {
    ibv_qp_init_attr attributes = wish;
    attributes.cap.max_inline_data = bytes;
    errno = 0;
    if (ibv_qp* qp = verbs.create_qp(domain->raw(), &attributes); qp != nullptr) {
      auto made =
          std::unique_ptr<QueuePair>(new QueuePair(std::move(domain), std::move(queue), qp));
      made->inline_bytes_ = attributes.cap.max_inline_data;
      return made;
    }
    if (bytes == 0) {
      return fail(Errc::system, "ibv_create_qp on " + domain->context()->name(), errno);
    }
  }
}

QueuePair::~QueuePair() { domain_->context()->verbs().destroy_qp(qp_); }

Result<void> QueuePair::modify(ibv_qp_attr& attributes, int mask, QpState from, QpState to,
                               const char* what) {
  if (state_ != from) return fail(Errc::internal, std::string(what) + " out of turn");
  if (const int error = domain_->context()->verbs().modify_qp(qp_, &attributes, mask); error != 0) {
    return fail(Errc::system, std::string(what) + " on " + domain_->context()->name(), error);
  }
  state_ = to;
  return {};
}

std::optional<ibv_ece> QueuePair::ece() const noexcept {
  const VerbsTable& verbs = domain_->context()->verbs();
  ibv_ece ece{};
  if (!verbs.query_ece || !verbs.set_ece || verbs.query_ece(qp_, &ece) != 0 || ece.vendor_id == 0) {
    return std::nullopt;
  }
  return ece;
}

void QueuePair::set_ece(const ibv_ece& wanted) noexcept {
  ibv_ece ece = wanted;
  (void)domain_->context()->verbs().set_ece(qp_, &ece);  // refused (another vendor's): it stays off
}

Result<void> QueuePair::to_init(std::uint8_t port, std::uint16_t pkey_index, std::uint32_t qkey,
                                int access) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port;
  attributes.pkey_index = pkey_index;
  attributes.qkey = qkey;
  attributes.qp_access_flags = static_cast<unsigned>(access);
  const int own = qp_->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  return modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own, QpState::reset,
                QpState::init, "ibv_modify_qp to INIT");
}

Result<void> QueuePair::connect(const QpRoute& route) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = route.address;
  attributes.path_mtu = route.mtu;
  attributes.dest_qp_num = route.peer_qp;
  attributes.rq_psn = route.peer_psn;
  attributes.max_dest_rd_atomic = route.reads;
  attributes.min_rnr_timer = kRnrTimer;
  GDRX_TRY(modify(attributes,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                  QpState::init, QpState::ready_to_receive, "ibv_modify_qp to RTR"));
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = route.timeout;
  attributes.retry_cnt = route.retries;
  attributes.rnr_retry = route.rnr_retries;
  attributes.sq_psn = route.psn;
  attributes.max_rd_atomic = route.reads;
  return modify(attributes,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                QpState::ready_to_receive, QpState::ready_to_send, "ibv_modify_qp to RTS");
}

Result<void> QueuePair::activate() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  GDRX_TRY(modify(attributes, IBV_QP_STATE, QpState::init, QpState::ready_to_receive,
                  "ibv_modify_qp to RTR"));
  attributes.qp_state = IBV_QPS_RTS;
  return modify(attributes, IBV_QP_STATE | IBV_QP_SQ_PSN, QpState::ready_to_receive,
                QpState::ready_to_send, "ibv_modify_qp to RTS");
}

Result<void> QueuePair::to_error() {
  if (state_ == QpState::error) return {};
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return modify(attributes, IBV_QP_STATE, state_, QpState::error, "ibv_modify_qp to ERR");
}

}  // namespace gdrx::verbs
