// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <memory>

#include "net-conformance/driver/net.hpp"
#include "net-conformance/driver/notes.hpp"
#include "net-conformance/driver/versions.hpp"

namespace gdrx::conformance {

namespace {

constexpr int kMostGrouped = 64;  // receives of one irecv() that v8's narrow sizes have room for

template <int V>
class Adapter final : public Net {
 public:
  explicit Adapter(void* table) : t_(*static_cast<typename Version<V>::Table*>(table)) {}

  int version() const override { return V; }
  const char* name() const override { return t_.name; }
  const char* missing() const override;
  bool has(Optional member) const override;

  NetResult init(void** context, std::uint64_t comm_id, nccl::LogFunction log) override {
    note_call("init");
    if constexpr (V >= 11) {
      config_.traffic_class = nccl::kUndefined;
      return t_.init(context, comm_id, &config_, log, nullptr);
    } else if constexpr (V == 10) {
      return t_.init(log, nullptr);
    } else {
      return t_.init(log);
    }
  }
  NetResult finalize(void* context) override {
    note_call("finalize");
    if constexpr (V >= 11) {
      return t_.finalize(context);
    }
    return NetResult::success;
  }
  NetResult devices(int* count) override {
    note_call("devices");
    return t_.devices(count);
  }
  NetResult properties(int device, Properties* properties, bool* overrun) override;
  NetResult make_v_device(int* device, const nccl::VDevicePropsV12& parts) override;
  NetResult set_net_attr(void* context, nccl::NetAttributes* attributes) override {
    note_call("setNetAttr");
    if constexpr (V >= 11) {
      return t_.set_net_attr(context, attributes);
    }
    return NetResult::invalid_usage;
  }

  NetResult listen(void* context, int device, void* handle, void** comm) override {
    note_call("listen");
    if constexpr (V >= 11) {
      return t_.listen(context, device, handle, comm);
    } else {
      return t_.listen(device, handle, comm);
    }
  }
  NetResult connect(void* context, int device, void* handle, void** comm,
                    nccl::NetDeviceHandle** device_comm) override {
    note_call("connect");
    if constexpr (V >= 11) {
      return t_.connect(context, device, handle, comm, device_comm);
    } else if constexpr (V == 10) {
      return t_.connect(device, &config_, handle, comm, device_comm);
    } else {
      return t_.connect(device, handle, comm, device_comm);
    }
  }
  NetResult accept(void* listener, void** comm, nccl::NetDeviceHandle** device_comm) override {
    note_call("accept");
    return t_.accept(listener, comm, device_comm);
  }
  NetResult close_send(void* comm) override {
    note_call("closeSend");
    return t_.close_send(comm);
  }
  NetResult close_recv(void* comm) override {
    note_call("closeRecv");
    return t_.close_recv(comm);
  }
  NetResult close_listen(void* comm) override {
    note_call("closeListen");
    return t_.close_listen(comm);
  }

  NetResult reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle) override {
    note_call("regMr");
    return t_.reg_mr(comm, data, size, type, mhandle);
  }
  NetResult reg_mr_dma_buf(void* comm, void* data, std::size_t size, int type, std::uint64_t offset,
                           int fd, void** mhandle) override {
    note_call("regMrDmaBuf");
    return t_.reg_mr_dma_buf(comm, data, size, type, offset, fd, mhandle);
  }
  NetResult dereg_mr(void* comm, void* mhandle) override {
    note_call("deregMr");
    return t_.dereg_mr(comm, mhandle);
  }

  NetResult isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                  void** request) override {
    note_call("isend");
    const auto narrow = static_cast<typename Version<V>::Size>(size);
    if constexpr (V >= 10) {
      return t_.isend(comm, data, narrow, tag, mhandle, nullptr, request);
    } else {
      return t_.isend(comm, data, narrow, tag, mhandle, request);
    }
  }
  NetResult irecv(void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
                  void** request) override;
  NetResult iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                   void** request) override {
    note_call("iflush");
    return t_.iflush(comm, n, data, sizes, mhandles, request);
  }
  NetResult test(void* request, int* done, int* sizes) override {
    note_call("test");
    return t_.test(request, done, sizes);
  }
  NetResult irecv_consumed(void* comm, int n, void* request) override {
    note_call("irecvConsumed");
    return t_.irecv_consumed(comm, n, request);
  }

 private:
  typename Version<V>::Table& t_;
  nccl::CommConfig config_{nccl::kUndefined};
};

