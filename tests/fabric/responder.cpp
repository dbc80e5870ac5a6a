// SPDX-License-Identifier: Apache-2.0
// The receiving half of the simulated HCA, completions and errors.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "tests/fabric/objects.hpp"

namespace gdrx::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kLatency = 2'000;  // ns
constexpr nanoseconds kAnswer(kLatency);
constexpr std::size_t kGrh = 40;

}  // namespace

int Transport::post_recv(ibv_qp* raw, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  auto& qp = *reinterpret_cast<Qp*>(raw);
  const std::lock_guard lock(qp.nic().network->mutex_);
  int error = qp.nic().network->refused(qp.nic().host, Verb::post_recv);
  if (error != 0) *bad = requests;
  for (; error == 0 && requests != nullptr; requests = requests->next) {
    if (raw->state == IBV_QPS_RESET || requests->num_sge > static_cast<int>(qp.cap.max_recv_sge)) {
      error = EINVAL;
    } else if (qp.receives.size() >= qp.cap.max_recv_wr) {
      error = ENOMEM;
    }
    if (error != 0) {
      *bad = requests;
      break;
    }
    ReceiveRequest request;
    request.id = requests->wr_id;
    request.count = requests->num_sge;
    if (request.count > 0) request.piece = requests->sg_list[0];
    qp.receives.push_back(request);
  }
  if (raw->state == IBV_QPS_ERR) {
    if (qp.nic().network->draw(Fault::unflushed)) qp.receives.clear();
    to_error(qp);
  }
  return error;
}

int Transport::poll(ibv_cq* raw, int count, ibv_wc* into) {
  auto& cq = *reinterpret_cast<Cq*>(raw);
  Network& network = *Nic::of(raw->context).network;
  const std::lock_guard lock(network.mutex_);
  if (network.live()) network.run_due(network.now());
  if (cq.overrun || network.refused(Nic::of(raw->context).host, Verb::poll_cq) != 0) return -1;
  int filled = 0;
  const Instant now = network.now();
  while (filled < count && !cq.entries.empty() && cq.entries.front().visible <= now) {
    into[filled++] = cq.entries.front().wc;
    cq.entries.pop_front();
  }
  return filled;
}

void Transport::complete(Qp& qp, Cq& cq, ibv_wc wc) {
  Nic& nic = qp.nic();
  if (nic.dead) return;
  Network& network = *nic.network;
  wc.qp_num = qp.raw.qp_num;
  if (static_cast<int>(cq.entries.size()) >= cq.raw.cqe) {
    if (cq.overrun) return;
    cq.overrun = true;
    nic.tell(IBV_EVENT_CQ_ERR, nullptr, &cq.raw);
    return to_error(qp);
  }
  Instant visible = network.now();
  if (network.draw(Fault::late_completion)) {
    visible += microseconds(network.random_.between(10, 4000));
  }
  visible = cq.last_visible = std::max(visible, cq.last_visible);
  cq.entries.push_back({wc, visible});
  network.trace(8, wc.wr_id, static_cast<std::uint64_t>(wc.status));
}

void Transport::fail(Qp& qp, ibv_wc_status status) {
  if (!qp.sends.empty()) {
    ibv_wc wc{};
    wc.wr_id = qp.sends.front().id;
    wc.status = status;
    qp.sends.pop_front();
    complete(qp, qp.send_cq(), wc);
  }
  to_error(qp);
}

void Transport::to_error(Qp& qp) {
  qp.raw.state = IBV_QPS_ERR;
  qp.sent = 0;
  ++qp.timer;
  ibv_wc wc{};
  wc.status = IBV_WC_WR_FLUSH_ERR;
  while (!qp.sends.empty()) {
    wc.wr_id = qp.sends.front().id;
    qp.sends.pop_front();
    complete(qp, qp.send_cq(), wc);
  }
  while (!qp.receives.empty()) {
    wc.wr_id = qp.receives.front().id;
    qp.receives.pop_front();
    complete(qp, qp.recv_cq(), wc);
  }
}

