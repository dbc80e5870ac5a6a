// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/driver/link.hpp"

#include <thread>
#include <utility>

#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

Comm& Comm::operator=(Comm&& other) noexcept {
  if (this != &other) {
    close();
    session_ = other.session_;
    kind_ = other.kind_;
    comm_ = std::exchange(other.comm_, nullptr);
  }
  return *this;
}

NetResult Comm::close() noexcept {
  if (comm_ == nullptr) {
    return NetResult::success;
  }
  void* comm = std::exchange(comm_, nullptr);
  switch (kind_) {
    case Kind::listen:
      return session_->net().close_listen(comm);
    case Kind::send:
      return session_->net().close_send(comm);
    case Kind::recv:
      return session_->net().close_recv(comm);
  }
  return NetResult::success;
}

Result<Comm> listen(Session& session, Handle& handle) {
  void* const context = GDRX_TRY(session.listening_context());
  void* comm = nullptr;
  NetResult listened = NetResult::internal_error;
  const auto call = [&] {
    listened = session.net().listen(context, session.device(), handle.bytes.data(), &comm);
  };
  if (session.options().apart && context == nullptr) {
    std::jthread(call).join();  // before v11 a communicator is known by its service thread
  } else {
    call();
  }
  GDRX_TRY(succeeds(listened, "listen"));
  if (comm == nullptr) {
    return broken("listen returned success and no communicator");
  }
  return Comm(session, Comm::Kind::listen, comm);
}

Result<Comm> try_connect(Session& session, Handle& handle) {
  void* comm = nullptr;
  nccl::NetDeviceHandle* device_comm = nullptr;
  GDRX_TRY(succeeds(session.net().connect(session.context(), session.device(), handle.bytes.data(),
                                          &comm, &device_comm),
                    "connect"));
  return Comm(session, Comm::Kind::send, comm);
}

Result<Comm> try_accept(Session& session, const Comm& listener) {
  void* comm = nullptr;
  nccl::NetDeviceHandle* device_comm = nullptr;
  GDRX_TRY(succeeds(session.net().accept(listener.get(), &comm, &device_comm), "accept"));
  return Comm(session, Comm::Kind::recv, comm);
}

namespace {

template <class Attempt>
Result<Comm> insist(Duration limit, const char* what, Attempt attempt) {
  const Deadline deadline = Deadline::after(steady_clock(), limit);
  while (!deadline.passed(steady_clock().now())) {
    Comm comm = GDRX_TRY(attempt());
    if (comm) {
      return comm;
    }
    std::this_thread::yield();
  }
  return broken(what);
}

}  // namespace

Result<Comm> connect(Session& session, Handle& handle, Duration limit) {
  return insist(limit, "connect yielded no communicator in time",
                [&] { return try_connect(session, handle); });
}

Result<Comm> accept(Session& session, const Comm& listener, Duration limit) {
  return insist(limit, "accept yielded no communicator in time",
                [&] { return try_accept(session, listener); });
}

Result<Link> Link::open(Session& session) {
  Handle handle;
  const Comm listener = GDRX_TRY(prepared(listen(session, handle)));
  Link link;
  const Deadline deadline = Deadline::after(steady_clock(), g_patience);
  while (!link.send || !link.recv) {
    if (!link.send) {
      link.send = GDRX_TRY(prepared(try_connect(session, handle)));
    }
    if (!link.recv) {
      link.recv = GDRX_TRY(prepared(try_accept(session, listener)));
    }
    std::this_thread::yield();
    if (deadline.passed(steady_clock().now())) {
      return blocked("connect and accept, polled in turn, came to no end");
    }
  }
  return link;
}

}  // namespace gdrx::conformance