template <int V>
const char* Adapter<V>::missing() const {
  const auto null = [](auto* function) { return function == nullptr; };
  if constexpr (V >= 11) {
    if (null(t_.finalize)) return "finalize";
  }
  const struct {
    bool missing;
    const char* name;
  } members[] = {{null(t_.init), "init"},
                 {null(t_.devices), "devices"},
                 {null(t_.get_properties), "getProperties"},
                 {null(t_.listen), "listen"},
                 {null(t_.connect), "connect"},
                 {null(t_.accept), "accept"},
                 {null(t_.reg_mr), "regMr"},
                 {null(t_.dereg_mr), "deregMr"},
                 {null(t_.isend), "isend"},
                 {null(t_.irecv), "irecv"},
                 {null(t_.iflush), "iflush"},
                 {null(t_.test), "test"},
                 {null(t_.close_send), "closeSend"},
                 {null(t_.close_recv), "closeRecv"},
                 {null(t_.close_listen), "closeListen"}};
  for (const auto& member : members) {
    if (member.missing) return member.name;
  }
  return nullptr;
}

template <int V>
bool Adapter<V>::has(Optional member) const {
  switch (member) {
    case Optional::reg_mr_dma_buf:
      return t_.reg_mr_dma_buf != nullptr;
    case Optional::get_device_mr:
      return t_.get_device_mr != nullptr;
    case Optional::irecv_consumed:
      return t_.irecv_consumed != nullptr;
    case Optional::make_v_device:
      if constexpr (V >= 9) {
        return t_.make_v_device != nullptr;
      }
      return false;
    case Optional::set_net_attr:
      if constexpr (V >= 11) {
        return t_.set_net_attr != nullptr;
      }
      return false;
  }
  return false;
}

template <int V>
NetResult Adapter<V>::properties(int device, Properties* properties, bool* overrun) {
  note_call("getProperties");
  using Props = typename Version<V>::Props;
  constexpr unsigned char kCanary = 0xa5;
  struct {
    Props props;
    std::array<unsigned char, 64> after;
  } room{};
  room.after.fill(kCanary);
  const NetResult result = t_.get_properties(device, &room.props);
  *properties = widen<V>(device, room.props);
  *overrun = false;
  for (const unsigned char byte : room.after) {
    *overrun = *overrun || byte != kCanary;
  }
  return result;
}

template <int V>
NetResult Adapter<V>::make_v_device(int* device, const nccl::VDevicePropsV12& parts) {
  note_call("makeVDevice");
  if constexpr (V >= 9) {
    typename Version<V>::VDevice narrow{};
    narrow.ndevs = parts.ndevs;
    std::memcpy(narrow.devs, parts.devs, sizeof narrow.devs);
    return t_.make_v_device(device, &narrow);
  }
  return NetResult::invalid_usage;
}

template <int V>
NetResult Adapter<V>::irecv(void* comm, int n, void** data, std::size_t* sizes, int* tags,
                            void** mhandles, void** request) {
  note_call("irecv");
  if constexpr (V >= 10) {
    std::array<void*, kMostGrouped> profiler_handles{};
    return t_.irecv(comm, n, data, sizes, tags, mhandles, profiler_handles.data(), request);
  } else if constexpr (V == 9) {
    return t_.irecv(comm, n, data, sizes, tags, mhandles, request);
  } else {
    std::array<int, kMostGrouped> narrow{};
    for (int i = 0; i < n && i < kMostGrouped; ++i) {
      narrow[static_cast<std::size_t>(i)] = static_cast<int>(sizes[i]);
    }
    return t_.irecv(comm, n, data, narrow.data(), tags, mhandles, request);
  }
}

}  // namespace

std::unique_ptr<Net> adapt(int version, void* table) {
  switch (version) {
    case 8:
      return std::make_unique<Adapter<8>>(table);
    case 9:
      return std::make_unique<Adapter<9>>(table);
    case 10:
      return std::make_unique<Adapter<10>>(table);
    case 11:
      return std::make_unique<Adapter<11>>(table);
    case 12:
      return std::make_unique<Adapter<12>>(table);
    default:
      return nullptr;
  }
}

const char* to_string(NetResult result) noexcept {
  switch (result) {
    case NetResult::success:
      return "success";
    case NetResult::unhandled_cuda_error:
      return "unhandled CUDA error";
    case NetResult::system_error:
      return "system error";
    case NetResult::internal_error:
      return "internal error";
    case NetResult::invalid_argument:
      return "invalid argument";
    case NetResult::invalid_usage:
      return "invalid usage";
    case NetResult::remote_error:
      return "remote error";
    case NetResult::in_progress:
      return "in progress";
    case NetResult::timeout:
      return "timeout";
  }
  return "a result that NCCL does not know";
}

}  // namespace gdrx::conformance