void Transport::arrive(Network& network, const std::shared_ptr<Packet>& packet) {
  if (!packet->target->usable()) return;
  Qp* qp = alive(network, packet->to);
  if (qp == nullptr || &qp->nic() != packet->target || !qp->receiving()) return;
  if (qp->raw.qp_type == IBV_QPT_UD) return datagram(*qp, *packet);
  if (qp->peer != packet->from) return;
  const auto ahead = static_cast<std::int32_t>(packet->request.psn - qp->expected_psn);
  if (ahead > 0) return;  // a gap: the sender's time-out fills it
  if (ahead == 0) return execute(*qp, packet);
  // It is here already, and the sender does not know. A read is answered again.
  if (packet->request.opcode == IBV_WR_RDMA_READ) (void)read(*qp, *packet);
  acknowledge(network, packet);
}

namespace {

// A NIC writes aligned eight bytes at once, and counters in memory rely on it.
void write_as_a_nic(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (bytes % kWord != 0 || bytes > 64 || reinterpret_cast<std::uintptr_t>(to) % kWord != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (std::size_t at = 0; at < bytes; at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, kWord);
    // release: what the NIC wrote before is seen by whoever sees this
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to + at))
        .store(word, std::memory_order_release);
  }
}

}  // namespace

bool Transport::fetch(Nic& nic, const Mr* mr, std::byte* to, const std::byte* from, std::size_t n) {
  if (n == 0) return true;
  if (mr != nullptr && mr->gpu) return nic.network->gpu_->to_host(to, from, n).has_value();
  std::memcpy(to, from, n);
  return true;
}

