// SPDX-License-Identifier: Apache-2.0
#include "transport/fabric/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>

namespace gdrx {
namespace {

// Fields, each behind its length.
void put(Blob& out, std::span<const std::byte> field) {
  const auto length = static_cast<std::uint32_t>(field.size());
  const auto bytes = std::as_bytes(std::span(&length, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.insert(out.end(), field.begin(), field.end());
}

Result<std::span<const std::byte>> take(std::span<const std::byte>& in) {
  std::uint32_t length = 0;
  if (in.size() < sizeof length) return fail(Errc::protocol, "a peer's words are cut short");
  std::memcpy(&length, in.data(), sizeof length);
  in = in.subspan(sizeof length);
  if (length > in.size()) return fail(Errc::protocol, "a peer's words are cut short");
  const auto field = in.first(length);
  in = in.subspan(length);
  return field;
}

class SplitRegion final : public MemoryRegion {
 public:
  SplitRegion(std::unique_ptr<MemoryRegion> near, std::unique_ptr<MemoryRegion> far)
      : near_(std::move(near)), far_(std::move(far)) {}
  ~SplitRegion() override { far_.reset(); }  // of the near one's memory
  std::span<std::byte> bytes() const noexcept override { return near_->bytes(); }
  Blob export_key() const override {
    Blob key;
    put(key, near_->export_key());
    put(key, far_->export_key());
    return key;
  }

 private:
  std::unique_ptr<MemoryRegion> near_;
  std::unique_ptr<MemoryRegion> far_;
};

class SplitEndpoint final : public Endpoint {
 public:
  SplitEndpoint(std::unique_ptr<Endpoint> way, bool near) : way_(std::move(way)), near_(near) {}
  Rank peer() const noexcept override { return way_->peer(); }
  Result<RemoteRegionId> import_region(std::span<const std::byte> key) override {
    const auto near = GDRX_TRY(take(key));
    const auto far = GDRX_TRY(take(key));
    return way_->import_region(near_ ? near : far);
  }
  Result<Progress> post(const WriteOp& op) override {
    WriteOp inner = op;
    inner.local = nullptr;  // of neither
    return way_->post(inner);
  }
  std::span<std::byte> mapped(RemoteRegionId region) const noexcept override {
    return way_->mapped(region);
  }
  std::string describe() const override { return way_->describe(); }
  void release_region(RemoteRegionId region) noexcept override { way_->release_region(region); }
  const Error* error() const noexcept override { return way_->error(); }

 private:
  std::unique_ptr<Endpoint> way_;
  bool near_;
};

class SplitDevice final : public Device {
 public:
  explicit SplitDevice(SplitParts parts) : parts_(std::move(parts)) {}

  Blob address() const override {
    Blob address;
    put(address, std::as_bytes(std::span(parts_.host)));
    put(address, parts_.near->address());
    put(address, parts_.far->address());
    return address;
  }
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory,
                                                        MemoryKind kind) override {
    return with_far(GDRX_TRY(parts_.near->register_memory(memory, kind)));
  }
  Result<std::unique_ptr<MemoryRegion>> allocate_memory(std::size_t bytes) override {
    return with_far(GDRX_TRY(parts_.near->allocate_memory(bytes)));
  }
  Result<std::unique_ptr<Endpoint>> connect(Rank peer,
                                            std::span<const std::byte> address) override {
    const auto host = GDRX_TRY(take(address));
    const auto near = GDRX_TRY(take(address));
    const auto far = GDRX_TRY(take(address));
    const auto own = std::as_bytes(std::span(parts_.host));
    if (std::ranges::equal(host, own))
      return wrap(GDRX_TRY(parts_.near->connect(peer, near)), true);
    if (parts_.near_has_rdma) {
      auto found = parts_.near->connect(peer, near);
      if (found && is_rdma((*found)->describe())) return wrap(std::move(*found), true);
    }
    return wrap(GDRX_TRY(parts_.far->connect(peer, far)), false);
  }
  Result<std::size_t> poll(std::span<Completion> completions) override {
    std::swap(first_, second_);  // the one that has much does not silence the other
    const std::size_t count = GDRX_TRY(first_->poll(completions));
    auto rest = second_->poll(completions.subspan(count));
    if (!rest && count == 0) return rest;
    return count + rest.value_or(0);
  }
  bool busy() const noexcept override { return parts_.near->busy() || parts_.far->busy(); }
  void isolate_peers() noexcept override {
    parts_.near->isolate_peers();
    parts_.far->isolate_peers();
  }
  void report_to(Hearing& hearing) noexcept override {
    parts_.near->report_to(hearing);
    parts_.far->report_to(hearing);
  }
  std::vector<int> near_cpus() const override { return parts_.far->near_cpus(); }
  std::string describe() const override {
    return parts_.near->describe() + "; other hosts: " + parts_.far->describe();
  }

 private:
  static bool is_rdma(const std::string& lanes) {
    return lanes.find("rc_") != std::string::npos || lanes.find("dc_") != std::string::npos ||
           lanes.find("ud_") != std::string::npos;
  }
  static Result<std::unique_ptr<Endpoint>> wrap(std::unique_ptr<Endpoint> way, bool near) {
    return std::unique_ptr<Endpoint>(std::make_unique<SplitEndpoint>(std::move(way), near));
  }
  Result<std::unique_ptr<MemoryRegion>> with_far(std::unique_ptr<MemoryRegion> near) {
    auto far = GDRX_TRY(parts_.far->register_memory(near->bytes(), MemoryKind::host));
    return std::unique_ptr<MemoryRegion>(
        std::make_unique<SplitRegion>(std::move(near), std::move(far)));
  }

  SplitParts parts_;
  Device* first_ = parts_.near.get();
  Device* second_ = parts_.far.get();
};

// A NIC, that is: UCX 1.13 does not get through over soft-RoCE, which names its network device.
bool has_rdma() {
  std::error_code error;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", error);
  if (error) return false;
  return std::any_of(begin(devices), end(devices), [&](const auto& device) {
    return !std::filesystem::exists(device.path() / "parent", error);
  });
}

class SplitFabric final : public Fabric {
 public:
  SplitFabric(std::shared_ptr<Fabric> near, std::shared_ptr<Fabric> far, std::string host)
      : near_(std::move(near)), far_(std::move(far)), host_(std::move(host)) {}
  std::string_view name() const noexcept override { return "ucx+tcp"; }
  std::string describe() const override { return near_->describe() + "; " + far_->describe(); }
  Result<std::shared_ptr<Device>> open_device(Rank self, const Config& config,
                                              const Log& log) override {
    SplitParts parts;
    parts.near = GDRX_TRY(near_->open_device(self, config, log));
    parts.far = GDRX_TRY(far_->open_device(self, config, log));
    parts.host = host_;
    parts.near_has_rdma = has_rdma();
    return make_split_device(std::move(parts));
  }

 private:
  std::shared_ptr<Fabric> near_;
  std::shared_ptr<Fabric> far_;
  std::string host_;
};

}  // namespace

std::shared_ptr<Device> make_split_device(SplitParts parts) {
  return std::make_shared<SplitDevice>(std::move(parts));
}

Result<std::shared_ptr<Fabric>> open_split_fabric(std::string host, const Config& config,
                                                  const Log& log) {
  std::shared_ptr<Fabric> far = GDRX_TRY(open_fabric("tcp", config, log));
  auto near = open_fabric("ucx", config, log);
  if (!near) return far;
  return std::shared_ptr<Fabric>(
      std::make_shared<SplitFabric>(std::move(*near), std::move(far), std::move(host)));
}

}  // namespace gdrx
