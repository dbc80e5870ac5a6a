// SPDX-License-Identifier: Apache-2.0
// The sending half of the simulated HCA: posting, transmission, acknowledgements, time-outs.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/fabric/objects.hpp"

namespace gdrx::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kLatency = 2'000;         // ns
constexpr std::uint64_t kBytesPerMicro = 12'500;  // 100 Gb/s
constexpr microseconds kRnrWait{640};

}  // namespace

Qp* Transport::alive(Network& network, std::uint32_t number) {
  const auto found = network.qps_.find(number);
  return found == network.qps_.end() ? nullptr : found->second;
}

Nic* Transport::find(Network& network, const ibv_ah_attr& route) {
  for (auto& nics : network.hosts_) {
    for (auto& nic : nics) {
      const bool same = route.is_global != 0
                            ? std::memcmp(nic->gid.raw, route.grh.dgid.raw, 16) == 0
                            : nic->infiniband && nic->lid == route.dlid;
      if (same) return nic.get();
    }
  }
  return nullptr;
}

Nic* Transport::find(Network& network, const Frame::Gid& gid) {
  ibv_ah_attr route{};
  route.is_global = 1;
  std::copy(gid.begin(), gid.end(), route.grh.dgid.raw);
  return find(network, route);
}

void Transport::send_away(Network& network, const Packet& packet, const ibv_ah_attr& route) {
  if (route.is_global == 0) return;
  const SendRequest& request = packet.request;
  Frame frame;
  frame.kind = Frame::Kind::packet;
  frame.opcode = static_cast<std::uint8_t>(request.opcode);
  std::copy_n(route.grh.dgid.raw, frame.to.size(), frame.to.begin());
  std::copy_n(packet.source->gid.raw, frame.from.size(), frame.from.begin());
  frame.asker = packet.from;
  frame.asked = packet.to;
  frame.psn = request.psn;
  frame.imm = request.imm;
  frame.rkey = request.rkey;
  frame.to_key = request.to_key;
  frame.bytes = request.bytes;
  frame.payload = static_cast<std::uint32_t>(packet.payload.size());
  frame.address = request.address;
  network.bridge_->send(frame, packet.payload);
}

Mr* Transport::local(Nic& nic, const ibv_sge& piece, ibv_pd* pd, int access) {
  const auto found = nic.by_lkey.find(piece.lkey);
  if (found == nic.by_lkey.end()) return nullptr;
  Mr* mr = found->second;
  const auto base = reinterpret_cast<std::uintptr_t>(mr->raw.addr);
  const bool inside = piece.addr >= base && piece.addr - base <= mr->raw.length &&
                      piece.length <= mr->raw.length - (piece.addr - base);
  return inside && mr->raw.pd == pd && (mr->access & access) == access ? mr : nullptr;
}

int Transport::accept(Qp& qp, const ibv_send_wr& wr) {
  if (wr.num_sge > static_cast<int>(qp.cap.max_send_sge)) return EINVAL;
  SendRequest request;
  request.id = wr.wr_id;
  request.opcode = wr.opcode;
  request.signalled = qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  request.imm = wr.imm_data;
  request.count = wr.num_sge;
  std::uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    request.pieces[static_cast<std::size_t>(i)] = wr.sg_list[i];
    bytes += wr.sg_list[i].length;
  }
  if (bytes > qp.nic().max_message) return EINVAL;  // 9.2.5
  request.bytes = static_cast<std::uint32_t>(bytes);
  if (qp.raw.qp_type == IBV_QPT_UD) {
    if (wr.opcode != IBV_WR_SEND || wr.wr.ud.ah == nullptr || request.bytes > 4096) return EINVAL;
    request.to = reinterpret_cast<Ah*>(wr.wr.ud.ah)->attributes;
    request.to_qp = wr.wr.ud.remote_qpn;
    request.to_key = wr.wr.ud.remote_qkey;
  } else {
    request.address = wr.wr.rdma.remote_addr;
    request.rkey = wr.wr.rdma.rkey;
  }
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    if (request.bytes > qp.cap.max_inline_data || wr.opcode == IBV_WR_RDMA_READ) return EINVAL;
    request.inlined = true;
    std::size_t at = 0;
    for (int i = 0; i < wr.num_sge; ++i) {
      const auto* from = reinterpret_cast<const std::byte*>(wr.sg_list[i].addr);
      if (wr.sg_list[i].length > 0) {
        std::memcpy(request.inline_data.data() + at, from, wr.sg_list[i].length);
      }
      at += wr.sg_list[i].length;
    }
  }
  request.psn = qp.next_psn++;
  Network& network = *qp.nic().network;
  ++network.posted_.at(static_cast<std::size_t>(wr.opcode));
  if (wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) network.bytes_told_ += request.bytes;
  qp.sends.push_back(request);
  return 0;
}

