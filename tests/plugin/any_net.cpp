// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/any_net.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace gdrx::test {
namespace {

template <class Net>
constexpr bool kHasContext = requires(Net net) {
  net.finalize;
};

template <class Net, class Props>
class NetOf final : public AnyNet {
 public:
  explicit NetOf(const Net* net) : net_(*net) {}
  std::string name() const override { return net_.name; }
  NetResult init(void** context, nccl::LogFunction log) override {
    nccl::CommConfig config{traffic_class};
    if constexpr (kHasContext<Net>) {
      return net_.init(context, 1, &config, log, nullptr);
    } else if constexpr (requires { net_.init(log, nullptr); }) {
      return net_.init(log, nullptr);
    } else {
      return net_.init(log);
    }
  }
  NetResult finalize(void* context) override {
    if constexpr (kHasContext<Net>) return net_.finalize(context);
    return NetResult::success;
  }
  NetResult devices(int* count) override { return net_.devices(count); }
  NetResult properties(int device, Properties* out) override {
    Props props{};
    const NetResult result = net_.get_properties(device, &props);
    if (result != NetResult::success) return result;
    *out = {props.name, props.ptr_support, props.max_comms, props.max_recvs, props.speed};
    out->reg_is_global = props.reg_is_global;
    if constexpr (requires { props.force_flush; }) out->force_flush = props.force_flush;
    if constexpr (requires { props.max_p2p_bytes; }) out->max_p2p_bytes = props.max_p2p_bytes;
    return result;
  }
  bool takes_hints() const override { return kHasContext<Net>; }
  NetResult set_net_attr(void* context, nccl::NetAttributes hints) override {
    if constexpr (kHasContext<Net>) return net_.set_net_attr(context, &hints);
    return NetResult::success;
  }
  NetResult listen(void* context, int device, void* handle, void** comm) override {
    if constexpr (kHasContext<Net>) {
      return net_.listen(context, device, handle, comm);
    } else {
      return net_.listen(device, handle, comm);
    }
  }
  NetResult connect(void* context, int device, void* handle, void** comm) override {
    nccl::NetDeviceHandle* none = nullptr;
    nccl::CommConfig config{traffic_class};
    if constexpr (kHasContext<Net>) {
      return net_.connect(context, device, handle, comm, &none);
    } else if constexpr (requires { net_.connect(device, &config, handle, comm, &none); }) {
      return net_.connect(device, &config, handle, comm, &none);
    } else {
      return net_.connect(device, handle, comm, &none);
    }
  }
  NetResult accept(void* listener, void** comm) override {
    nccl::NetDeviceHandle* none = nullptr;
    return net_.accept(listener, comm, &none);
  }
  NetResult reg_mr(void* comm, void* data, std::size_t size, int type, void** mr) override {
    return net_.reg_mr(comm, data, size, type, mr);
  }
  NetResult reg_mr_dma_buf(void* comm, void* data, std::size_t size, std::uint64_t offset, int fd,
                           void** mr) override {
    return net_.reg_mr_dma_buf(comm, data, size, nccl::kPtrCuda, offset, fd, mr);
  }
  NetResult dereg_mr(void* comm, void* mr) override { return net_.dereg_mr(comm, mr); }
  NetResult isend(void* comm, void* data, std::size_t size, int tag, void* mr,
                  void** request) override {
    if constexpr (requires { net_.isend(comm, data, size, tag, mr, nullptr, request); }) {
      return net_.isend(comm, data, size, tag, mr, nullptr, request);
    } else {
      using Size = std::conditional_t<std::is_same_v<Net, nccl::NetV8>, int, std::size_t>;
      return net_.isend(comm, data, static_cast<Size>(size), tag, mr, request);
    }
  }
  NetResult irecv(void* comm, std::vector<void*> data, std::vector<std::size_t> sizes,
                  std::vector<int> tags, std::vector<void*> mrs, void** request) override {
    const int n = static_cast<int>(data.size());
    if constexpr (std::is_same_v<Net, nccl::NetV8>) {
      std::vector<int> narrow(sizes.begin(), sizes.end());
      return net_.irecv(comm, n, data.data(), narrow.data(), tags.data(), mrs.data(), request);
    } else if constexpr (std::is_same_v<Net, nccl::NetV9>) {
      return net_.irecv(comm, n, data.data(), sizes.data(), tags.data(), mrs.data(), request);
    } else {
      std::vector<void*> profiler(data.size(), nullptr);
      return net_.irecv(comm, n, data.data(), sizes.data(), tags.data(), mrs.data(),
                        profiler.data(), request);
    }
  }
  NetResult iflush(void* comm, void* data, int size, void* mr, void** request) override {
    return net_.iflush(comm, 1, &data, &size, &mr, request);
  }
  NetResult test(void* request, int* done, int* sizes) override {
    return net_.test(request, done, sizes);
  }
  NetResult close_send(void* comm) override { return net_.close_send(comm); }
  NetResult close_recv(void* comm) override { return net_.close_recv(comm); }
  NetResult close_listen(void* comm) override { return net_.close_listen(comm); }

 private:
  Net net_;
};

template <class Net, class Props>
std::unique_ptr<AnyNet> wrap(const void* symbol) {
  return std::make_unique<NetOf<Net, Props>>(static_cast<const Net*>(symbol));
}

}  // namespace

std::unique_ptr<AnyNet> AnyNet::open(const std::string& path, int version, std::string* why) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(version);
  const void* found = library == nullptr ? nullptr : dlsym(library, symbol.c_str());
  if (found == nullptr) {
    const char* text = dlerror();
    *why = text == nullptr ? "no such symbol" : text;
    return nullptr;
  }
  switch (version) {
    case 8:
      return wrap<nccl::NetV8, nccl::NetPropertiesV8>(found);
    case 9:
      return wrap<nccl::NetV9, nccl::NetPropertiesV9>(found);
    case 10:
      return wrap<nccl::NetV10, nccl::NetPropertiesV10>(found);
    case 11:
      return wrap<nccl::NetV11, nccl::NetPropertiesV11>(found);
    case 12:
      return wrap<nccl::NetV12, nccl::NetPropertiesV12>(found);
    default:
      *why = "this test knows no such version";
      return nullptr;
  }
}

}  // namespace gdrx::test
