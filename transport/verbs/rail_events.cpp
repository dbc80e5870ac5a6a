// SPDX-License-Identifier: Apache-2.0
// What a NIC says of itself while it is used: events, and looks at the port.
#include <fmt/format.h>

#include <algorithm>

#include "transport/verbs/rail.hpp"

namespace gdrx::verbs {
namespace {

// Between two looks at a port of which no event has told: some containers hide events.
constexpr std::chrono::seconds kLook{1};

bool is_of_a_qp(ibv_event_type type) noexcept {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
         type == IBV_EVENT_QP_ACCESS_ERR;
}

bool is_of_a_port(ibv_event_type type) noexcept {
  return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR ||
         type == IBV_EVENT_LID_CHANGE || type == IBV_EVENT_GID_CHANGE ||
         type == IBV_EVENT_SM_CHANGE || type == IBV_EVENT_PKEY_CHANGE ||
         type == IBV_EVENT_CLIENT_REREGISTER;
}

}  // namespace

bool Rail::has_queue(const ibv_cq* queue) const noexcept {
  return (control_queue_ && control_queue_->raw() == queue) ||
         std::any_of(shards_.begin(), shards_.end(),
                     [&](const Shard& shard) { return shard.queue->raw() == queue; });
}

// Of the whole NIC: what is another port's is left to that one.
void Rail::on_event(const ibv_async_event& event) {
  const ibv_event_type type = event.event_type;
  if (type == IBV_EVENT_DEVICE_FATAL) {
    failed_ = "its NIC reports a fatal error";
  } else if (type == IBV_EVENT_CQ_ERR) {
    if (!has_queue(event.element.cq)) return;
    failed_ = "its completion queue is broken";
    broken_ = true;
  } else if (is_of_a_qp(type)) {
    const std::uint32_t number = event.element.qp->qp_num;
    if (control_ && control_->number() == number) {
      failed_ = "its NIC reports an error of the QP for datagrams";
    } else {
      failed_qps_.push_back(number);
    }
  } else if (is_of_a_port(type) && event.element.port_num == port_) {
    look_ = true;
    if (type != IBV_EVENT_PORT_ERR) moved_ = true;
    if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE) {
      told_up_ = type == IBV_EVENT_PORT_ACTIVE;
    }
  }
}

void Rail::pump_events(const Log& log, Instant now, Helper& helper) {
  if (dead_) return;
  context_->pump_events();
  if (failed_ != nullptr) {
    log.warn("rail {} dead: {}", name(), failed_);
    dead_ = true;
    return;
  }
  take_look(log);
  if (looking_.pending() || (!look_ && now < next_look_)) return;
  look_ = false;
  next_look_ = now + kLook;
  looking_.ask(helper, [context = context_, port = port_, all = std::exchange(moved_, false)] {
    Look look{context->query_port(port), std::nullopt};
    if (look.port && all) look.gids = context->gids(port, look.port->gid_tbl_len);
    return look;
  });
  take_look(log);
}

void Rail::take_look(const Log& log) {
  const auto look = looking_.take();
  if (!look) return;
  const std::optional<bool> told = std::exchange(told_up_, std::nullopt);
  if (!look->port) {  // that says nothing of the port
    if (!look_error_) log.warn("rail {}: {}", name(), gdrx::describe(look->port.error()));
    look_error_ = look->port.error();
    if (told) set_port_up(*told, log);
    return;
  }
  look_error_.reset();
  const bool up = look->port->state == IBV_PORT_ACTIVE;
  if (up) follow_mtu(*look->port, log);
  if (up && look->gids) readdress(*look->port, *look->gids, log);
  if (up && !port_up_ && !look->gids) {  // with the addresses that it had, or with others
    look_ = moved_ = true;
    return;
  }
  set_port_up(up, log);
}

void Rail::set_port_up(bool up, const Log& log) {
  if (up == port_up_) return;
  port_up_ = up;
  if (up) {
    log.info("rail {}: port active", name());
  } else {
    log.warn("rail {}: port down", name());
  }
}

// As an interface's changes by hand. Both ends of a QP go by the smaller one.
void Rail::follow_mtu(const ibv_port_attr& port, const Log& log) {
  const auto mtu = static_cast<std::uint8_t>(port.active_mtu);
  if (mtu == address_.mtu || mtu < IBV_MTU_256 || mtu > IBV_MTU_4096) return;
  address_.mtu = mtu;
  ++address_.revision;
  log.warn("rail {}: its MTU has changed", name());
}

// What a port has no address for, an interface that is set up anew, has one later or never: it
// keeps the one that it had.
void Rail::readdress(const ibv_port_attr& port, const std::vector<Gid>& gids, const Log& log) {
  const auto gid = pick_gid(gids, address_.ethernet != 0);
  if (!gid) return;
  const bool same_gid =
      !*gid || ((*gid)->index == gid_index_ &&
                std::equal(address_.gid.begin(), address_.gid.end(), (*gid)->raw.raw));
  if (same_gid && port.lid == address_.lid) return;
  set_address(*gid, port);
  ++address_.revision;
  log.warn("rail {}: its address has changed", name());
}

}  // namespace gdrx::verbs
