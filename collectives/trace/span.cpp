// SPDX-License-Identifier: Apache-2.0
#include "collectives/trace/span.hpp"

#include "collectives/trace/nvtx.hpp"

namespace gdrx::trace {

std::unique_ptr<Track> Track::create(const std::string& file, Rank rank) {
  const bool nvtx = nvtx::listens();
  if (file.empty() && !nvtx) return nullptr;
  auto track = std::make_unique<Track>();
  track->nvtx_ = nvtx;
  if (!file.empty()) {
    track->recording_ = Recording::open(file, rank);
    track->communicator_ = track->recording_->new_communicator();
  }
  return track;
}

Track* Track::process() noexcept {
  static Track* const kTrack = [] {
    static Track track;
    track.nvtx_ = nvtx::listens();
    return track.nvtx_ ? &track : nullptr;
  }();
  return kTrack;
}

void Track::write(const Log& log) {
  if (!recording_) return;
  const auto written = recording_->write();
  if (!written) {
    log.warn("{}", describe(written.error()));
    return;
  }
  log.info("trace: {} events in {}, {} dropped before them", written->events, recording_->name(),
           written->dropped);
}

void Span::open(Track& track, Row row, Kind kind, std::string_view name,
                const Detail& detail) noexcept {
  track_ = &track;
  kind_ = kind;
  begin_ = steady_clock().now();
  const Event event{kind,         row,         name,         detail.algorithm,
                    detail.bytes, detail.peer, detail.index, track.communicator_,
                    begin_,       kOpen};
  if (track.recording_) number_ = track.recording_->ring().add(event);
  if (!track.nvtx_) return;
  if (kind == Kind::call) {
    nvtx::push(event);
  } else {
    range_ = nvtx::start(event);
  }
}

void Span::close() noexcept {
  if (track_->nvtx_) {
    if (kind_ == Kind::call) {
      nvtx::pop();
    } else {
      nvtx::end(range_);
    }
  }
  if (track_->recording_) track_->recording_->ring().end(number_, steady_clock().now() - begin_);
  track_ = nullptr;
}

}  // namespace gdrx::trace
