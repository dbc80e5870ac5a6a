// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/rail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "transport/verbs/pci_place.hpp"

namespace gdrx::verbs {
namespace {

constexpr std::size_t kControlSlots = 64;  // datagrams posted each way
constexpr std::size_t kControlSlot = 256;
static_assert(kGrhBytes + sizeof(Control) <= kControlSlot);
constexpr std::uint64_t kReceiveMark = 1ULL << 32;
// Of one write. The specification allows 2 GiB (9.2.5); a length of 32 bits wraps at 4.
constexpr Bytes kLongestWrite = Bytes{1} << 30;
constexpr Bytes kLeastLongest = Bytes{64} << 10;  // whatever a driver says of itself
constexpr int kQueueEntries = 4096;  // of the first completion queue; more QPs get another one
constexpr int kQueueGrowth = 8;      // each as large as so many of the last: all are polled
constexpr int kMostQueueEntries = 1 << 22;

// Of soft-RoCE (rxe): the value for software that has no vendor's.
constexpr std::uint32_t kSoftVendor = 0xffffff;

// Of a write to a soft NIC. soft-RoCE hears one request to repeat between two acknowledgements, and
// waits for its time-out else. It is acknowledged at the end of each write.
constexpr Bytes kSoftPiece = Bytes{16} << 10;

std::uint32_t width_of(std::uint8_t code) {
  switch (code) {
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 1;
  }
}

// Mb/s of a lane, by ibv_port_attr::active_speed's bits (InfiniBand Architecture, PortInfo).
std::uint32_t lane_speed(std::uint8_t code) {
  switch (code) {
    case 1:
      return 2'500;
    case 2:
      return 5'000;
    case 4:
    case 8:
      return 10'000;
    case 16:
      return 14'000;
    case 32:
      return 25'000;
    case 64:
      return 50'000;
    case 128:
      return 100'000;
    default:
      return 10'000;
  }
}

}  // namespace

Result<std::unique_ptr<Rail>> Rail::open(std::shared_ptr<Context> context, std::uint8_t port,
                                         const Options& options, std::uint32_t qkey) {
  auto rail = std::unique_ptr<Rail>(new Rail(std::move(context), port, options));
  GDRX_TRY(rail->read_port());
  rail->domain_ = GDRX_TRY(ProtectionDomain::create(rail->context_));
  GDRX_TRY(rail->open_control(qkey));
  GDRX_TRY(rail->try_reliable());
  return rail;
}

// Some clouds' NICs have datagrams alone.
Result<void> Rail::try_reliable() {
  constexpr QpLimits kLeast{1, 1, 0};
  auto made = make_qp(kLeast);
  if (made) {
    destroy_qp(*made, kLeast);
  } else if (refused_for_good(made.error().native)) {
    return fail(Errc::unsupported, fmt::format("{} has no reliable connections: {}", name(),
                                               gdrx::describe(made.error())));
  }
  return {};
}

Result<std::optional<Gid>> Rail::pick_gid(const std::vector<Gid>& gids, bool ethernet) const {
  std::optional<Gid> gid = choose_gid(gids, ethernet, options_.gid);
  if (const auto wanted = options_.gid_indexes.of(context_->name(), port_)) {
    const auto found = std::find_if(gids.begin(), gids.end(),
                                    [&](const Gid& entry) { return entry.index == *wanted; });
    if (found == gids.end() || is_zero(found->raw)) {
      return fail(Errc::invalid_argument,
                  fmt::format("GDRX_GID_INDEX or NCCL_IB_GID_INDEX wants entry {} of {} port {}, "
                              "which is empty or cannot be read: show_gids lists them",
                              *wanted, context_->name(), port_));
    }
    gid = *found;
  }
  if (!gid && ethernet) {
    return fail(Errc::unsupported, fmt::format("{} port {} has no usable GID: give its network "
                                               "interface an address",
                                               context_->name(), port_));
  }
  return gid;
}

void Rail::set_address(const std::optional<Gid>& gid, const ibv_port_attr& port) {
  address_.lid = port.lid;
  if (!gid) return;
  gid_index_ = static_cast<std::uint8_t>(gid->index);
  std::copy_n(gid->raw.raw, 16, address_.gid.begin());
  // InfiniBand's subnet managers give each subnet its prefix, or leave all the same default.
  const int bits = address_.ethernet != 0 ? context_->verbs().subnet_bits(gid->raw) : 64;
  address_.subnet_bits = static_cast<std::uint8_t>(bits);
}

Result<void> Rail::read_port() {
  const ibv_port_attr port = GDRX_TRY(context_->query_port(port_));
  const bool ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  const std::vector<Gid> gids = context_->gids(port_, port.gid_tbl_len);
  const std::optional<Gid> gid = GDRX_TRY(pick_gid(gids, ethernet));
  soft_ = repeats_ = context_->attributes().vendor_id == kSoftVendor;
  adaptive_ = options_.adaptive_routing > 0 || (options_.adaptive_routing < 0 && !ethernet);
  grh_ = ethernet || options_.gid_indexes.of(context_->name(), port_).has_value();
  address_.ethernet = ethernet ? 1 : 0;
  set_address(gid, port);
  address_.mtu = static_cast<std::uint8_t>(port.active_mtu);
  pci_folder_ = context_->pci_folder();
  address_.speed = width_of(port.active_width) * lane_speed(port.active_speed);
  if (const std::uint32_t slot = slot_speed(pci_folder_); slot > 0) {
    address_.speed = std::min(address_.speed, slot);
  }
  const std::string name = fmt::format("{}:{}", context_->name(), port_);
  std::copy_n(name.begin(), std::min(name.size(), address_.name.size() - 1), address_.name.begin());
  port_up_ = port.state == IBV_PORT_ACTIVE;
  longest_ = std::clamp(Bytes{port.max_msg_sz}, kLeastLongest, kLongestWrite);
  piece_ = soft_ ? kSoftPiece : longest_;
  return {};
}

Result<void> Rail::open_control(std::uint32_t qkey) {
  control_memory_ = GDRX_TRY(Buffer::create(2 * kControlSlots * kControlSlot));
  control_registration_ =
      GDRX_TRY(domain_->register_memory(control_memory_.bytes(), IBV_ACCESS_LOCAL_WRITE));
  control_queue_ = GDRX_TRY(CompletionQueue::create(context_, 2 * kControlSlots));
  QpLimits limits;
  limits.sends = limits.receives = kControlSlots;
  control_ = GDRX_TRY(QueuePair::create(domain_, control_queue_, IBV_QPT_UD, limits));
  GDRX_TRY(control_->to_init(port_, options_.pkey_index, qkey));
  for (std::size_t slot = 0; slot < kControlSlots; ++slot) post_control_receive(slot);
  GDRX_TRY(control_->activate());
  address_.control_qp = control_->number();
  address_.qkey = qkey;
  return {};
}

void Rail::post_control_receive(std::size_t slot) noexcept {
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(control_memory_.data() + slot * kControlSlot);
  piece.length = kControlSlot;
  piece.lkey = control_registration_->lkey();
  ibv_recv_wr request{};
  request.wr_id = kReceiveMark | slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  (void)control_->post(request);  // fails only when the NIC is gone, which its events tell
}

// A system may have no memory for a large one, or a limit below the NIC's.
Result<Rail::Shard*> Rail::add_shard(std::uint32_t need) {
  const int last = shards_.empty() ? 0 : shards_.back().queue->entries();
  const int wanted =
      last == 0 ? kQueueEntries : std::min(last, kMostQueueEntries / kQueueGrowth) * kQueueGrowth;
  const int least = static_cast<int>(need);
  const int most = context_->attributes().max_cqe;
  if (least > most) {
    return fail(Errc::unsupported,
                fmt::format("{} has completion queues of {} entries at most, and "
                            "a QP needs {}",
                            context_->name(), most, least));
  }
  for (int entries = std::clamp(std::min(wanted, queues_.refused / 2), least, most);;
       entries = std::max(least, entries / 2)) {
    auto queue = CompletionQueue::create(context_, entries);
    if (queue) return &shards_.emplace_back(Shard{std::move(*queue), 0});
    queues_.refused = std::min(queues_.refused, entries);
    if (entries > least) continue;
    return fail(queue.error().code,
                fmt::format("{}, of {} entries, which a QP needs", queue.error().what, least),
                queue.error().native);
  }
}

Result<RailQp> Rail::make_qp(const QpLimits& limits) {
  const std::uint32_t need = limits.sends + limits.receives;
  const auto found = std::find_if(shards_.begin(), shards_.end(), [&](const Shard& candidate) {
    return candidate.used + need <= static_cast<std::uint32_t>(candidate.queue->entries());
  });
  Shard* const shard = found != shards_.end() ? &*found : GDRX_TRY(add_shard(need));
  RailQp made;
  made.qp = GDRX_TRY(QueuePair::create(domain_, shard->queue, IBV_QPT_RC, limits));
  GDRX_TRY(made.qp->to_init(port_, options_.pkey_index, 0, IBV_ACCESS_REMOTE_WRITE));
  shard->used += need;
  made.queue = static_cast<std::size_t>(shard - shards_.data());
  return made;
}

void Rail::destroy_qp(RailQp& qp, const QpLimits& limits) noexcept {
  if (!qp.qp) return;
  qp.qp.reset();
  shards_[qp.queue].used -= limits.sends + limits.receives;
}

Result<std::unique_ptr<QueuePair>> Rail::make_loopback(std::shared_ptr<CompletionQueue> queue,
                                                       const QpLimits& limits) const {
  auto made = GDRX_TRY(QueuePair::create(domain_, std::move(queue), IBV_QPT_RC, limits));
  GDRX_TRY(made->to_init(port_, options_.pkey_index, 0, IBV_ACCESS_REMOTE_READ));
  QpRoute route;
  route.address = route_to(address_);
  route.peer_qp = made->number();
  route.mtu = static_cast<ibv_mtu>(address_.mtu);
  route.timeout = timeout();
  route.retries = options_.retries;
  GDRX_TRY(made->connect(route));
  return made;
}

ibv_ah_attr Rail::route_to(const RailAddress& peer) const noexcept {
  ibv_ah_attr route{};
  route.port_num = port_;
  route.sl = options_.service_level;
  route.dlid = peer.lid;
  if (grh_) {
    route.is_global = 1;
    std::copy(peer.gid.begin(), peer.gid.end(), route.grh.dgid.raw);
    route.grh.sgid_index = gid_index_;
    route.grh.hop_limit = 255;
    route.grh.traffic_class = options_.traffic_class;
  }
  return route;
}

int Rail::poll(std::span<ibv_wc> into, bool all) noexcept {
  if (broken_) return 0;
  int count = 0;
  const std::size_t queues = all ? shards_.size() : std::min<std::size_t>(1, shards_.size());
  for (std::size_t i = 0; i < queues; ++i) {
    queues_.turn = queues_.turn + 1 < shards_.size() ? queues_.turn + 1 : 0;
    const int polled =
        shards_[queues_.turn].queue->poll(into.subspan(static_cast<std::size_t>(count)));
    if (polled < 0) return polled;
    count += polled;
    if (count == static_cast<int>(into.size())) break;
  }
  if (all) quiet_ = count < static_cast<int>(into.size());
  return count;
}

void Rail::send(const AddressHandle& to, const RailAddress& peer, const Control& message) noexcept {
  if (dead_ || control_sent_ - control_done_ == kControlSlots) return;
  const std::size_t slot = control_sent_ % kControlSlots;
  std::byte* place = control_memory_.data() + (kControlSlots + slot) * kControlSlot;
  std::memcpy(place, &message, sizeof message);
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(place);
  piece.length = sizeof message;
  piece.lkey = control_registration_->lkey();
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.ud.ah = to.raw();
  request.wr.ud.remote_qpn = peer.control_qp;
  request.wr.ud.remote_qkey = peer.qkey;
  send_error_ = control_->post(request);
  if (send_error_ == 0) ++control_sent_;
}

std::string Rail::refusals() const {
  std::string text;
  if (send_error_ != 0) {
    text = fmt::format("; ibv_post_send of a datagram on {}: {}", name(),
                       std::generic_category().message(send_error_));
  }
  if (look_error_) text += "; " + gdrx::describe(*look_error_);
  return text;
}

bool Rail::receive(Control& message) noexcept {
  if (dead_) return false;
  ibv_wc done{};
  while (control_queue_->poll({&done, 1}) == 1) {
    if ((done.wr_id & kReceiveMark) == 0) {
      ++control_done_;
      continue;
    }
    if (done.status != IBV_WC_SUCCESS) continue;
    const std::size_t slot = done.wr_id % kReceiveMark;
    const std::span<const std::byte> bytes =
        control_memory_.bytes().subspan(slot * kControlSlot + kGrhBytes, kControlSlot - kGrhBytes);
    const bool whole = done.byte_len >= kGrhBytes && done.byte_len <= kControlSlot;
    auto decoded = whole ? decode_control(bytes.first(done.byte_len - kGrhBytes))
                         : Result<Control>(fail(Errc::protocol, ""));
    post_control_receive(slot);
    if (!decoded) continue;  // anybody may send a datagram: what is not ours is no event
    message = *decoded;
    return true;
  }
  return false;
}

}  // namespace gdrx::verbs
