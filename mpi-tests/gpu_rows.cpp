// SPDX-License-Identifier: Apache-2.0
// The GPU part of a row: stream-ordered calls and graph replay, gdrx beside NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

#include "mpi-tests/die.hpp"
#include "mpi-tests/measure.hpp"

namespace gdrx::bench {
namespace {

constexpr std::uint64_t kBitsChecked = 16 << 20;  // the largest call compared with itself

}  // namespace

// Before the last sample: fresh input, poisoned output. In place forty calls leave no number that
// could be checked; there the harness checks single calls.
GpuTimes Case::time_calls(const GpuBench::Enqueue& call, bool in_place) {
  const auto fill = [&] {
    prepare(++refreshed_, in_place);
    must(gpu_in_->upload());
    must(gpu_out_->upload());
  };
  fill();
  const auto refresh = [&] {
    if (in_place) return;
    fill();
    MPI_Barrier(MPI_COMM_WORLD);
  };
  auto times = gpu_->bench->time(options_.mode, std::min(options_.warmup, 3), options_.iterations,
                                 call, refresh);
  if (!times) die(rank_, describe(times.error()));
  return std::move(*times);
}

void Case::time_on_gpu(gdrxComm_t comm, bool in_place, Row& row) {
  const Ends where = ends(in_place);
  const auto ours = [&](void* stream) { call(comm, where, stream); };
  const GpuTimes times = time_calls(ours, in_place);
  row.time = times_of(slowest_of(times.samples));
  MPI_Allreduce(&times.host, &row.host_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (!in_place && options_.checks > 0) row.wrong += wrong_in_output();
  row.same_bits = repeats_itself(ours, in_place);
  if (gpu_->nccl) time_nccl(in_place, row);
}

std::uint64_t Case::wrong_in_output() {
  must(gpu_out_->download());
  std::uint64_t wrong =
      count_wrong(out_.data(), expected_.data(), key_.type, count_) + out_.damaged_guards();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return wrong;
}

// On random numbers whose sum depends on the order of additions.
std::optional<bool> Case::repeats_itself(const GpuBench::Enqueue& call, bool in_place) {
  const std::uint64_t bytes = count_ * size_of(key_.type);
  if (!options_.sister->reduces) return std::nullopt;
  const bool narrow = key_.type == DataType::bfloat16;
  if (bytes > kBitsChecked || (!narrow && key_.type != DataType::float32)) return std::nullopt;
  std::mt19937 random(static_cast<unsigned>(rank_ * 31 + 7));
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<std::byte> first;
  bool same = true;
  const std::size_t width = size_of(key_.type);
  for (std::uint64_t i = 0; i < bytes; i += width) {
    const float value = numbers(random);  // a bfloat16 is its upper half
    const auto* const upper = reinterpret_cast<const std::byte*>(&value) + sizeof value - width;
    std::memcpy((in_place ? out_ : in_).data() + i, upper, width);
  }
  for (int repeat = 0; repeat < 4; ++repeat) {
    must((in_place ? *gpu_out_ : *gpu_in_).upload());
    call(gpu_->bench->stream());
    must(gpu_->bench->synchronize());
    std::vector<std::byte> kept(out_.data(), out_.data() + bytes);
    must(gpu_out_->download());
    std::vector<std::byte> got(out_.data(), out_.data() + bytes);
    if (in_place) std::copy(kept.begin(), kept.end(), out_.data());
    if (repeat == 0) first = got;
    same = same && got == first;
  }
  int everywhere = same ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return everywhere == 1;
}

void Case::time_nccl(bool in_place, Row& row) {
  const auto on = [&](const Ends& where) {
    return [this, where](void* stream) {
      must(gpu_->nccl->call(place_, key_.type, key_.op, where, stream));
    };
  };
  const GpuTimes plain = time_calls(on(ends(in_place)), in_place);
  if (!in_place && options_.checks > 0) row.nccl_wrong = wrong_in_output();
  row.nccl = times_of(slowest_of(plain.samples));
  MPI_Allreduce(&plain.host, &row.nccl_host_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  auto windows = gpu_->nccl->windows(count_ * size_of(key_.type));
  if (!windows) return;
  // Its windows are other memory, and are not filled anew.
  const Ends there = ends_of(place_, key_.type, windows->first, windows->second, in_place);
  const GpuTimes registered = time_calls(on(there), true);
  row.nccl_registered = times_of(slowest_of(registered.samples));
}

}  // namespace gdrx::bench
