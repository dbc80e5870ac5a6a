// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/refusals.hpp"

#include <cerrno>
#include <type_traits>

namespace gdrx::sim {
namespace {

// Puts the refusals of Network::fail_verb() in front of what `call` does.
template <class Value, class... Arguments>
void refuse(std::function<Value(Arguments...)>& call, Network& network, int host, Verb verb) {
  call = [&network, host, verb, real = call](Arguments... arguments) -> Value {
    const int error = network.refused(host, verb);
    if (error == 0) return real(arguments...);
    if constexpr (std::is_pointer_v<Value>) {
      errno = error;
      return nullptr;
    } else {
      return error;
    }
  };
}

}  // namespace

void refuse(verbs::VerbsTable& t, Network& network, int host) {
  refuse(t.get_device_list, network, host, Verb::get_device_list);
  refuse(t.open_device, network, host, Verb::open_device);
  refuse(t.query_device, network, host, Verb::query_device);
  refuse(t.set_nonblocking, network, host, Verb::set_nonblocking);
  refuse(t.query_port, network, host, Verb::query_port);
  refuse(t.alloc_pd, network, host, Verb::alloc_pd);
  refuse(t.reg_mr, network, host, Verb::reg_mr);
  refuse(t.reg_dmabuf_mr, network, host, Verb::reg_dmabuf_mr);
  refuse(t.create_cq, network, host, Verb::create_cq);
  refuse(t.create_qp, network, host, Verb::create_qp);
  refuse(t.modify_qp, network, host, Verb::modify_qp);
  refuse(t.create_ah, network, host, Verb::create_ah);
}

}  // namespace gdrx::sim
