// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/plugin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/thread_cpus.hpp"
#include "plugin/core/copy_threads.hpp"
#include "plugin/core/gpu_reach.hpp"
#include "plugin/core/log.hpp"
#include "plugin/gpu/driver.hpp"
#include "plugin/stats/writer.hpp"
#include "transport/bootstrap/interface.hpp"

namespace gdrx::net {

Result<std::shared_ptr<DeviceContext>> Context::device_context(int index, const NetDevice& on) {
  const std::lock_guard lock(mutex_);
  auto& place = device_contexts_[index];
  auto open = place.lock();
  if (!open) place = open = GDRX_TRY(another_device_context(on));
  open->expect_peers(peers_.load(std::memory_order_relaxed));
  return open;
}

Result<std::shared_ptr<DeviceContext>> Context::another_device_context(const NetDevice& on) const {
  Config config = config_;
  if (!on.hca.empty()) config.hca = on.hca;
  return DeviceContext::open(fabric_, on, config, nccl_log());
}

void Context::expect(const nccl::NetAttributes& hints) noexcept {
  peers_.store(hints.recv.max_concurrent_peers, std::memory_order_relaxed);  // only a hint
}

namespace {

// Mbit/s. NCCL then takes two channels. The messages of more are smaller, and under a kernel that
// waits each copy takes its time: 4 x H200 need 257 us for 2 MiB with two and 835 with eight (and
// 4651 against 1960 for 128 MiB).
constexpr int kGpuSpeed = 50'000;

bool is_strict(const Environment& environment) {
  return std::find(environment.begin(), environment.end(), "GDRX_NET_STRICT=1") !=
         environment.end();
}

bool is_set(const Environment& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(), [&](const std::string& one) {
    return one.starts_with(name) && one.size() > name.size() && one[name.size()] == '=';
  });
}

// As NCCL's own network takes it: the variables go before the communicator, and InfiniBand, which
// does not look at traffic classes, gets the number as its service level.
void use_traffic_class(int wanted, const Environment& environment, IbConfig& ib) {
  constexpr int kMostClasses = 255, kMostLevels = 15;
  if (wanted < 0 || wanted > kMostClasses)
    return;  // nccl::kUndefined, or nothing a packet can hold
  if (!is_set(environment, "NCCL_IB_TC")) ib.traffic_class = wanted;
  if (!is_set(environment, "NCCL_IB_SL") && wanted <= kMostLevels) ib.service_level = wanted;
}

// The process ends or the library is closed: the counters' file goes.
struct AtEnd {
  ~AtEnd() { stats::stop(); }
} at_end;

}  // namespace

Plugin& Plugin::instance() {
  static auto* plugin = new Plugin;
  return *plugin;
}

Plugin::Plugin() : log_(nccl_log()) {}

Result<void> Plugin::start(int abi) {
  const std::lock_guard lock(mutex_);
  if (started_) {
    if (config_.net_stats) stats::start(abi, log_);  // a forked child has a page of its own
    return {};
  }
  auto opened = open(abi);
  if (!opened && is_strict(process_environment())) {
    // NCCL would take another network if this failed. It cannot, once it has taken this one.
    refusal_ = opened.error();
    log_.error("GDRX_NET_STRICT=1: no connection will be made: {}", describe(*refusal_));
    set_.devices.assign(1, NetDevice{});
    set_.devices.front().name = "gdrx_unusable";
    set_.devices.front().speed = 10'000;
    opened = {};
  }
  started_ = opened.has_value();
  physical_ = set_.devices.size();
  return opened;
}

Result<void> Plugin::open(int abi) {
  const Environment environment = process_environment();
  auto loaded = GDRX_TRY(load_config(environment));
  for (const std::string& warning : loaded.warnings) log_.warn("{}", warning);
  config_ = std::move(loaded.config);
  // Other hosts may have those CPUs, and take this plugin: NCCL of this one must not take another.
  if (const auto may = check_thread_cpus(config_.thread_cpus); !may) {
    log_.warn("{}; auto is taken", may.error().what);
    config_.thread_cpus = "auto";
  }
  // Once: NCCL binds its threads to other processors than the one that this runs on.
  config_.net_copy_threads = CopyThreads::count(config_.net_copy_threads, environment);
  if (config_.socket_ifname.empty()) config_.socket_ifname = config_.nccl_socket_ifname;
  GDRX_TRY(Secret::load(config_.secret_file));  // says at once what is wrong with it
  address_ = GDRX_TRY(choose_interface(list_interfaces(), config_.socket_ifname)).address;
  set_ = GDRX_TRY(find_devices(config_, log_));
  const bool wanted = config_.net_gpu && set_.fabric == "ucx";
  const bool handed_over = wanted && gpu::driver().missing.empty();
  if (config_.net_gpu && !handed_over) {
    log_.warn("GDRX_NET_GPU=1 has no effect: {}",
              wanted ? gpu::driver().missing
                     : "it is of the ucx fabric; RDMA NICs reach GPU memory by themselves");
  }
  config_.net_gpu = handed_over;
  for (NetDevice& device : set_.devices) {
    if (set_.fabric != "ucx") find_gpu_reach(set_.fabric, config_, log_, device);
    if (!handed_over) continue;
    device.pointers |= nccl::kPtrCuda;
    device.memory = "host and GPU memory of this host";
    if (config_.net_speed == 0) device.speed = std::max(device.speed, kGpuSpeed);
  }
  for (const NetDevice& device : set_.devices) {
    log_.info("plugin ABI v{}, device {}: {}, {} Mb/s, {}", abi, device.name, device.description,
              device.speed, device.memory);
  }
  if (config_.net_stats) stats::start(abi, log_);
  return {};
}

