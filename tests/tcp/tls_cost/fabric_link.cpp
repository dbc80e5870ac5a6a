// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "gdrx/config.hpp"
#include "gdrx/transport.hpp"
#include "tests/tcp/tls_cost/link.hpp"

namespace gdrx::tls_cost {
namespace {

Blob exchange_bytes(int channel, const Blob& mine) {
  const std::string text(reinterpret_cast<const char*>(mine.data()), mine.size());
  const std::string theirs = tell_and_hear(channel, text);
  const auto bytes = std::as_bytes(std::span(theirs));
  return {bytes.begin(), bytes.end()};
}

class FabricLink final : public Link {
 public:
  FabricLink(int rank, bool plain, std::size_t area, int channel) {
    Config config = load_config(process_environment()).value().config;
    config.tcp_plain = plain;
    auto fabric = open_fabric("tcp", config, Log());
    require(fabric.has_value(), "the tcp fabric");
    device_ = (*fabric)->open_device(Rank{rank}, config, Log()).value();
    region_ = device_->allocate_memory(2 * area).value();
    std::fill(region_->bytes().begin(), region_->bytes().end(), std::byte{1});
    area_ = area;
    const Blob address = exchange_bytes(channel, device_->address());
    endpoint_ = device_->connect(Rank{1 - rank}, address).value();
    remote_ = endpoint_->import_region(exchange_bytes(channel, region_->export_key())).value();
  }
  void set_sizes(std::size_t out, std::size_t) override { out_ = out; }
  bool send(std::size_t at) override {
    WriteOp op;
    op.payload = region_->bytes().subspan(at, out_);
    op.local = region_.get();
    op.remote = remote_;
    op.offset = area_ + at;
    op.has_immediate = true;
    return endpoint_->post(op).value() == Progress::done;
  }
  std::size_t poll() override {
    std::size_t came = 0;
    const std::size_t count = device_->poll(completions_).value();
    for (const Completion& one : std::span(completions_).first(count)) {
      came += one.kind == CompletionKind::immediate ? 1 : 0;
    }
    return came;
  }
  bool busy() const override { return device_->busy(); }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<Endpoint> endpoint_;
  RemoteRegionId remote_{};
  std::array<Completion, 64> completions_{};
  std::size_t area_ = 0;
  std::size_t out_ = 0;
};

}  // namespace

std::unique_ptr<Link> fabric_link(int rank, bool plain, std::size_t area, int channel) {
  return std::make_unique<FabricLink>(rank, plain, area, channel);
}

}  // namespace gdrx::tls_cost
