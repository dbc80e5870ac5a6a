// SPDX-License-Identifier: Apache-2.0
#include "collectives/trace/nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

#include <array>

namespace gdrx::trace::nvtx {
namespace {

// Category 0 is NVTX's "none".
std::uint32_t category_of(Kind kind) { return static_cast<std::uint32_t>(kind) + 1; }

nvtxDomainHandle_t open() noexcept {
  nvtxDomainHandle_t made = nvtxDomainCreateA("gdrx");
  if (made == nullptr) return nullptr;
  for (std::size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    nvtxDomainNameCategoryA(made, category_of(kind), to_string(kind).data());
  }
  return made;
}

// Null: no tool was there at the first call, and NVTX never looks again.
nvtxDomainHandle_t domain() noexcept {
  static const nvtxDomainHandle_t kDomain = open();
  return kDomain;
}

/// An event with its text, which the tool copies.
struct Attributes {
  explicit Attributes(const Event& event) noexcept {
    value.version = NVTX_VERSION;
    value.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    value.category = category_of(event.kind);
    value.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    value.payload.ullValue = event.bytes;
    value.messageType = NVTX_MESSAGE_TYPE_ASCII;
    value.message.ascii = title(event, text).data();
  }
  std::array<char, kTitle> text;
  nvtxEventAttributes_t value{};
};

}  // namespace

bool listens() noexcept { return domain() != nullptr; }

void push(const Event& event) noexcept {
  const Attributes attributes(event);
  nvtxDomainRangePushEx(domain(), &attributes.value);
}

void pop() noexcept { nvtxDomainRangePop(domain()); }

std::uint64_t start(const Event& event) noexcept {
  const Attributes attributes(event);
  return nvtxDomainRangeStartEx(domain(), &attributes.value);
}

void end(std::uint64_t range) noexcept { nvtxDomainRangeEnd(domain(), range); }

}  // namespace gdrx::trace::nvtx