int Transport::post_send(ibv_qp* raw, ibv_send_wr* requests, ibv_send_wr** bad) {
  auto& qp = *reinterpret_cast<Qp*>(raw);
  Network& network = *qp.nic().network;
  const std::lock_guard lock(network.mutex_);
  int error = network.refused(qp.nic().host, Verb::post_send);
  if (error != 0) *bad = requests;
  for (; error == 0 && requests != nullptr; requests = requests->next) {
    if (raw->state != IBV_QPS_RTS && raw->state != IBV_QPS_ERR) {
      error = EINVAL;
    } else if (qp.sends.size() >= qp.cap.max_send_wr || network.draw(Fault::post_fails)) {
      error = ENOMEM;
    } else {
      error = accept(qp, *requests);
    }
    if (error != 0) {
      *bad = requests;
      break;
    }
  }
  if (raw->state == IBV_QPS_ERR) {
    if (network.draw(Fault::unflushed)) qp.sends.clear();
    to_error(qp);  // flushes what was just posted
  } else {
    kick(qp);
  }
  return error;
}

void Transport::kick(Qp& qp) {
  while (qp.raw.state == IBV_QPS_RTS && !qp.waiting_rnr && qp.sent < qp.sends.size()) {
    SendRequest& request = qp.sends[qp.sent++];
    transmit(qp, request);  // may complete requests at once in live mode
    if (qp.raw.qp_type == IBV_QPT_UD && qp.raw.state == IBV_QPS_RTS) {
      acknowledged(qp, qp.sends.front().psn);
    }
  }
  if (qp.sent > 0) arm(qp);
}