// PCIe keeps writes in order: behind one that is on its way, all are.
bool Transport::store(Nic& nic, const Mr* mr, std::byte* to, const std::byte* from, std::size_t n) {
  if (n == 0) return true;
  if (mr == nullptr || !mr->gpu) {
    write_as_a_nic(to, from, n);
    return true;
  }
  Network& network = *nic.network;
  if (nic.held.empty() && !network.draw(Fault::gpu_hold)) {
    return network.gpu_->to_device(to, from, n).has_value();
  }
  if (nic.held.empty()) {
    network.schedule(microseconds(network.random_.between(500, 20'000)),
                     [&nic] { push_held(nic); });
  }
  nic.held.push_back({to, {from, from + n}});
  return true;
}

void Transport::push_held(Nic& nic) {
  for (const Held& held : nic.held) {
    (void)nic.network->gpu_->to_device(held.to, held.bytes.data(), held.bytes.size());
  }
  nic.held.clear();
}

ibv_wc_status Transport::land(Qp& qp, const Packet& packet, std::size_t from, std::size_t bytes) {
  if (packet.payload.empty()) return IBV_WC_SUCCESS;  // no bytes: the key is not looked at
  const SendRequest& request = packet.request;
  Nic& nic = qp.nic();
  const auto found = nic.by_rkey.find(request.rkey);
  if ((qp.access & IBV_ACCESS_REMOTE_WRITE) == 0 || found == nic.by_rkey.end()) {
    return IBV_WC_REM_ACCESS_ERR;
  }
  const Mr& mr = *found->second;
  const auto base = reinterpret_cast<std::uintptr_t>(mr.raw.addr);
  if ((mr.access & IBV_ACCESS_REMOTE_WRITE) == 0 || mr.raw.pd != qp.raw.pd ||
      request.address < base || request.address - base > mr.raw.length ||
      packet.payload.size() > mr.raw.length - (request.address - base)) {
    return IBV_WC_REM_ACCESS_ERR;
  }
  auto* to = reinterpret_cast<std::byte*>(request.address) + from;
  return store(nic, &mr, to, packet.payload.data() + from, bytes) ? IBV_WC_SUCCESS
                                                                  : IBV_WC_REM_OP_ERR;
}

ibv_wc_status Transport::read(Qp& qp, Packet& packet) {
  const SendRequest& request = packet.request;
  Nic& nic = qp.nic();
  const auto found = nic.by_rkey.find(request.rkey);
  if ((qp.access & IBV_ACCESS_REMOTE_READ) == 0 || found == nic.by_rkey.end()) {
    return IBV_WC_REM_ACCESS_ERR;
  }
  const Mr& mr = *found->second;
  const auto base = reinterpret_cast<std::uintptr_t>(mr.raw.addr);
  if ((mr.access & IBV_ACCESS_REMOTE_READ) == 0 || request.address < base ||
      request.address - base > mr.raw.length ||
      request.bytes > mr.raw.length - (request.address - base)) {
    return IBV_WC_REM_ACCESS_ERR;
  }
  if (mr.gpu) push_held(nic);
  packet.payload.resize(request.bytes);
  const auto* bytes = reinterpret_cast<const std::byte*>(request.address);
  return fetch(nic, &mr, packet.payload.data(), bytes, request.bytes) ? IBV_WC_SUCCESS
                                                                      : IBV_WC_REM_OP_ERR;
}

void Transport::execute(Qp& qp, const std::shared_ptr<Packet>& packet) {
  Network& network = *qp.nic().network;
  const SendRequest& request = packet->request;
  const bool send = request.opcode == IBV_WR_SEND;
  const bool takes_receive = send || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (takes_receive && (qp.receives.empty() || network.draw(Fault::rnr))) {
    return answer(network, packet, Frame::Kind::not_ready, IBV_WC_SUCCESS, kAnswer);
  }
  ibv_wc wc{};
  wc.byte_len = static_cast<std::uint32_t>(packet->payload.size());
  wc.opcode = send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  ibv_wc_status theirs = IBV_WC_SUCCESS;
  if (request.opcode == IBV_WR_RDMA_READ) {
    theirs = read(qp, *packet);
  } else if (!send) {
    theirs = land(qp, *packet, 0, packet->payload.size());
  }
  if (theirs != IBV_WC_SUCCESS) {
    qp.nic().tell(IBV_EVENT_QP_ACCESS_ERR, &qp.raw);
    to_error(qp);
    return answer(network, packet, Frame::Kind::refused, theirs, kAnswer);
  }
  if (takes_receive) {
    const ReceiveRequest receive = qp.receives.front();
    qp.receives.pop_front();
    wc.wr_id = receive.id;
    if (send && wc.byte_len > (receive.count > 0 ? receive.piece.length : 0)) {
      wc.status = IBV_WC_LOC_LEN_ERR;
      theirs = IBV_WC_REM_INV_REQ_ERR;
    } else if (send && wc.byte_len > 0) {
      if (local(qp.nic(), receive.piece, qp.raw.pd, IBV_ACCESS_LOCAL_WRITE) == nullptr) {
        wc.status = IBV_WC_LOC_PROT_ERR;
        theirs = IBV_WC_REM_OP_ERR;
      } else {
        (void)store(qp.nic(), local(qp.nic(), receive.piece, qp.raw.pd, 0),
                    reinterpret_cast<std::byte*>(receive.piece.addr), packet->payload.data(),
                    wc.byte_len);
      }
    }
    if (!send) {
      wc.imm_data = request.imm;
      wc.wc_flags = IBV_WC_WITH_IMM;
    }
    complete(qp, qp.recv_cq(), wc);
    if (theirs != IBV_WC_SUCCESS) {
      to_error(qp);
      return answer(network, packet, Frame::Kind::refused, theirs, kAnswer);
    }
  }
  ++qp.expected_psn;
  repeat_later(qp, *packet);
  acknowledge(network, packet);
}

// As soft-RoCE's requester does after a time-out that was none: a request goes out once more under
// a number that its receiver takes for new. Only one without an acknowledgement can, so none is
// sent before.
void Transport::repeat_later(Qp& qp, const Packet& packet) {
  Network& network = *qp.nic().network;
  if (network.live() || packet.source == nullptr || !packet.source->repeats) return;
  if (packet.request.opcode == IBV_WR_RDMA_READ || !network.draw(Fault::repeat)) return;
  ++qp.repeating;
  auto again = std::make_shared<Packet>(packet);
  if (network.random_.chance(0.3)) again->payload.clear();
  network.schedule(microseconds(network.random_.between(5, 3000)), [&network, again] {
    Qp* there = alive(network, again->to);
    if (there == nullptr || there->peer != again->from) return;
    --there->repeating;
    if (again->target->usable() && there->receiving()) repeat(*there, *again);
    again->request.psn = there->expected_psn - 1;
    acknowledge(network, again);
  });
}

void Transport::repeat(Qp& qp, const Packet& packet) {
  const bool send = packet.request.opcode == IBV_WR_SEND;
  if (!send && land(qp, packet, 0, packet.payload.size()) != IBV_WC_SUCCESS) return;
  if (packet.request.opcode == IBV_WR_RDMA_WRITE || qp.receives.empty()) return;
  const ReceiveRequest receive = qp.receives.front();
  qp.receives.pop_front();
  ibv_wc wc{};
  wc.wr_id = receive.id;
  wc.byte_len = static_cast<std::uint32_t>(packet.payload.size());
  wc.opcode = send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  if (send) {
    (void)store(qp.nic(), local(qp.nic(), receive.piece, qp.raw.pd, 0),
                reinterpret_cast<std::byte*>(receive.piece.addr), packet.payload.data(),
                packet.payload.size());
  } else {
    wc.imm_data = packet.request.imm;
    wc.wc_flags = IBV_WC_WITH_IMM;
  }
  complete(qp, qp.recv_cq(), wc);
}

void Transport::acknowledge(Network& network, const std::shared_ptr<Packet>& packet) {
  if (network.draw(Fault::drop_ack)) return;
  const Duration in =
      network.live() ? Duration::zero() : nanoseconds(kLatency + network.random_.below(kLatency));
  answer(network, packet, Frame::Kind::acknowledged, IBV_WC_SUCCESS, in);
}

void Transport::answer(Network& network, const std::shared_ptr<Packet>& packet, Frame::Kind what,
                       ibv_wc_status status, Duration in) {
  const Qp* const there = alive(network, packet->to);
  if (there != nullptr && there->repeating > 0) return;  // it would acknowledge what goes before
  if (packet->source == nullptr) {
    Frame frame;
    frame.kind = what;
    frame.opcode = static_cast<std::uint8_t>(packet->request.opcode);
    frame.status = static_cast<std::uint8_t>(status);
    frame.to = packet->away;
    std::copy_n(packet->target->gid.raw, frame.from.size(), frame.from.begin());
    frame.asker = packet->from;
    frame.asked = packet->to;
    frame.psn = packet->request.psn;
    frame.bytes = packet->request.bytes;
    const bool bytes =
        what == Frame::Kind::acknowledged && packet->request.opcode == IBV_WR_RDMA_READ;
    if (!bytes) packet->payload.clear();
    frame.payload = static_cast<std::uint32_t>(packet->payload.size());
    return network.bridge_->send(frame, packet->payload);
  }
  if (network.live()) return answered(network, *packet, what, status);
  network.schedule(in,
                   [&network, packet, what, status] { answered(network, *packet, what, status); });
}

void Transport::datagram(Qp& qp, const Packet& packet) {
  const SendRequest& request = packet.request;
  if (request.to_key != qp.qkey || qp.receives.empty()) return;
  const ReceiveRequest receive = qp.receives.front();
  qp.receives.pop_front();
  ibv_wc wc{};
  wc.wr_id = receive.id;
  wc.opcode = IBV_WC_RECV;
  wc.src_qp = packet.from;
  wc.wc_flags = IBV_WC_GRH;
  wc.byte_len = static_cast<std::uint32_t>(packet.payload.size() + kGrh);
  if (receive.count == 0 || receive.piece.length < wc.byte_len ||
      local(qp.nic(), receive.piece, qp.raw.pd, IBV_ACCESS_LOCAL_WRITE) == nullptr) {
    wc.status = IBV_WC_LOC_LEN_ERR;
  } else {
    auto* to = reinterpret_cast<std::byte*>(receive.piece.addr);
    std::memset(to, 0, kGrh);
    std::memcpy(to + kGrh, packet.payload.data(), packet.payload.size());
  }
  complete(qp, qp.recv_cq(), wc);
}

}  // namespace gdrx::sim
