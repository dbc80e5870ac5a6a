// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/device.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <ucs/config/global_opts.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "transport/fabric/hearing.hpp"
#include "transport/ucx/endpoint.hpp"
#include "transport/ucx/segment.hpp"
#include "transport/ucx/transports.hpp"

namespace gdrx::ucx {
namespace {

constexpr std::size_t kPool = 1024;  // writes under way on a device
constexpr int kMostRounds = 256;     // of UCX's progress in one poll()
constexpr std::chrono::milliseconds kCloseTime{500};
constexpr std::chrono::milliseconds kFlushTime{100};

struct ConfigHolder {
  ucp_config_t* config = nullptr;
  ~ConfigHolder() {
    if (config != nullptr) ucp_config_release(config);
  }
};

// UCX_TLS, from the environment or UCX's file.
std::string default_tls(const ucp_config_t* config) {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  if (stream == nullptr) return "all";
  ucp_config_print(config, stream, nullptr, UCS_CONFIG_PRINT_CONFIG);
  fclose(stream);
  const std::string all = "\n" + std::string(text, length);
  free(text);
  static constexpr std::string_view kName = "\nUCX_TLS=";
  const auto at = all.find(kName);
  if (at == std::string::npos) return "all";
  const auto from = at + kName.size();
  return all.substr(from, all.find('\n', from) - from);
}

Result<std::string> tls_for(const Config& config, const ucp_config_t* ucx) {
  if (config.ucx_tcp) return std::string("tcp");
  if (config.ucx_tls.empty()) return without_tcp(default_tls(ucx));
  if (names_tcp(config.ucx_tls)) {
    return fail(Errc::invalid_argument,
                fmt::format("GDRX_UCX_TLS={}: whoever reaches UCX's TCP port writes this process's "
                            "memory; leave tcp out, GDRX_TRANSPORT=tcp goes over TCP by gdrx",
                            config.ucx_tls));
  }
  return without_tcp(config.ucx_tls);
}

}  // namespace

tl::unexpected<Error> failed(const char* call, ucs_status_t status) {
  return fail(Errc::system, fmt::format("{}: {}", call, ucs_status_string(status)));
}

Result<std::shared_ptr<UcxDevice>> UcxDevice::create(Rank self, const Config& config) {
  auto device = std::shared_ptr<UcxDevice>(new UcxDevice(self));
  GDRX_TRY(device->open(config));
  return device;
}

Result<void> UcxDevice::open(const Config& config) {
  // UCX would report variables of others that it does not know, once.
  static std::once_flag quiet;
  std::call_once(quiet, [] {
    if (std::getenv("UCX_WARN_UNUSED_ENV_VARS") != nullptr) return;
    ucs_global_opts_set_value("WARN_UNUSED_ENV_VARS", "n");
  });
  ConfigHolder holder;
  if (const auto status = ucp_config_read(nullptr, nullptr, &holder.config); status != UCS_OK) {
    return failed("ucp_config_read", status);
  }
  // Without this, endpoints that report a peer's failure leave shared memory for TCP in silence.
  if (const auto status = ucp_config_modify(holder.config, "MM_ERROR_HANDLING", "y");
      status != UCS_OK) {
    return failed("UCX_MM_ERROR_HANDLING", status);
  }
  // UCX's other ways, transparent huge pages and the heap, give memory that was somebody else's: an
  // receive ring has to be zero at first.
  if (const auto status =
          ucp_config_modify(holder.config, "ALLOC_PRIO", "md:sysv,md:posix,huge,md:*,mmap");
      status != UCS_OK) {
    return failed("UCX_ALLOC_PRIO", status);
  }
  if (const std::string tls = GDRX_TRY(tls_for(config, holder.config)); !tls.empty()) {
    if (const auto status = ucp_config_modify(holder.config, "TLS", tls.c_str());
        status != UCS_OK) {
      return failed(("GDRX_UCX_TLS=" + tls).c_str(), status);
    }
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_RMA;
  if (const auto status = ucp_init(&params, holder.config, &context_); status != UCS_OK) {
    return failed("ucp_init", status);
  }
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const auto status = ucp_worker_create(context_, &worker, &worker_); status != UCS_OK) {
    auto failure = failed("ucp_worker_create", status);
    // UCX does not say of what: mostly of a container's 64 MiB of /dev/shm.
    if (status == UCS_ERR_NO_RESOURCE) {
      Text& what = failure.value().what;
      what = what + "; is /dev/shm full or small (docker: --shm-size)? gdrx doctor says";
    }
    return failure;
  }
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = kMessageId;
  handler.cb = &UcxDevice::on_message;
  handler.arg = this;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  if (const auto status = ucp_worker_set_am_recv_handler(worker_, &handler); status != UCS_OK) {
    return failed("ucp_worker_set_am_recv_handler", status);
  }
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  if (const auto status = ucp_worker_get_address(worker_, &address, &length); status != UCS_OK) {
    return failed("ucp_worker_get_address", status);
  }
  const auto release = [this](ucp_address_t* one) { ucp_worker_release_address(worker_, one); };
  const std::unique_ptr<ucp_address_t, decltype(release)> kept(address, release);
  const auto bytes = std::as_bytes(std::span(reinterpret_cast<const char*>(address), length));
  address_.assign(bytes.begin(), bytes.end());
  pool_.resize(kPool);
  for (Pending& pending : pool_) free_.push_back(&pending);
  ready_.reserve(4 * kPool);
  deferred_.reserve(kPool);
  running_.reserve(kPool);
  return {};
}

UcxDevice::~UcxDevice() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

Result<std::unique_ptr<MemoryRegion>> UcxDevice::register_memory(std::span<std::byte> memory,
                                                                 MemoryKind kind) {
  if (kind != MemoryKind::host) {
    return fail(Errc::unsupported, "the ucx fabric takes host memory; CUDA memory is staged");
  }
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = memory.data();
  params.length = memory.size();
  return map(params);
}

Result<std::unique_ptr<MemoryRegion>> UcxDevice::allocate_memory(std::size_t bytes) {
  // Memory that UCX allocates is shared: peers of this host attach it, and a put is a store.
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.length = bytes;
  params.flags = UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_NONBLOCK;
  return map(params);
}

Result<std::unique_ptr<MemoryRegion>> UcxDevice::map(const ucp_mem_map_params_t& params) {
  const auto ended = std::find_if(regions_.begin(), regions_.end(),
                                  [](const Region& one) { return one.handle == nullptr; });
  // Numbers are used again: what is late for the region before has another nonce.
  const auto id = static_cast<std::uint32_t>(ended - regions_.begin());
  if (ended == regions_.end()) regions_.emplace_back();
  auto made = std::make_unique<UcxRegion>(shared_from_this(), id);
  Region region;
  if (getrandom(&region.nonce, sizeof region.nonce, 0) != sizeof region.nonce) {
    return fail(Errc::system, "getrandom", errno);
  }
  if (const auto status = ucp_mem_map(context_, &params, &region.handle); status != UCS_OK) {
    return failed("ucp_mem_map", status);
  }
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  if (const auto status = ucp_mem_query(region.handle, &attributes); status != UCS_OK) {
    ucp_mem_unmap(context_, region.handle);
    return failed("ucp_mem_query", status);
  }
  region.bytes = {static_cast<std::byte*>(attributes.address), params.length};
  if ((params.field_mask & UCP_MEM_MAP_PARAM_FIELD_FLAGS) != 0) {
    region.segment = segment_at(attributes.address);
  }
  regions_[id] = region;
  return made;
}

UcxRegion::~UcxRegion() {
  UcxDevice::Region& region = device_->regions_[id_];
  if (region.handle != nullptr) ucp_mem_unmap(device_->context_, region.handle);
  region = {};
}

std::span<std::byte> UcxRegion::bytes() const noexcept { return device_->regions_[id_].bytes; }

Blob UcxRegion::export_key() const {
  const UcxDevice::Region& region = device_->regions_[id_];
  void* rkey = nullptr;
  std::size_t length = 0;
  if (ucp_rkey_pack(device_->context_, region.handle, &rkey, &length) != UCS_OK) return {};
  KeyHead head;
  head.region = id_;
  head.nonce = region.nonce;
  head.base = reinterpret_cast<std::uintptr_t>(region.bytes.data());
  head.length = region.bytes.size();
  head.segment = region.segment;
  head.rkey_length = length;
  Blob key(sizeof head + length);
  std::memcpy(key.data(), &head, sizeof head);
  std::memcpy(key.data() + sizeof head, rkey, length);
  ucp_rkey_buffer_release(rkey);
  return key;
}

Result<std::unique_ptr<Endpoint>> UcxDevice::connect(Rank peer,
                                                     std::span<const std::byte> address) {
  std::unique_ptr<Endpoint> endpoint =
      GDRX_TRY(UcxEndpoint::create(shared_from_this(), peer, address));
  return endpoint;
}

Result<std::size_t> UcxDevice::poll(std::span<Completion> completions) {
  // Until UCX has nothing more, or there is enough to hand out; but not for ever: while it takes a
  // dead peer's connection down, UCX can report progress again and again.
  for (int round = 0; round < kMostRounds && ready_.size() - first_ < completions.size(); ++round) {
    const bool moved = ucp_worker_progress(worker_) != 0;
    if (!run_deferred() && !moved) break;
  }
  const std::size_t count = std::min(completions.size(), ready_.size() - first_);
  std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(first_), count, completions.begin());
  first_ += count;
  if (first_ == ready_.size()) {
    ready_.clear();
    first_ = 0;
  }
  if (count == 0 && error_) return tl::unexpected(*error_);
  return count;
}

