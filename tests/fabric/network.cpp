// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/network.hpp"

#include "tests/fabric/control_verbs.hpp"
#include "tests/fabric/objects.hpp"

namespace gdrx::sim {

// As many as have an address each, and a LID.
constexpr int kMostHosts = 4096;

std::string_view to_string(Fault fault) noexcept {
  constexpr std::array<std::string_view, kFaults> kNames{
      "delay",           "drop_packet",  "drop_ack",      "ack_blackout",    "hold",
      "scatter",         "rnr",          "drop_datagram", "twice_datagram",  "late_datagram",
      "late_completion", "link_flap",    "outage",        "blackout",        "dark",
      "qp_fatal",        "device_fatal", "unflushed",     "create_qp_fails", "post_fails",
      "gpu_hold",        "slow_host",    "stall",         "repeat",          "verb_fails"};
  return kNames.at(static_cast<std::size_t>(fault));
}

std::string_view to_string(Verb verb) noexcept {
  constexpr std::array<std::string_view, kVerbs> kNames{
      "ibv_get_device_list", "ibv_open_device", "ibv_query_device", "asynchronous events",
      "ibv_query_port",      "ibv_alloc_pd",    "ibv_reg_mr",       "ibv_reg_dmabuf_mr",
      "ibv_create_cq",       "ibv_create_qp",   "ibv_modify_qp",    "ibv_create_ah",
      "ibv_post_send",       "ibv_post_recv",   "completion queue"};
  return kNames.at(static_cast<std::size_t>(verb));
}

int Network::refused(int host, Verb verb) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(host);
  if (found == failures_.end() || found->second.first.verb != verb) return 0;
  auto& [failure, calls] = found->second;
  ++calls;
  if (calls < failure.nth || calls - failure.nth >= failure.times) return 0;
  count(Fault::verb_fails);
  return failure.error;
}

Network::Network(Mode mode, std::uint64_t seed) : mode_(mode), random_(seed) {}
Network::~Network() = default;

const Clock& Network::clock() const noexcept {
  return live() ? steady_clock() : static_cast<const Clock&>(virtual_clock_);
}

Result<int> Network::claim_place() {
  if (!bridge_) {
    bridge_ =
        GDRX_TRY(Bridge::create(joined_, [this](const Frame& frame, std::vector<std::byte> b) {
          deliver(frame, std::move(b));
        }));
  }
  const int place = GDRX_TRY(bridge_->claim());
  ++bridged_;
  return place;
}

void Network::release_place(int host, int place) {
  std::unique_ptr<Bridge> last;  // ends without the lock, for which its thread may wait
  const std::lock_guard lock(mutex_);
  for (auto& nic : hosts_[static_cast<std::size_t>(host)]) nic->gid = {};
  bridge_->release(place);
  if (--bridged_ == 0) last = std::move(bridge_);
}

