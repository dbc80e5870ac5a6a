// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/nic_buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gdrx::perf {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

}  // namespace

std::string_view to_string(Way way) {
  switch (way) {
    case Way::host:
      return "host memory";
    case Way::dmabuf:
      return "dma-buf";
    case Way::peermem:
      return "nvidia-peermem";
  }
  return "?";
}

Result<std::unique_ptr<Buffer>> Buffer::host(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return fail(Errc::system, "mmap", errno);
  std::unique_ptr<Buffer> buffer(new Buffer);
  buffer->host_ = static_cast<std::byte*>(memory);
  buffer->address_ = reinterpret_cast<std::uintptr_t>(memory);
  buffer->bytes_ = bytes;
  return buffer;
}

Result<std::unique_ptr<Buffer>> Buffer::gpu(std::shared_ptr<cuda::Device> device,
                                            std::size_t bytes) {
  std::unique_ptr<Buffer> buffer(new Buffer);
  buffer->gpu_ = GDRX_TRY(cuda::Memory::create(std::move(device), bytes));
  buffer->address_ = buffer->gpu_->address();
  buffer->bytes_ = bytes;
  return buffer;
}

Buffer::~Buffer() {
  if (host_ != nullptr) munmap(host_, bytes_);
}

Result<void> Buffer::write(std::size_t offset, std::span<const std::byte> from) const {
  if (gpu_) return gpu_->write(offset, from);
  std::memcpy(host_ + offset, from.data(), from.size());
  return {};
}

Result<void> Buffer::read(std::size_t offset, std::span<std::byte> into) const {
  if (gpu_) return gpu_->read(offset, into);
  std::memcpy(into.data(), host_ + offset, into.size());
  return {};
}

Result<std::unique_ptr<verbs::Registration>> Buffer::register_with(const NicPort& port,
                                                                   Way way) const {
  const verbs::VerbsTable& verbs = port.context().verbs();
  if (way != Way::dmabuf) {
    // With nvidia-peermem, ibv_reg_mr takes a GPU's address as it is.
    std::byte* at = host_ != nullptr ? host_ : reinterpret_cast<std::byte*>(address_);
    return port.domain()->register_memory({at, bytes_}, kAccess);
  }
  if (!verbs.reg_dmabuf_mr) {
    return fail(Errc::unsupported, "libibverbs has no ibv_reg_dmabuf_mr", EOPNOTSUPP);
  }
  if (!gpu_) return fail(Errc::invalid_argument, "host memory has no dma-buf here");
  const int fd = GDRX_TRY(gpu_->export_dmabuf());
  ibv_mr* mr = verbs.reg_dmabuf_mr(port.domain()->raw(), 0, bytes_, address_, fd, kAccess);
  const int error = errno;
  close(fd);  // the registration holds the memory
  if (mr == nullptr) return fail(Errc::system, "ibv_reg_dmabuf_mr", error);
  return std::make_unique<verbs::Registration>(port.domain(), mr);
}

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& one : made) {
    state = state * 1664525u + 1013904223u;
    one = static_cast<std::byte>(state >> 24);
  }
  return made;
}

}  // namespace gdrx::perf