bool UcxDevice::run_deferred() {
  if (deferred_.empty()) return false;
  running_.swap(deferred_);  // what runs may defer more
  for (Pending* pending : running_) {
    if (pending->endpoint == nullptr) {
      give_back(pending);
    } else {
      pending->endpoint->go_on(pending);
    }
  }
  running_.clear();
  return true;
}

Pending* UcxDevice::take() noexcept {
  if (free_.empty()) return nullptr;
  Pending* pending = free_.back();
  free_.pop_back();
  pending->device = this;
  return pending;
}

void UcxDevice::finish(Pending* pending) {
  if (hearing_ != nullptr) hearing_->hear(pending->endpoint->peer());
  ready_.push_back({CompletionKind::write_done, pending->endpoint->peer(), 0, pending->cookie});
  give_back(pending);
}

void UcxDevice::forget(const UcxEndpoint* endpoint) noexcept {
  for (Pending& pending : pool_) {
    if (pending.endpoint == endpoint) pending.endpoint = nullptr;
  }
}

void UcxDevice::fail_with(Error error) {
  if (!error_) error_ = std::move(error);
}

ucs_status_t UcxDevice::on_message(void* self, const void* header, std::size_t header_length,
                                   void* data, std::size_t length,
                                   const ucp_am_recv_param_t* param) {
  auto* device = static_cast<UcxDevice*>(self);
  device->contain([&] {
    Result<void> landed;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
      landed = fail(Errc::protocol, "a peer sent a rendezvous message, which gdrx never does");
    } else {
      landed = device->land(header, header_length, data, length);
    }
    // A late write to a region that has ended is nothing that the others have to suffer for.
    if (!landed && !device->isolating_) device->fail_with(std::move(landed).error());
  });
  return UCS_OK;
}

