// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/verbs_pair.hpp"

#include <cstring>

namespace gdrx::conformance {

Subject& subject() {
  static Subject one;
  return one;
}

Result<void> open_subject() {
  Subject& s = subject();
  if (s.device.empty()) {
    s.network = std::make_shared<sim::Network>(sim::Network::Mode::live);
    s.verbs = s.network->add_host();
  } else {
    s.verbs = GDRX_TRY(verbs::load_verbs());
  }
  int count = 0;
  ibv_device** list = s.verbs->get_device_list(&count);
  for (int i = 0; i < count && s.context == nullptr; ++i) {
    if (!s.device.empty() && s.device != list[i]->name) continue;
    s.context = GDRX_TRY(verbs::Context::open(s.verbs, list[i]));
  }
  if (list != nullptr) s.verbs->free_device_list(list);
  if (s.context == nullptr) return fail(Errc::unsupported, "no RDMA NIC " + s.device);
  const ibv_port_attr port = GDRX_TRY(s.context->query_port(s.port));
  const bool ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  const auto gid = verbs::choose_gid(s.context->gids(s.port, port.gid_tbl_len), ethernet);
  s.loopback.port_num = s.port;
  s.loopback.dlid = port.lid;
  s.loopback.is_global = ethernet ? 1 : 0;
  if (gid) {
    s.loopback.grh.dgid = gid->raw;
    s.loopback.grh.sgid_index = static_cast<std::uint8_t>(gid->index);
    s.loopback.grh.hop_limit = 64;
  }
  s.mtu = port.active_mtu;
  return {};
}

void VerbsPair::SetUp() {
  domain_ = *verbs::ProtectionDomain::create(subject().context);
  make(a_, IBV_QPT_RC);
  make(b_, IBV_QPT_RC);
  fill(a_, 1);
}

void VerbsPair::make(Side& side, ibv_qp_type type, int access) {
  side.qp.reset();
  side.registration = *domain_->register_memory(side.memory, access);
  side.queue = *verbs::CompletionQueue::create(subject().context, 64);
  auto qp = verbs::QueuePair::create(domain_, side.queue, type, kLimits);
  ASSERT_TRUE(qp.has_value()) << describe(qp.error());
  side.qp = std::move(*qp);
}

verbs::QpRoute VerbsPair::route(const Side& to) const {
  verbs::QpRoute made;
  made.address = subject().loopback;
  made.peer_qp = to.qp->number();
  made.peer_psn = made.psn = 77;
  made.mtu = subject().mtu;
  made.timeout = 10;
  made.retries = retries_;
  made.rnr_retries = rnr_retries_;
  return made;
}

void VerbsPair::connect() {
  for (Side* side : {&a_, &b_}) {
    ASSERT_TRUE(side->qp->to_init(subject().port, 0, 0, kEverything).has_value());
  }
  ASSERT_TRUE(a_.qp->connect(route(b_)).has_value());
  ASSERT_TRUE(b_.qp->connect(route(a_)).has_value());
}

ibv_wc VerbsPair::wait(Side& side, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  ibv_wc done{};
  do {
    if (side.queue->poll({&done, 1}) == 1) return done;
  } while (std::chrono::steady_clock::now() < end);
  ADD_FAILURE() << "no completion came";
  done.status = IBV_WC_GENERAL_ERR;
  return done;
}

bool VerbsPair::quiet(Side& side, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  ibv_wc done{};
  do {
    if (side.queue->poll({&done, 1}) != 0) return false;
  } while (std::chrono::steady_clock::now() < end);
  return true;
}

void VerbsPair::receive(Side& side, std::uint64_t id, std::size_t offset, std::size_t bytes) {
  ibv_sge piece = side.piece(offset, bytes);
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = &piece;
  request.num_sge = 1;
  ASSERT_EQ(side.qp->post(request), 0);
}

int VerbsPair::post(const Write& write) {
  ibv_sge piece = a_.piece(write.from, write.bytes);
  ibv_send_wr request{};
  request.wr_id = write.id;
  request.opcode = write.opcode;
  request.send_flags = static_cast<unsigned>(write.flags);
  request.sg_list = &piece;
  request.num_sge = write.bytes > 0 ? 1 : 0;
  request.imm_data = htobe32(write.immediate);
  request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(b_.memory.data()) + write.to;
  request.wr.rdma.rkey = b_.registration->rkey() ^ write.rkey_change;
  return a_.qp->post(request);
}

void VerbsPair::fill(Side& side, unsigned seed) {
  for (std::size_t i = 0; i < side.memory.size(); ++i) {
    side.memory[i] = static_cast<std::byte>((i * 31 + seed * 7) & 0xff);
  }
}

}  // namespace gdrx::conformance
