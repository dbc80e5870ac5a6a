// SPDX-License-Identifier: Apache-2.0
// The line between gdrx and the simulated NIC, for those who count what gdrx alone does.
#pragma once

#include "tests/fabric/cluster.hpp"

namespace gdrx::sim {

/// Counts while an object says so; the NIC's side of the line never counts.
class Count {
 public:
  explicit Count(bool on) : before_(counting) { set(on); }
  ~Count() { set(before_); }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
  static inline bool counting = false;
  static inline void (*changed)() = nullptr;  // called when it begins and when it ends

 private:
  static void set(bool on) {
    if (counting == on) return;
    counting = on;
    if (changed != nullptr) changed();
  }
  bool before_;
};

inline ibv_context_ops& nic_calls() {
  static ibv_context_ops original;
  return original;
}

/// From here on calls of this host's NICs are beyond the line.
inline void draw_line(Host& host) {
  int count = 0;
  ibv_device** list = host.verbs->get_device_list(&count);
  for (int i = 0; i < count; ++i) {
    ibv_context* context = host.verbs->open_device(list[i]);
    nic_calls() = context->ops;
    context->ops.post_send = [](ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
      const Count off(false);
      return nic_calls().post_send(qp, request, bad);
    };
    context->ops.post_recv = [](ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
      const Count off(false);
      return nic_calls().post_recv(qp, request, bad);
    };
    context->ops.poll_cq = [](ibv_cq* cq, int entries, ibv_wc* into) {
      const Count off(false);
      return nic_calls().poll_cq(cq, entries, into);
    };
    host.verbs->close_device(context);
  }
  host.verbs->free_device_list(list);
  // The look at the NICs' events, every 10 ms, goes into the simulated NIC too.
  auto& table = const_cast<verbs::VerbsTable&>(*host.verbs);
  table.get_async_event = [event = table.get_async_event](ibv_context* context,
                                                          ibv_async_event* into) {
    const Count off(false);
    return event(context, into);
  };
  table.query_port = [port = table.query_port](ibv_context* context, std::uint8_t number,
                                               ibv_port_attr* attributes) {
    const Count off(false);
    return port(context, number, attributes);
  };
}

}  // namespace gdrx::sim