void Transport::transmit(Qp& qp, SendRequest& request) {
  Nic& nic = qp.nic();
  Network& network = *nic.network;
  auto packet = std::make_shared<Packet>();
  if (!request.inlined) {
    const int access = request.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
    for (int i = 0; i < request.count; ++i) {
      const ibv_sge& piece = request.pieces[static_cast<std::size_t>(i)];
      if (piece.length > 0 && local(nic, piece, qp.raw.pd, access) == nullptr) {
        return fail(qp, IBV_WC_LOC_PROT_ERR);
      }
    }
  }
  if (request.opcode != IBV_WR_RDMA_READ) {
    packet->payload.resize(request.bytes);
    std::size_t at = 0;
    for (int i = 0; i < request.count; ++i) {
      const ibv_sge& piece = request.pieces[static_cast<std::size_t>(i)];
      const auto* from = request.inlined ? request.inline_data.data() + at
                                         : reinterpret_cast<const std::byte*>(piece.addr);
      const Mr* mr = request.inlined ? nullptr : local(nic, piece, qp.raw.pd, 0);
      if (!fetch(nic, mr, packet->payload.data() + at, from, piece.length)) {
        return fail(qp, IBV_WC_LOC_PROT_ERR);
      }
      at += piece.length;
    }
  }
  const bool datagram = qp.raw.qp_type == IBV_QPT_UD;
  packet->from = qp.raw.qp_num;
  packet->to = datagram ? request.to_qp : qp.peer;
  packet->source = &nic;
  const ibv_ah_attr& route = datagram ? request.to : qp.route;
  packet->target = find(network, route);
  packet->request = request;
  network.trace(6, qp.raw.qp_num, request.psn);
  network.bytes_moved_ += request.bytes;
  nic.sent += request.bytes;
  const bool away = packet->target == nullptr;
  if (!nic.usable() || (away && !network.bridge_) || qp.muted) return;
  if (!away && !nic.routed && packet->target->subnet != nic.subnet) return;
  if (datagram) {
    if (network.draw(Fault::drop_datagram)) return;
  } else {
    if (network.draw(Fault::ack_blackout)) qp.acks_lost = true;
    if (network.draw(Fault::drop_packet)) return;
  }
  if (away) return send_away(network, *packet, route);
  if (network.live()) return arrive(network, packet);
  nanoseconds in(kLatency + network.random_.below(kLatency) +
                 request.bytes * 1000 / kBytesPerMicro);
  if (network.draw(Fault::delay)) in += microseconds(network.random_.between(50, 3000));
  const auto go = [&network, packet] { arrive(network, packet); };
  if (datagram) {
    if (network.draw(Fault::late_datagram)) {
      in += milliseconds(network.random_.between(1, 60));
    }
    network.schedule(in, go);  // datagrams overtake each other
    if (network.draw(Fault::twice_datagram)) {
      network.schedule(in + microseconds(network.random_.between(10, 20'000)), go);
    }
    return;
  }
  if (network.draw(Fault::hold)) {
    qp.muted = true;
    return network.schedule(milliseconds(network.random_.between(5, 80)), go);
  }
  const Instant at = std::max(network.now() + in, qp.last_arrival);
  qp.last_arrival = at;
  if (request.bytes > 256 && request.opcode != IBV_WR_SEND && network.draw(Fault::scatter)) {
    const std::size_t cuts = network.random_.between(2, 6);
    for (std::size_t i = 0; i < cuts; ++i) {
      const std::size_t from = i * request.bytes / cuts;
      const std::size_t bytes = (i + 1) * request.bytes / cuts - from;
      const nanoseconds early(network.random_.below(static_cast<std::uint64_t>(in.count())));
      network.schedule(at - network.now() - early, [&network, packet, from, bytes] {
        Qp* there = packet->target->usable() ? alive(network, packet->to) : nullptr;
        if (there != nullptr && there->receiving() && there->peer == packet->from &&
            there->expected_psn <= packet->request.psn) {
          (void)land(*there, *packet, from, bytes);
        }
      });
    }
  }
  network.schedule(at - network.now(), go);
}

void Transport::arm(Qp& qp) {
  if (qp.timer_armed || qp.sends.empty() || qp.raw.qp_type == IBV_QPT_UD) return;
  qp.timer_armed = true;
  const std::uint64_t timer = ++qp.timer;
  Network& network = *qp.nic().network;
  network.schedule(nanoseconds(4096ULL << qp.timeout), [&network, number = qp.raw.qp_num, timer] {
    Qp* alive_qp = alive(network, number);
    if (alive_qp != nullptr && alive_qp->timer == timer) timed_out(*alive_qp);
  });
}

void Transport::timed_out(Qp& qp) {
  qp.timer_armed = false;
  if (qp.raw.state != IBV_QPS_RTS || qp.sends.empty()) return;
  if (qp.waiting_rnr) return arm(qp);
  qp.nic().network->trace(7, qp.raw.qp_num, qp.sends.front().psn);
  if (++qp.tries > qp.retries) return fail(qp, IBV_WC_RETRY_EXC_ERR);
  qp.sent = 0;  // from the oldest on, all again
  kick(qp);
}

// The peer's NIC has everything up to `psn`.
void Transport::acknowledged(Qp& qp, std::uint32_t psn) {
  if (qp.raw.state != IBV_QPS_RTS) return;
  bool any = false;
  while (!qp.sends.empty() && qp.sent > 0 &&
         static_cast<std::int32_t>(psn - qp.sends.front().psn) >= 0) {
    const SendRequest& request = qp.sends.front();
    if (request.opcode == IBV_WR_RDMA_READ && !request.answered) break;
    any = true;
    if (request.signalled) {
      ibv_wc wc{};
      wc.wr_id = request.id;
      wc.opcode = request.opcode == IBV_WR_SEND        ? IBV_WC_SEND
                  : request.opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
                                                       : IBV_WC_RDMA_WRITE;
      wc.byte_len = request.bytes;
      complete(qp, qp.send_cq(), wc);
      if (qp.raw.state != IBV_QPS_RTS) return;  // that overran the queue
    }
    qp.sends.pop_front();
    --qp.sent;
  }
  if (!any) return;
  qp.tries = qp.rnr_tries = 0;
  ++qp.timer;
  qp.timer_armed = false;
  arm(qp);
}

// The bytes of a read are here.
void Transport::store_read(Qp& qp, const Packet& packet) {
  for (SendRequest& request : qp.sends) {
    if (request.psn != packet.request.psn || request.answered) continue;
    if (request.opcode != IBV_WR_RDMA_READ || request.bytes != packet.payload.size()) continue;
    std::size_t at = 0;
    for (int i = 0; i < request.count; ++i) {
      const ibv_sge& piece = request.pieces[static_cast<std::size_t>(i)];
      (void)store(qp.nic(), local(qp.nic(), piece, qp.raw.pd, 0),
                  reinterpret_cast<std::byte*>(piece.addr), packet.payload.data() + at,
                  piece.length);
      at += piece.length;
    }
    request.answered = true;
  }
}

void Transport::not_ready(Qp& qp, std::uint32_t psn) {
  if (qp.waiting_rnr) return;
  acknowledged(qp, psn - 1);
  if (qp.sends.empty() || qp.sends.front().psn != psn) return;
  if (qp.rnr_retries < 7 && ++qp.rnr_tries > qp.rnr_retries) {
    return fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  }
  qp.waiting_rnr = true;
  Network& network = *qp.nic().network;
  network.schedule(kRnrWait, [&network, number = qp.raw.qp_num] {
    Qp* again = alive(network, number);
    if (again == nullptr || again->raw.state != IBV_QPS_RTS) return;
    again->waiting_rnr = false;
    again->sent = 0;
    kick(*again);
  });
}

// What the peer's NIC says of a packet, back at the NIC that sent it.
void Transport::answered(Network& network, Packet& packet, Frame::Kind what, ibv_wc_status status) {
  Qp* qp = packet.source->usable() ? alive(network, packet.from) : nullptr;
  if (qp == nullptr || qp->raw.state != IBV_QPS_RTS) return;
  const std::uint32_t psn = packet.request.psn;
  switch (what) {
    case Frame::Kind::acknowledged:
      if (qp->acks_lost || (packet.target != nullptr && !packet.target->usable())) return;
      if (packet.request.opcode == IBV_WR_RDMA_READ) store_read(*qp, packet);
      return acknowledged(*qp, psn);
    case Frame::Kind::refused:
      if (qp->sent == 0) return;
      acknowledged(*qp, psn - 1);
      if (!qp->sends.empty() && qp->sends.front().psn == psn) fail(*qp, status);
      return;
    case Frame::Kind::not_ready:
      return not_ready(*qp, psn);
    case Frame::Kind::packet:
      return;
  }
}

}  // namespace gdrx::sim
