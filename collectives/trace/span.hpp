// SPDX-License-Identifier: Apache-2.0
// One mark a place: a Span is a range of NVTX and an event of the trace file (GDRX_TRACE).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "collectives/trace/event.hpp"
#include "collectives/trace/recording.hpp"
#include "gdrx/log.hpp"
#include "gdrx/types.hpp"

namespace gdrx::trace {

/// Whoever watches a communicator. Where nobody does there is none, and a Span of a null Track
/// costs a comparison.
class Track {
 public:
  /// `file`: GDRX_TRACE, or empty. Null if neither a file is asked for nor a tool listens.
  static std::unique_ptr<Track> create(const std::string& file, Rank rank);
  /// Of calls that have no communicator: NVTX alone. Null if no tool listens.
  static Track* process() noexcept;

  /// Whether there is a file. Without one, none of the next three may be called.
  bool has_file() const noexcept { return recording_ != nullptr; }
  /// A span whose times become known later than they were: for the file alone, as NVTX knows only
  /// "now". Its number, for set(). Any thread.
  std::uint64_t add(Event event) noexcept {
    event.communicator = communicator_;
    return recording_->ring().add(event);
  }
  void set(std::uint64_t number, Instant begin, Duration length) noexcept {
    recording_->ring().set(number, begin, length);
  }
  /// A call on the GPU will have no span.
  void count_untimed() noexcept { recording_->count_untimed(); }

  /// Brings the file up to date, if there is one; the log says what it has, or why not. Any thread.
  void write(const Log& log);

 private:
  friend class Span;
  std::shared_ptr<Recording> recording_;  // null: NVTX alone
  std::uint16_t communicator_ = 0;
  bool nvtx_ = false;
};

struct Detail {
  std::uint64_t bytes = 0;
  std::int32_t peer = kNobody;
  std::uint32_t index = kNoIndex;
  std::string_view algorithm;  // a literal
};

/// From begin to end, which is destruction at the latest. Its Track outlives it. A Kind::call ends
/// on the thread that began it, after all that began there later.
class Span {
 public:
  Span() = default;
  Span(Track* track, Row row, Kind kind, std::string_view name, const Detail& detail = {}) {
    if (track != nullptr) open(*track, row, kind, name, detail);
  }
  ~Span() { end(); }
  Span(Span&& other) noexcept { swap(other); }
  Span& operator=(Span&& other) noexcept {
    end();
    swap(other);
    return *this;
  }
  void end() noexcept {
    if (track_ != nullptr) close();
  }
  bool is_open() const noexcept { return track_ != nullptr; }

 private:
  void open(Track& track, Row row, Kind kind, std::string_view name, const Detail& detail) noexcept;
  void close() noexcept;
  void swap(Span& other) noexcept {
    std::swap(track_, other.track_);
    std::swap(kind_, other.kind_);
    std::swap(begin_, other.begin_);
    std::swap(number_, other.number_);
    std::swap(range_, other.range_);
  }

  Track* track_ = nullptr;  // null: not open
  Kind kind_{};
  Instant begin_{};
  std::uint64_t number_ = 0;  // in the ring
  std::uint64_t range_ = 0;   // NVTX's
};

/// What runs in one row of chunks: the chunk, and whom it waits for.
class RowMarks {
 public:
  RowMarks(Track& track, Row row) : track_(track), row_(row) {}
  void begin_chunk(std::string_view name, std::uint64_t index, std::uint64_t bytes) noexcept {
    chunk_ = Span(&track_, row_, Kind::chunk, name,
                  {bytes, kNobody, static_cast<std::uint32_t>(index), {}});
  }
  void end_chunk() noexcept {
    wait_.end();
    chunk_.end();
  }
  bool has_chunk() const noexcept { return chunk_.is_open(); }
  /// Called at every vain attempt; one Span for as long as `peer` stays the same.
  void waits(std::string_view what, std::int32_t peer, std::uint64_t bytes) noexcept {
    if (wait_.is_open() && peer == waited_for_) return;
    wait_.end();
    wait_ = Span(&track_, row_, Kind::wait, what, {bytes, peer, kNoIndex, {}});
    waited_for_ = peer;
  }
  void goes_on() noexcept { wait_.end(); }
  Span step(std::string_view name, const Detail& detail) noexcept {
    return Span(&track_, row_, Kind::step, name, detail);
  }

 private:
  Track& track_;
  Row row_;
  Span chunk_;
  Span wait_;  // inside the chunk
  std::int32_t waited_for_ = kNobody;
};

}  // namespace gdrx::trace
