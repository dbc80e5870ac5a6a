// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_pieces.hpp"

#include <algorithm>

namespace gdrx {
namespace {

// The network and the way to the host are far slower than these can feed; the rest of the GPU stays
// free for other work.
constexpr int kMostBlocks = 32;

/// A stream with stops in it. All that is told with no work between, and what is waited for then,
/// is one stop.
class Stops {
 public:
  Stops(gpu::Path& path, void* stream) : path_(path), stream_(stream) {}

  Result<void> signal(gpu::Signal what) {
    if ((next_.signals & gpu::bit_of(what)) != 0) GDRX_TRY(flush());
    next_.signals |= gpu::bit_of(what);
    return {};
  }
  Result<void> wait(gpu::WaitFlag what) {
    next_.waits_for = static_cast<std::int32_t>(what);
    return flush();
  }
  Result<void> begin(const gpu::CallRecord& record) {
    next_.record = record;
    return signal(gpu::Signal::begun);
  }
  /// Before anything else goes into the stream.
  Result<void> flush() {
    if (next_.signals == 0 && next_.waits_for < 0) return {};
    GDRX_TRY(path_.step_flags(next_, stream_));
    next_ = {};
    return {};
  }

 private:
  gpu::Path& path_;
  void* stream_;
  gpu::FlagStep next_;
};

class Enqueuing {
 public:
  Enqueuing(const GpuPieces& what, void* stream)
      : what_(what), host_(what.host), stream_(stream), stops_(*what.path, stream) {
    host_.blocks = std::min(host_.blocks, kMostBlocks);
    host_.rail = true;
  }

  Result<void> run() {
    if (GDRX_TRY(relay())) return {};
    if (!at_once_) GDRX_TRY(stops_.begin(what_.record));
    StreamOrder order(what_.pieces.count(), what_.levels, what_.sums);
    while (const auto item = order.next()) {
      switch (item->kind) {
        case StreamOrder::Kind::scatter:
          GDRX_TRY(scatter(item->piece));
          break;
        case StreamOrder::Kind::add:
          GDRX_TRY(add(item->piece, item->sum));
          break;
        case StreamOrder::Kind::gather:
          GDRX_TRY(gather(item->piece));
          break;
      }
    }
    GDRX_TRY(stops_.signal(gpu::Signal::gathered));
    return stops_.flush();
  }

 private:
  Result<bool> relay() {
    if (!at_once_ || what_.sums.size() > 1) return false;
    gpu::Work work = what_.work;
    work.block = what_.pieces.piece(0).part;
    gpu::Relay between{what_.part(0), what_.record, {}};
    if (!what_.sums.empty()) between.sum = what_.sum(0, 0).value_or(gpu::HostSum{});
    return what_.path->relay(work, between, stream_);
  }

  Result<void> scatter(std::uint64_t number) {
    const Pieces::Piece piece = what_.pieces.piece(number);
    gpu::Work work = what_.work;
    work.input = static_cast<const std::byte*>(work.input) + piece.begin;
    work.output = what_.part(number);
    work.bytes = piece.bytes;
    work.block = piece.part;
    work.finish = false;  // whoever adds up the hosts divides
    GDRX_TRY(launch(work, gpu::Kernel::reduce_scatter));
    if (at_once_) GDRX_TRY(stops_.begin(what_.record));
    return stops_.signal(gpu::Signal::scattered);
  }

  Result<void> add(std::uint64_t number, std::uint32_t which) {
    const auto sum = what_.sum(number, which);
    if (!sum) return {};
    GDRX_TRY(stops_.wait(gpu::WaitFlag::add));
    GDRX_TRY(what_.path->combine(*sum, stream_));
    return stops_.signal(gpu::Signal::added);
  }

  Result<void> gather(std::uint64_t number) {
    GDRX_TRY(stops_.wait(gpu::WaitFlag::gather));
    const Pieces::Piece piece = what_.pieces.piece(number);
    gpu::Work work = what_.work;
    work.input = what_.part(number);
    work.output = static_cast<std::byte*>(work.output) + piece.begin;
    work.bytes = piece.bytes;
    work.block = piece.part;
    return launch(work, gpu::Kernel::all_gather);
  }

  Result<void> launch(const gpu::Work& work, gpu::Kernel kernel) {
    GDRX_TRY(stops_.flush());
    return what_.path->launch(work, gpu::shape_of_blocks(kernel, host_, work.block), stream_);
  }

  const GpuPieces& what_;
  // The network hears of a call of one piece when it can do something about it: one stop less.
  const bool at_once_ = what_.pieces.count() == 1;
  gpu::Host host_;
  void* stream_;
  Stops stops_;
};

}  // namespace

Result<void> enqueue(const GpuPieces& what, void* stream) { return Enqueuing(what, stream).run(); }

}  // namespace gdrx
