// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/nic_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tools/perf/far_port.hpp"

namespace gdrx::perf {
namespace {

constexpr std::uint8_t kHopLimit = 64;

Result<std::shared_ptr<verbs::Context>> open_named(
    const std::shared_ptr<const verbs::VerbsTable>& table, const std::string& name) {
  int count = 0;
  ibv_device** list = table->get_device_list(&count);
  Result<std::shared_ptr<verbs::Context>> found =
      fail(Errc::invalid_argument, "no RDMA device " + name + " here");
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (name == static_cast<const char*>(list[i]->name)) {
      found = verbs::Context::open(table, list[i]);
    }
  }
  if (list != nullptr) table->free_device_list(list);
  return found;
}

std::vector<std::string> device_names(const verbs::VerbsTable& table) {
  std::vector<std::string> names;
  int count = 0;
  ibv_device** list = table.get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i) names.emplace_back(list[i]->name);
  if (list != nullptr) table.free_device_list(list);
  return names;
}

std::optional<std::uint8_t> first_up(const verbs::Context& context) {
  for (std::uint8_t port = 1; port <= context.attributes().phys_port_cnt; ++port) {
    const auto found = context.query_port(port);
    if (found && found->state == IBV_PORT_ACTIVE) return port;
  }
  return std::nullopt;
}

Result<ibv_mtu> mtu_of(const ibv_port_attr& port, int bytes) {
  if (bytes == 0) return port.active_mtu;
  for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; ++mtu) {
    if (128 << mtu != bytes) continue;
    if (mtu > port.active_mtu) break;
    return static_cast<ibv_mtu>(mtu);
  }
  return fail(Errc::invalid_argument,
              fmt::format("the port's packets have at most {} bytes", 128 << port.active_mtu));
}

}  // namespace

Result<std::shared_ptr<NicPort>> NicPort::open(std::shared_ptr<const verbs::VerbsTable> table,
                                               const PortChoice& choice) {
  std::vector<std::string> names{choice.device};
  if (choice.device.empty()) names = device_names(*table);
  if (names.empty()) return fail(Errc::unsupported, "this host has no RDMA device");
  Result<std::shared_ptr<NicPort>> last = fail(Errc::unsupported, "no RDMA port is up");
  for (const std::string& name : names) {
    auto context = open_named(table, name);
    if (!context) {
      last = tl::unexpected(context.error());
      continue;
    }
    const auto up = first_up(**context);
    if (choice.port == 0 && !up) {
      last = fail(Errc::unsupported, name + ": no port of it is up");
      continue;
    }
    std::shared_ptr<NicPort> port(new NicPort);
    port->port_ = choice.port != 0 ? choice.port : *up;
    const ibv_port_attr attributes = GDRX_TRY((*context)->query_port(port->port_));
    if (attributes.state != IBV_PORT_ACTIVE) {
      return fail(Errc::unsupported, fmt::format("{} port {} is not up", name, port->port_));
    }
    port->domain_ = GDRX_TRY(verbs::ProtectionDomain::create(*std::move(context)));
    port->mtu_ = GDRX_TRY(mtu_of(attributes, choice.mtu));
    GDRX_TRY(port->find_address(attributes, choice));
    return port;
  }
  return last;
}

Result<void> NicPort::find_address(const ibv_port_attr& attributes, const PortChoice& choice) {
  const bool ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  address_.port_num = port_;
  address_.dlid = attributes.lid;
  if (!ethernet && !choice.gid_index) return {};
  auto gids = context().gids(port_, attributes.gid_tbl_len);
  if (choice.gid_index) {
    std::erase_if(gids, [&](const verbs::Gid& gid) { return gid.index != *choice.gid_index; });
  }
  const auto gid = verbs::choose_gid(gids, ethernet);
  if (!gid) {
    return fail(
        Errc::unsupported,
        fmt::format("{} port {} has no such GID: has its interface an address?", name(), port_));
  }
  address_.is_global = 1;
  address_.grh.dgid = gid->raw;
  address_.grh.sgid_index = static_cast<std::uint8_t>(gid->index);
  address_.grh.hop_limit = kHopLimit;
  gid_ = verbs::to_string(gid->raw);
  return {};
}

std::vector<PortChoice> ports_up(const std::shared_ptr<const verbs::VerbsTable>& table) {
  std::vector<PortChoice> found;
  int count = 0;
  ibv_device** list = table->get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i) {
    const auto context = verbs::Context::open(table, list[i]);
    if (!context) continue;  // uverbs-nodes says it
    for (std::uint8_t port = 1; port <= (*context)->attributes().phys_port_cnt; ++port) {
      const auto attributes = (*context)->query_port(port);
      if (!attributes || attributes->state != IBV_PORT_ACTIVE) continue;
      found.push_back({(*context)->name(), port, std::nullopt, 0});
    }
  }
  if (list != nullptr) table->free_device_list(list);
  return found;
}

Result<QpEnd> QpEnd::open(const NicPort& port, const PairOptions& options) {
  QpEnd end;
  end.queue = GDRX_TRY(verbs::CompletionQueue::create(port.domain()->context(),
                                                      static_cast<int>(options.depth) * 2));
  end.qp = GDRX_TRY(verbs::QueuePair::create(port.domain(), end.queue, IBV_QPT_RC,
                                             {options.depth, 1, options.inline_bytes}));
  GDRX_TRY(end.qp->to_init(port.port(), 0, 0, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
  return end;
}

Result<std::unique_ptr<QpPair>> QpPair::connect(const NicPort& here, const NicPort& there,
                                                const PairOptions& options) {
  auto pair = std::make_unique<QpPair>();
  pair->here = GDRX_TRY(QpEnd::open(here, options));
  pair->there = GDRX_TRY(QpEnd::open(there, options));
  verbs::QueuePair& near = *pair->here.qp;
  verbs::QueuePair& far = *pair->there.qp;
  GDRX_TRY(near.connect(GDRX_TRY(route(here, far_port(there), far.number(), options))));
  GDRX_TRY(far.connect(GDRX_TRY(route(there, far_port(here), near.number(), options))));
  return pair;
}

std::string completion_problem(const ibv_wc& completion) {
  struct Text {
    ibv_wc_status status;
    const char* text;
  };
  constexpr std::array kTexts{
      Text{IBV_WC_LOC_PROT_ERR, "local protection error: the memory is not what was registered"},
      Text{IBV_WC_REM_ACCESS_ERR, "remote access error"},
      Text{IBV_WC_REM_OP_ERR, "remote operation error: the target could not be reached by the NIC"},
      Text{IBV_WC_LOC_QP_OP_ERR, "local operation error"},
      Text{IBV_WC_RETRY_EXC_ERR, "no answer after all retries: wrong GID, a firewall, or no route"},
      Text{IBV_WC_WR_FLUSH_ERR, "flushed after an earlier error"}};
  for (const Text& one : kTexts) {
    if (one.status == completion.status) {
      return fmt::format("completion status {} ({})", static_cast<int>(completion.status),
                         one.text);
    }
  }
  return fmt::format("completion status {}", static_cast<int>(completion.status));
}

}  // namespace gdrx::perf