std::unique_ptr<Context> Plugin::make_context(const nccl::CommConfig* config) const {
  Config own = config_;
  if (config != nullptr) use_traffic_class(config->traffic_class, process_environment(), own.ib);
  return std::make_unique<Context>(set_.fabric, std::move(own));
}

Context& Plugin::context_of_thread(const nccl::CommConfig* config) {
  // Leaked with their thread on purpose: they hold no device context by themselves.
  thread_local auto* contexts = new std::map<int, std::unique_ptr<Context>>;
  auto& context = (*contexts)[config == nullptr ? nccl::kUndefined : config->traffic_class];
  if (!context) context = make_context(config);
  return *context;
}

Result<const NetDevice*> Plugin::device(int index) const {
  const std::lock_guard lock(mutex_);
  if (index < 0 || static_cast<std::size_t>(index) >= set_.devices.size()) {
    return fail(Errc::invalid_argument, fmt::format("there is no device {}", index));
  }
  return &set_.devices[static_cast<std::size_t>(index)];
}

Result<int> Plugin::make_virtual(std::span<const int> parts) {
  const std::lock_guard lock(mutex_);
  const auto as_before = [&](const NetDevice& one) {
    return std::equal(one.parts.begin(), one.parts.end(), parts.begin(), parts.end());
  };
  const auto known = std::find_if(set_.devices.begin(), set_.devices.end(), as_before);
  if (known != set_.devices.end()) return static_cast<int>(known - set_.devices.begin());
  set_.devices.push_back(GDRX_TRY(merge(set_.devices, parts)));
  const NetDevice& made = set_.devices.back();
  log_.info("device {}: {}, {} Mb/s, {}", made.name, made.description, made.speed, made.memory);
  return static_cast<int>(set_.devices.size()) - 1;
}

Result<std::unique_ptr<Listener>> Plugin::listen(Context& context, int index, void* handle) {
  const NetDevice& on = *GDRX_TRY(device(index));
  if (refusal_) return tl::unexpected(*refusal_);
  auto listener = GDRX_TRY(Listener::open(GDRX_TRY(context.device_context(index, on)), address_));
  std::memset(handle, 0, nccl::kHandleMaxSize);
  std::memcpy(handle, &listener->handle(), sizeof(Handle));
  return listener;
}

std::unique_ptr<Connector> Plugin::take_attempt(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  // What the other side may have left in these bytes is no number of ours.
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) return nullptr;
  std::unique_ptr<Connector> attempt = std::move(found->second);
  attempts_.erase(found);
  return attempt;
}

Result<std::unique_ptr<Sender>> Plugin::connect(Context& context, int index, void* handle) {
  const NetDevice& on = *GDRX_TRY(device(index));
  const std::span bytes(static_cast<std::byte*>(handle), nccl::kHandleMaxSize);
  std::byte* kept = bytes.data() + kAttemptOffset;
  std::uint64_t number = 0;
  std::memcpy(&number, kept, sizeof number);
  std::unique_ptr<Connector> attempt = take_attempt(number);
  const auto begin = [&](std::shared_ptr<DeviceContext> device_context) -> Result<void> {
    const Handle to = GDRX_TRY(decode_handle(bytes));
    attempt = GDRX_TRY(Connector::begin(std::move(device_context), to));
    return {};
  };
  if (!attempt) {
    GDRX_TRY(begin(GDRX_TRY(context.device_context(index, on))));
    do {
      number = GDRX_TRY(random_value<std::uint64_t>());
    } while (number == 0);
  }
  std::memset(kept, 0, sizeof number);
  auto sender = step(attempt);
  if (!sender && attempt) {  // on another device context, then
    attempt.reset();
    GDRX_TRY(begin(GDRX_TRY(context.another_device_context(on))));
    sender = nullptr;
  }
  if (!sender || *sender) return sender;
  std::memcpy(kept, &number, sizeof number);
  const std::lock_guard lock(mutex_);
  attempts_.emplace(number, std::move(attempt));
  return nullptr;
}

Result<std::unique_ptr<Sender>> Plugin::step(std::unique_ptr<Connector>& attempt) {
  const auto device_context = attempt->device_context();  // outlives the lock
  const std::lock_guard held(device_context->lock());
  auto stepped = attempt->step();
  // Within the lock: it may hold what belongs to the device context.
  if (!stepped && attempt->needs_another_device_context()) {
    attempt->let_go();
  } else if (!stepped) {
    attempt.reset();
  }
  return stepped;
}

}  // namespace gdrx::net