// Nothing here is trusted: not the header's length, not the region, not the bounds.
Result<void> UcxDevice::land(const void* header, std::size_t header_length, const void* data,
                             std::size_t length) {
  MessageHead head;
  if (header_length != sizeof head) return fail(Errc::protocol, "a message of a wrong form");
  std::memcpy(&head, header, sizeof head);
  if (head.magic != kMagic) return fail(Errc::protocol, "a message that is not gdrx's");
  if (head.region >= regions_.size() || regions_[head.region].handle == nullptr ||
      regions_[head.region].nonce != head.nonce) {
    return fail(Errc::protocol,
                fmt::format("rank {} wrote to a region that is not there", head.source));
  }
  const std::span<std::byte> target = regions_[head.region].bytes;
  if (head.offset > target.size() || length > target.size() - head.offset) {
    return fail(Errc::protocol, fmt::format("rank {} wrote {} bytes at {} of a region of {}",
                                            head.source, length, head.offset, target.size()));
  }
  if (hearing_ != nullptr) hearing_->hear(Rank{head.source});
  if (length > 0) std::memcpy(target.data() + head.offset, data, length);
  if (head.has_immediate != 0) {
    ready_.push_back({CompletionKind::immediate, Rank{head.source}, head.immediate, 0});
  }
  return {};
}

// What UCX has taken may still wait in a socket's queue, and closing by force throws it away.
void UcxDevice::flush(ucp_ep_h endpoint) noexcept {
  ucp_request_param_t param{};
  ucs_status_ptr_t request = ucp_ep_flush_nbx(endpoint, &param);
  if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
  const Deadline deadline = Deadline::after(steady_clock(), kFlushTime);
  while (ucp_request_check_status(request) == UCS_INPROGRESS &&
         !deadline.passed(steady_clock().now())) {
    ucp_worker_progress(worker_);
  }
  ucp_request_free(request);
}

void UcxDevice::close(ucp_ep_h endpoint) noexcept {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint, &param);
  if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
  const Deadline deadline = Deadline::after(steady_clock(), kCloseTime);
  while (ucp_request_check_status(request) == UCS_INPROGRESS &&
         !deadline.passed(steady_clock().now())) {
    ucp_worker_progress(worker_);
  }
  ucp_request_free(request);
}

}  // namespace gdrx::ucx