std::shared_ptr<const verbs::VerbsTable> Network::add_host(const NicSettings& settings) {
  const std::lock_guard lock(mutex_);
  const int host = static_cast<int>(hosts_.size());
  int number = host;  // in the whole network
  if (!joined_.empty()) {
    const auto claimed = claim_place();
    if (!claimed) return nullptr;
    number = *claimed;
  }
  if (number >= kMostHosts) return nullptr;
  auto& nics = hosts_.emplace_back();
  for (int i = 0; i < settings.nics; ++i) {
    auto nic = std::make_unique<Nic>();
    nic->network = this;
    nic->host = host;
    nic->number = i;
    nic->infiniband = settings.infiniband;
    nic->max_inline = settings.max_inline;
    nic->max_message = settings.max_message;
    nic->subnet = (settings.first_subnet + i) % settings.nics;
    nic->routed = settings.routed;
    nic->dma_buf = settings.dma_buf;
    nic->ece = settings.ece;
    nic->peermem = settings.peermem;
    nic->repeats = settings.repeats;
    nic->soft = settings.soft;
    nic->reliable = (settings.unreliable >> i & 1) == 0;
    const auto at = static_cast<std::size_t>(i);
    if (at < settings.pci_folders.size()) nic->pci_folder = settings.pci_folders[at];
    std::snprintf(nic->device.name, sizeof nic->device.name, "sim%d", i);
    nic->context.device = &nic->device;
    nic->context.ops.post_send = &Transport::post_send;
    nic->context.ops.post_recv = &Transport::post_recv;
    nic->context.ops.poll_cq = &Transport::poll;
    // ::ffff:10.<subnet>.<host>.<which 256 hosts>: with room for a port that moves.
    nic->gid.raw[10] = nic->gid.raw[11] = 0xff;
    nic->gid.raw[12] = 10;
    nic->gid.raw[13] = static_cast<std::uint8_t>(nic->subnet);
    nic->gid.raw[14] = static_cast<std::uint8_t>(number % 256);
    nic->gid.raw[15] = static_cast<std::uint8_t>(1 + number / 256 * 16);
    nic->lid = static_cast<std::uint16_t>(1 + number * 16 + i);
    nics.push_back(std::move(nic));
  }
  auto verbs = make_control_verbs(*this, host);
  if (joined_.empty()) return verbs;
  const auto release = [this, host, number, verbs](const verbs::VerbsTable*) {
    release_place(host, number);
  };
  return {verbs.get(), release};
}

void Network::set_fault(Fault fault, double probability) noexcept {
  probability_[static_cast<std::size_t>(fault)] = probability;
}

bool Network::draw(Fault fault) noexcept {
  const double probability = probability_[static_cast<std::size_t>(fault)];
  if (probability <= 0 || !random_.chance(probability)) return false;
  count(fault);
  return true;
}

void Network::stop_faults() noexcept {
  probability_.fill(0);
  for (auto& nics : hosts_) {
    for (auto& nic : nics) nic->down_count = 0;
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    for (auto& nic : hosts_[host]) {
      if (!nic->up) {
        nic->up = true;
        nic->tell(IBV_EVENT_PORT_ACTIVE);
      }
    }
  }
  for (auto& [number, qp] : qps_) qp->acks_lost = qp->muted = false;
}

void Nic::tell(ibv_event_type type, ibv_qp* qp, ibv_cq* cq) {
  ibv_async_event event{};
  event.event_type = type;
  if (qp != nullptr) {
    event.element.qp = qp;
  } else if (cq != nullptr) {
    event.element.cq = cq;
  } else {
    event.element.port_num = 1;
  }
  events.push_back(event);
}

