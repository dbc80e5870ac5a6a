// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/net_perf/pair.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace gdrx::net_perf {
namespace {

constexpr std::uint64_t kClockEvery = 1024;

Blob exchange(const Blob& mine, int peer) {
  int length = static_cast<int>(mine.size());
  int theirs = 0;
  MPI_Sendrecv(&length, 1, MPI_INT, peer, 0, &theirs, 1, MPI_INT, peer, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  Blob blob(static_cast<std::size_t>(theirs));
  MPI_Sendrecv(mine.data(), length, MPI_BYTE, peer, 1, blob.data(), theirs, MPI_BYTE, peer, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return blob;
}

}  // namespace

Result<std::unique_ptr<Pair>> Pair::open(const Options& options, int rank, std::uint64_t area) {
  const auto limit =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.timeout));
  auto pair = std::unique_ptr<Pair>(new Pair(rank, area, limit));
  GDRX_TRY(pair->connect(options));
  return pair;
}

Result<void> Pair::connect(const Options& options) {
  const Log log(options.config.log_level, stderr_sink());
  fabric_ = GDRX_TRY(open_fabric(options.config.transport, options.config, log));
  device_ = GDRX_TRY(fabric_->open_device(Rank{rank_}, options.config, log));
  region_ = GDRX_TRY(device_->allocate_memory(kWords + 2 * area_));
  const int peer = 1 - rank_;
  endpoint_ = GDRX_TRY(device_->connect(Rank{peer}, exchange(device_->address(), peer)));
  remote_ = GDRX_TRY(endpoint_->import_region(exchange(region_->export_key(), peer)));
  // A word that says nothing yet tells that the connection stands.
  while (GDRX_TRY(tell(&Words::received, 0)) == Progress::pending) {
    GDRX_TRY(poll());
    GDRX_TRY(idle());
  }
  moved();
  return barrier();
}

std::uint64_t Pair::load(std::uint64_t Words::*word) const noexcept {
  auto& words = *reinterpret_cast<Words*>(region_->bytes().data());
  // Acquire: what the peer wrote before it is there.
  return std::atomic_ref<std::uint64_t>(words.*word).load(std::memory_order_acquire);
}

Result<Progress> Pair::send(std::uint64_t at, std::uint64_t bytes, std::uint16_t immediate,
                            std::uint64_t cookie) {
  WriteOp op;
  op.payload = source().subspan(at, bytes);
  op.local = region_.get();
  op.remote = remote_;
  op.offset = kWords + area_ + at;
  op.has_immediate = true;
  op.immediate = immediate;
  op.cookie = cookie;
  return endpoint_->post(op);
}

Result<Progress> Pair::tell(std::uint64_t Words::*word, std::uint64_t value) {
  WriteOp op;
  op.header = std::as_bytes(std::span(&value, 1));  // unlike a payload it is copied by post()
  op.remote = remote_;
  op.offset = word == &Words::received ? offsetof(Words, received) : offsetof(Words, total);
  op.cookie = kNoCookie;
  return endpoint_->post(op);
}

Result<std::span<const Completion>> Pair::poll() {
  if (!early_.empty()) {
    const std::size_t count = std::min(early_.size(), completions_.size());
    std::copy_n(early_.begin(), count, completions_.begin());
    early_.erase(early_.begin(), early_.begin() + static_cast<std::ptrdiff_t>(count));
    return std::span<const Completion>(completions_).first(count);
  }
  const std::size_t count = GDRX_TRY(device_->poll(completions_));
  return std::span<const Completion>(completions_).first(count);
}

Result<void> Pair::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  std::vector<Completion> early = std::exchange(early_, {});
  int done = 0;
  while (done == 0) {
    for (const Completion& completion : GDRX_TRY(poll())) early.push_back(completion);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    GDRX_TRY(idle());
  }
  early_ = std::move(early);
  moved();
  return {};
}

Result<void> Pair::idle() {
  if (idle_++ % kClockEvery != 0) return {};
  const Instant now = steady_clock().now();
  if (idle_ == 1) idle_since_ = now;
  if (now - idle_since_ < limit_) return {};
  return fail(Errc::timeout, fmt::format("rank {}: nothing has moved for {:g} s", rank_,
                                         std::chrono::duration<double>(limit_).count()));
}

}  // namespace gdrx::net_perf
