// SPDX-License-Identifier: Apache-2.0
#include "mpi/touched.hpp"

#include <algorithm>
#include <limits>

#include "mpi/pack.hpp"

namespace gdrx::mpi {
namespace {

struct Shape {
  std::ptrdiff_t lowest = 0;  // of one element's bytes
  std::ptrdiff_t end = 0;
  std::ptrdiff_t extent = 0;
};

bool measure(MPI_Datatype type, Shape& shape) noexcept {
  MPI_Aint bound = 0;
  MPI_Aint extent = 0;
  MPI_Aint lowest = 0;
  MPI_Aint true_extent = 0;
  static const MPI_Datatype kNone = MPI_DATATYPE_NULL;
  if (type == kNone || number_of(type) == 0 ||
      real::Type_get_extent(type, &bound, &extent) != MPI_SUCCESS ||
      real::Type_get_true_extent(type, &lowest, &true_extent) != MPI_SUCCESS) {
    return false;
  }
  shape = {lowest, lowest + true_extent, extent};
  return true;
}

void append(std::vector<Run>& runs, const Run& run) {
  if (!runs.empty() && runs.back().to == run.from) {
    runs.back().to = run.to;
  } else {
    runs.push_back(run);
  }
}

// What an element writes: MPI unpacks bytes that are not zero into bytes that are.
std::vector<Run> runs_of_element(MPI_Datatype handle, const Type& type, const Shape& shape) {
  const auto bytes = static_cast<std::size_t>(shape.end - shape.lowest);
  if (type.size == bytes) return {{shape.lowest, shape.end}};
  std::vector<std::byte> written(bytes);
  const std::vector<std::byte> ones(type.size, std::byte{0xFF});
  const Side element{
      .at = written.data() - shape.lowest, .blocks = 1, .count = 1, .handle = handle, .type = type};
  unpack_block(element, 0, ones.data());
  std::vector<Run> runs;
  for (std::size_t i = 0; i < bytes; ++i) {
    const auto at = shape.lowest + static_cast<std::ptrdiff_t>(i);
    if (written[i] != std::byte{0}) append(runs, {at, at + 1});
  }
  return runs;
}

}  // namespace

// CUDA copies them at once.
std::vector<Rows> rows_of(const std::vector<Run>& runs) {
  constexpr std::ptrdiff_t kMost = std::numeric_limits<int>::max();  // of CUDA's pitch
  std::vector<Rows> all;
  for (const Run& run : runs) {
    if (!all.empty()) {
      Rows& rows = all.back();
      const std::ptrdiff_t length = rows.first.to - rows.first.from;
      const std::ptrdiff_t behind = run.from - rows.first.from;
      const std::ptrdiff_t stride = rows.count == 1 ? behind : rows.stride;
      if (run.to - run.from == length && stride >= length && stride <= kMost &&
          behind == stride * static_cast<std::ptrdiff_t>(rows.count)) {
        rows.stride = stride;
        ++rows.count;
        continue;
      }
    }
    all.push_back({run});
  }
  return all;
}

void Touched::add(const Run& run) {
  if (run.from >= run.to) return;
  bytes_ += run.to - run.from;
  const bool is_first = bounds_.from == bounds_.to;
  bounds_ = is_first ? run : Run{std::min(bounds_.from, run.from), std::max(bounds_.to, run.to)};
  if (wants_ == Wants::runs) append(runs_, run);
}

void Touched::add(MPI_Datatype type, std::ptrdiff_t place, std::ptrdiff_t count,
                  std::ptrdiff_t shift) {
  Shape shape;
  if (count <= 0 || !measure(type, shape)) return;
  const std::ptrdiff_t begin = place * shape.extent + shift;
  const std::ptrdiff_t last = begin + (count - 1) * shape.extent;
  const Run whole{std::min(begin, last) + shape.lowest, std::max(begin, last) + shape.end};
  const auto known = type_of(type);
  if (!known || known->plain) return add(whole);
  if (wants_ == Wants::bounds) {
    add(whole);
    bytes_ += static_cast<std::ptrdiff_t>(known->size) * count - (whole.to - whole.from);
    return;
  }
  const std::vector<Run> element = runs_of_element(type, *known, shape);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const std::ptrdiff_t at = begin + i * shape.extent;
    for (const Run& run : element) add(Run{at + run.from, at + run.to});
  }
}

void Touched::add_blocks(MPI_Datatype type, std::ptrdiff_t count, int blocks) {
  add(type, 0, count * blocks);
}

void Touched::add_blocks(MPI_Datatype type, List counts, List places, int blocks) {
  if (counts == nullptr || places == nullptr) return;
  for (int i = 0; i < blocks; ++i) add(type, places[i], counts[i]);
}

void Touched::add_blocks(const MPI_Datatype* types, List counts, List places, int blocks) {
  if (types == nullptr || counts == nullptr || places == nullptr) return;
  for (int i = 0; i < blocks; ++i) add(types[i], 0, counts[i], places[i]);
}

}  // namespace gdrx::mpi