// Outages of a port may overlap: it is up when the last has ended.
void Network::set_port(int host, int nic, bool up) {
  const std::lock_guard lock(mutex_);
  Nic& which = *hosts_[static_cast<std::size_t>(host)][static_cast<std::size_t>(nic)];
  trace(1, static_cast<std::uint64_t>(host * 64 + nic), up ? 1 : 0);
  which.down_count = std::max(0, which.down_count + (up ? -1 : 1));
  const bool now_up = which.down_count == 0;
  if (now_up == which.up) return;
  which.up = now_up;
  which.tell(now_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void Network::move_port(int host, int nic) {
  const std::lock_guard lock(mutex_);
  Nic& which = *hosts_[static_cast<std::size_t>(host)][static_cast<std::size_t>(nic)];
  ++which.gid.raw[15];
  which.lid = static_cast<std::uint16_t>(which.lid + 0x100);
  which.tell(which.infiniband ? IBV_EVENT_LID_CHANGE : IBV_EVENT_GID_CHANGE);
}

void Network::kill_nic(int host, int nic) {
  const std::lock_guard lock(mutex_);
  Nic& which = *hosts_[static_cast<std::size_t>(host)][static_cast<std::size_t>(nic)];
  if (which.dead) return;
  trace(2, static_cast<std::uint64_t>(host * 64 + nic));
  which.dead = true;
  which.tell(IBV_EVENT_DEVICE_FATAL);
}

std::uint64_t Network::bytes_sent(int host, int nic) {
  const std::lock_guard lock(mutex_);
  return hosts_[static_cast<std::size_t>(host)][static_cast<std::size_t>(nic)]->sent;
}

void Network::cut(int host, int nic) {
  const std::lock_guard lock(mutex_);
  trace(9, static_cast<std::uint64_t>(host * 64 + nic));
  hosts_[static_cast<std::size_t>(host)][static_cast<std::size_t>(nic)]->cut = true;
}

void Network::break_qps(int host, int nic) {
  const std::lock_guard lock(mutex_);
  Nic& which = *hosts_[static_cast<std::size_t>(host)][static_cast<std::size_t>(nic)];
  for (auto& [number, qp] : qps_) {
    if (&qp->nic() != &which || qp->raw.qp_type != IBV_QPT_RC || qp->raw.state != IBV_QPS_RTS) {
      continue;
    }
    which.tell(IBV_EVENT_QP_FATAL, &qp->raw);
    Transport::to_error(*qp);
  }
}

std::set<std::uint32_t> Network::agreed_ece(int host) {
  const std::lock_guard lock(mutex_);
  std::set<std::uint32_t> agreed;
  for (auto& [number, qp] : qps_) {
    if (qp->nic().host == host && qp->raw.qp_type == IBV_QPT_RC && qp->raw.state == IBV_QPS_RTS) {
      agreed.insert(qp->ece);
    }
  }
  return agreed;
}

std::multiset<unsigned> Network::qp_access(int host) {
  const std::lock_guard lock(mutex_);
  std::multiset<unsigned> found;
  for (auto& [number, qp] : qps_) {
    if (qp->nic().host == host && qp->raw.qp_type == IBV_QPT_RC) {
      found.insert(static_cast<unsigned>(qp->access));
    }
  }
  return found;
}

void Network::schedule(Duration in, std::function<void()> what) {
  events_.push({now() + in, order_++, std::move(what)});
}

void Network::run_due(Instant until) {
  while (!events_.empty() && events_.top().at <= until) {
    Event event = events_.top();
    events_.pop();
    virtual_clock_.advance_to(event.at);
    event.run();
  }
}

void Network::run_for(Duration by) {
  const Instant until = virtual_clock_.now() + by;
  run_due(until);
  virtual_clock_.advance_to(until);
}

void Network::deliver(const Frame& frame, std::vector<std::byte> payload) {
  const std::lock_guard lock(mutex_);
  Nic* here = Transport::find(*this, frame.to);
  if (here == nullptr || !bridge_ || frame.bytes > here->max_message) return;
  auto packet = std::make_shared<Packet>();
  packet->from = frame.asker;
  packet->to = frame.asked;
  packet->payload = std::move(payload);
  SendRequest& request = packet->request;
  request.opcode = static_cast<ibv_wr_opcode>(frame.opcode);
  request.psn = frame.psn;
  request.bytes = frame.bytes;
  if (frame.kind != Frame::Kind::packet) {
    packet->source = here;
    return Transport::answered(*this, *packet, frame.kind,
                               static_cast<ibv_wc_status>(frame.status));
  }
  const bool read = request.opcode == IBV_WR_RDMA_READ;
  if (!read && request.opcode != IBV_WR_SEND && request.opcode != IBV_WR_RDMA_WRITE &&
      request.opcode != IBV_WR_RDMA_WRITE_WITH_IMM) {
    return;
  }
  if (packet->payload.size() != (read ? 0 : frame.bytes)) return;
  packet->target = here;
  packet->away = frame.from;
  request.imm = frame.imm;
  request.rkey = frame.rkey;
  request.to_key = frame.to_key;
  request.address = frame.address;
  Transport::arrive(*this, packet);
}

void Network::trace(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  const auto time = static_cast<std::uint64_t>(now().time_since_epoch().count());
  for (const std::uint64_t word : {time, a, b, c}) {
    hash_ = (hash_ ^ word) * 1099511628211ULL;
    hash_ ^= hash_ >> 29;
  }
}

}  // namespace gdrx::sim
