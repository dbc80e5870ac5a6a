// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_pieces.hpp"

#include <algorithm>
#include <utility>

namespace gdrx {
namespace {

// The network and the way to the host are far slower than these can feed; the rest of the GPU stays
// free for other work.
constexpr int kMostBlocks = 32;

}  // namespace

GpuPieces::GpuPieces(Setup setup, std::uint64_t most)
    : setup_(std::move(setup)),
      pieces_(Pieces::cut(setup_.work.bytes, setup_.host.ranks, most)),
      count_(pieces_.count()) {
  setup_.host.blocks = std::min(setup_.host.blocks, kMostBlocks);
}

Result<GpuPieces> GpuPieces::create(Setup setup, std::uint64_t most) {
  GpuPieces made(std::move(setup), most);
  made.stream_ = made.setup_.path->own_stream();
  GDRX_TRY(made.setup_.before->hold(made.stream_));
  return made;
}

Result<void> GpuPieces::scatter(std::uint64_t number, std::byte* to) {
  const Pieces::Piece piece = pieces_.piece(number);
  gpu::Work work = setup_.work;
  work.input = static_cast<const std::byte*>(work.input) + piece.begin;
  work.output = to;
  work.bytes = piece.bytes;
  work.block = piece.part;
  work.finish = false;  // whoever adds up the hosts divides
  const auto shape = gpu::shape_of_blocks(gpu::Kernel::reduce_scatter, setup_.host, piece.part);
  GDRX_TRY(setup_.path->launch(work, shape, stream_));
  scattered_[number % kAhead] = GDRX_TRY(setup_.path->mark(stream_));
  launched_ = number + 1;
  if (!span_.is_open()) begin_span("scatter", number);
  return {};
}

Result<bool> GpuPieces::scattered(std::uint64_t number) {
  const bool reached = GDRX_TRY(scattered_[number % kAhead]->reached());
  if (reached && marked_ == number) {
    span_.end();
    if (number + 1 < launched_) begin_span("scatter", number + 1);  // the stream's next
  }
  return reached;
}

Result<void> GpuPieces::gather(std::uint64_t number, const std::byte* from) {
  const Pieces::Piece piece = pieces_.piece(number);
  gpu::Work work = setup_.work;
  work.input = from;
  work.output = static_cast<std::byte*>(work.output) + piece.begin;
  work.bytes = piece.bytes;
  work.block = piece.part;
  const auto shape = gpu::shape_of_blocks(gpu::Kernel::all_gather, setup_.host, piece.part);
  GDRX_TRY(setup_.path->launch(work, shape, stream_));
  if (number + 1 == count_) {
    gathered_ = GDRX_TRY(setup_.path->mark(stream_));
    begin_span("gather", number);
  }
  return {};
}

Result<bool> GpuPieces::gathered() {
  const bool reached = GDRX_TRY(gathered_->reached());
  if (reached) span_.end();
  return reached;
}

// One stream runs them one after the other, so that their spans do not overlap.
void GpuPieces::begin_span(std::string_view what, std::uint64_t number) {
  marked_ = number;
  span_ = trace::Span(
      setup_.track, trace::Row::gpus, trace::Kind::chunk, what,
      {pieces_.piece(number).bytes, trace::kNobody, static_cast<std::uint32_t>(number), {}});
}

}  // namespace gdrx
