// SPDX-License-Identifier: Apache-2.0
// The simulated HCA's objects. The ibv_ structure comes first in each, so that a pointer to it is a
// pointer to the object.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tests/fabric/network.hpp"

namespace gdrx::sim {

struct Mr {
  ibv_mr raw{};
  int access = 0;
  bool gpu = false;
};

/// Bytes on their way over PCIe into a GPU.
struct Held {
  std::byte* to = nullptr;
  std::vector<std::byte> bytes;
};

struct Nic {
  ibv_device device{};
  ibv_context context{};
  Network* network = nullptr;
  int host = 0;
  int number = 0;
  bool infiniband = false;
  bool up = true;
  bool dead = false;
  bool cut = false;    // nothing passes, and the port does not know
  int down_count = 0;  // outages that overlap
  int max_inline = 256;
  std::uint32_t max_message = 0;
  int subnet = 0;
  bool routed = true;
  std::uint32_t ece = 0;
  bool dma_buf = true;
  bool peermem = true;
  bool repeats = false;
  bool soft = false;
  bool reliable = true;
  std::string pci_folder;
  std::uint64_t sent = 0;  // bytes of requests
  std::deque<Held> held;   // oldest first
  ibv_gid gid{};
  std::uint16_t lid = 0;
  std::deque<ibv_async_event> events;
  std::unordered_map<std::uint32_t, Mr*> by_lkey;
  std::unordered_map<std::uint32_t, Mr*> by_rkey;

  static Nic& of(ibv_context* context) noexcept {
    return *reinterpret_cast<Nic*>(reinterpret_cast<char*>(context) - offsetof(Nic, context));
  }
  static const Nic& of(const ibv_device* device) noexcept {
    return *reinterpret_cast<const Nic*>(reinterpret_cast<const char*>(device) -
                                         offsetof(Nic, device));
  }
  bool usable() const noexcept { return up && !dead && !cut; }
  void tell(ibv_event_type type, ibv_qp* qp = nullptr, ibv_cq* cq = nullptr);
};

struct Pd {
  ibv_pd raw{};
  int users = 0;
};

struct Cq {
  ibv_cq raw{};
  int users = 0;
  struct Entry {
    ibv_wc wc{};
    Instant visible{};
  };
  std::deque<Entry> entries;
  Instant last_visible{};
  bool overrun = false;
};

struct Ah {
  ibv_ah raw{};
  ibv_ah_attr attributes{};
};

struct SendRequest {
  std::uint64_t id = 0;
  ibv_wr_opcode opcode{};
  bool signalled = false;
  std::uint32_t psn = 0;
  std::uint32_t imm = 0;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::array<ibv_sge, 4> pieces{};
  int count = 0;
  bool inlined = false;
  std::array<std::byte, 256> inline_data{};
  std::uint32_t bytes = 0;
  bool answered = false;  // a read's bytes are here
  // datagrams
  ibv_ah_attr to{};
  std::uint32_t to_qp = 0;
  std::uint32_t to_key = 0;
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  ibv_sge piece{};
  int count = 0;
};

struct Qp {
  ibv_qp raw{};
  ibv_qp_cap cap{};
  bool signal_all = false;
  int access = 0;
  std::uint8_t port = 0;
  std::uint32_t qkey = 0;
  ibv_ah_attr route{};
  std::uint32_t peer = 0;
  std::uint32_t ece = 0;
  std::uint32_t timeout = 14;
  int retries = 7;
  int rnr_retries = 7;
  std::deque<SendRequest> sends;  // not acknowledged, oldest first
  std::size_t sent = 0;           // of these, on their way
  std::deque<ReceiveRequest> receives;
  std::uint32_t next_psn = 0;      // of the next send
  std::uint32_t expected_psn = 0;  // of the next packet to come
  int tries = 0;
  int rnr_tries = 0;
  std::uint64_t timer = 0;  // an older timer that fires is none of ours
  bool timer_armed = false;
  bool waiting_rnr = false;
  bool acks_lost = false;  // fault: none comes back, for the QP's life
  bool muted = false;      // fault: nothing but what is held in the switch arrives
  int repeating = 0;       // fault: acknowledgements wait until what is delivered again has been
  Instant last_arrival{};
  Instant last_ack{};

  Nic& nic() const noexcept { return Nic::of(raw.context); }
  Cq& send_cq() const noexcept { return *reinterpret_cast<Cq*>(raw.send_cq); }
  Cq& recv_cq() const noexcept { return *reinterpret_cast<Cq*>(raw.recv_cq); }
  bool receiving() const noexcept { return raw.state == IBV_QPS_RTR || raw.state == IBV_QPS_RTS; }
};

/// What is on the wire.
struct Packet {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Nic* source = nullptr;  // or target: of another process, if there is none
  Nic* target = nullptr;
  Frame::Gid away{};  // the source of another process
  SendRequest request;
  std::vector<std::byte> payload;
};

/// What QPs do. All with the network's lock held in live mode.
struct Transport {
  static int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad);
  static int post_recv(ibv_qp* qp, ibv_recv_wr* requests, ibv_recv_wr** bad);
  static int poll(ibv_cq* cq, int count, ibv_wc* into);

  static int accept(Qp& qp, const ibv_send_wr& request);
  static void kick(Qp& qp);
  static void transmit(Qp& qp, SendRequest& request);
  static void arrive(Network& network, const std::shared_ptr<Packet>& packet);
  static void execute(Qp& qp, const std::shared_ptr<Packet>& packet);
  static void datagram(Qp& qp, const Packet& packet);
  static void repeat_later(Qp& qp, const Packet& packet);
  static void repeat(Qp& qp, const Packet& packet);
  static ibv_wc_status land(Qp& qp, const Packet& packet, std::size_t from, std::size_t bytes);
  static bool fetch(Nic& nic, const Mr* mr, std::byte* to, const std::byte* from, std::size_t n);
  static bool store(Nic& nic, const Mr* mr, std::byte* to, const std::byte* from, std::size_t n);
  static void push_held(Nic& nic);
  static ibv_wc_status read(Qp& qp, Packet& packet);
  static void acknowledge(Network& network, const std::shared_ptr<Packet>& packet);
  static void answer(Network& network, const std::shared_ptr<Packet>& packet, Frame::Kind what,
                     ibv_wc_status status, Duration in);
  static void answered(Network& network, Packet& packet, Frame::Kind what, ibv_wc_status status);
  static void acknowledged(Qp& qp, std::uint32_t psn);
  static void store_read(Qp& qp, const Packet& packet);
  static void not_ready(Qp& qp, std::uint32_t psn);
  static void arm(Qp& qp);
  static void timed_out(Qp& qp);
  static void complete(Qp& qp, Cq& cq, ibv_wc wc);
  static void fail(Qp& qp, ibv_wc_status status);
  static void to_error(Qp& qp);
  static Nic* find(Network& network, const ibv_ah_attr& route);
  static Nic* find(Network& network, const Frame::Gid& gid);
  static void send_away(Network& network, const Packet& packet, const ibv_ah_attr& route);
  static Mr* local(Nic& nic, const ibv_sge& piece, ibv_pd* pd, int access);
  static Qp* alive(Network& network, std::uint32_t number);
};

}  // namespace gdrx::sim
