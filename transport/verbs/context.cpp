// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/context.hpp"

#include <cerrno>

namespace gdrx::verbs {

Result<std::shared_ptr<Context>> Context::open(std::shared_ptr<const VerbsTable> table,
                                               ibv_device* device) {
  const std::string name(device->name);
  ibv_context* raw = table->open_device(device);
  if (raw == nullptr) return fail(Errc::system, "ibv_open_device of " + name, errno);
  auto context = std::shared_ptr<Context>(new Context(std::move(table), raw, name));
  if (const int error = context->verbs().query_device(raw, &context->attributes_); error != 0) {
    return fail(Errc::system, "ibv_query_device of " + name, error);
  }
  if (const int error = context->verbs().set_nonblocking(raw); error != 0) {
    return fail(Errc::system, "asynchronous events of " + name, error);
  }
  return context;
}

Context::~Context() { table_->close_device(context_); }

Result<ibv_port_attr> Context::query_port(std::uint8_t port) const {
  ibv_port_attr attributes{};
  if (const int error = table_->query_port(context_, port, &attributes); error != 0) {
    return fail(Errc::system, "ibv_query_port of " + name_, error);
  }
  return attributes;
}

std::vector<Gid> Context::gids(std::uint8_t port, int table_length) const {
  std::vector<Gid> readable;
  for (int i = 0; i < table_length; ++i) {
    ibv_gid_entry entry{};
    const auto index = static_cast<std::uint32_t>(i);
    if (table_->query_gid(context_, port, index, &entry) != 0) continue;
    readable.push_back({index, entry.gid, entry.gid_type});
  }
  return readable;
}

std::optional<ibv_async_event> Context::next_event() const {
  ibv_async_event event{};
  if (table_->get_async_event(context_, &event) != 0) return std::nullopt;
  // At once: destroying a QP or CQ waits for the acknowledgement of its events.
  table_->ack_async_event(&event);
  return event;
}

void Context::pump_events() const {
  while (const auto event = next_event()) {
    for (EventSink* sink : sinks_) sink->on_event(*event);
  }
}

Result<std::shared_ptr<ProtectionDomain>> ProtectionDomain::create(
    std::shared_ptr<Context> context) {
  ibv_pd* pd = context->verbs().alloc_pd(context->raw());
  if (pd == nullptr) return fail(Errc::system, "ibv_alloc_pd on " + context->name(), errno);
  return std::shared_ptr<ProtectionDomain>(new ProtectionDomain(std::move(context), pd));
}

ProtectionDomain::~ProtectionDomain() { context_->verbs().dealloc_pd(pd_); }

Result<std::unique_ptr<Registration>> ProtectionDomain::register_memory(std::span<std::byte> bytes,
                                                                        int access) {
  ibv_mr* mr = context_->verbs().reg_mr(pd_, bytes.data(), bytes.size(), access);
  if (mr == nullptr) {
    return fail(
        Errc::system,
        "ibv_reg_mr of " + std::to_string(bytes.size()) + " bytes on " + context_->name() +
            (errno == ENOMEM ? " (is the limit of locked memory, ulimit -l, too low?)" : ""),
        errno);
  }
  return std::make_unique<Registration>(shared_from_this(), mr);
}

Result<std::unique_ptr<Registration>> ProtectionDomain::register_dma_buf(int fd, Bytes offset,
                                                                         std::span<std::byte> bytes,
                                                                         int access) {
  const VerbsTable& verbs = context_->verbs();
  if (!verbs.reg_dmabuf_mr) {
    return fail(Errc::unsupported, "libibverbs has no ibv_reg_dmabuf_mr: it is older than 34");
  }
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  ibv_mr* mr = verbs.reg_dmabuf_mr(pd_, offset, bytes.size(), address, fd, access);
  if (mr == nullptr) return fail(Errc::system, "ibv_reg_dmabuf_mr on " + context_->name(), errno);
  return std::make_unique<Registration>(shared_from_this(), mr);
}

Result<std::unique_ptr<AddressHandle>> ProtectionDomain::make_address(ibv_ah_attr attributes) {
  ibv_ah* ah = context_->verbs().create_ah(pd_, &attributes);
  if (ah == nullptr) return fail(Errc::system, "ibv_create_ah on " + context_->name(), errno);
  return std::make_unique<AddressHandle>(shared_from_this(), ah);
}

Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create(std::shared_ptr<Context> context,
                                                                 int entries) {
  ibv_cq* cq = context->verbs().create_cq(context->raw(), entries);
  if (cq == nullptr) return fail(Errc::system, "ibv_create_cq on " + context->name(), errno);
  const int made = cq->cqe;  // at least what was asked for
  return std::shared_ptr<CompletionQueue>(new CompletionQueue(std::move(context), cq, made));
}

}  // namespace gdrx::verbs
