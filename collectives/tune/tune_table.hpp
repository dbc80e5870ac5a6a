// SPDX-License-Identifier: Apache-2.0
// What `gdrx tune` measured: for each way of an allReduce its time by size. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/plan.hpp"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::tune {

struct Point {
  Bytes bytes = 0;
  double us = 0;  // of the slowest rank, median
  friend bool operator==(const Point&, const Point&) = default;
};

/// Transports of GPU memory: of any, and of what all ranks have registered.
inline constexpr std::string_view kGpu = "gpu";
inline constexpr std::string_view kGpuRegistered = "gpu-registered";

/// One way at one place.
struct Curve {
  std::string transport;  // "shm", "ucx", "verbs", kGpu, kGpuRegistered
  plan::Algorithm algorithm{};
  int ranks = 0;
  int hosts = 1;
  std::vector<Point> points;  // by size, each size once
  friend bool operator==(const Curve&, const Curve&) = default;
};

inline bool is_of_gpus(const Curve& curve) noexcept {
  return curve.transport == kGpu || curve.transport == kGpuRegistered;
}

/// Where a table holds: the same words as of the host that it was measured on.
struct Platform {
  std::string cpu;  // "AMD EPYC"
  int cpus = 0;     // that the ranks of one host could use
  std::string gpu;  // "NVIDIA H200"; empty: nothing was measured on GPUs
  friend bool operator==(const Platform&, const Platform&) = default;
};

struct Table {
  Platform platform;
  std::vector<Curve> curves;
  friend bool operator==(const Table&, const Table&) = default;
};

/// Between two measured sizes a straight line: a time is nearly a start and a rate. Nothing outside
/// of what was measured.
std::optional<double> time_of(std::span<const Point> points, Bytes bytes) noexcept;

/// The curves of so many ranks on so many hosts.
std::vector<Curve> curves_at(const Table& table, int ranks, int hosts);
/// Of curves of one place, the points of this way, or nothing.
std::span<const Point> find(std::span<const Curve> curves, std::string_view transport,
                            plan::Algorithm algorithm) noexcept;

std::string to_json(const Table& table);
/// Bounded and strict: whatever is unknown, doubled, out of order or no time is refused with one
/// line that says where.
Result<Table> from_json(std::string_view text);
inline constexpr std::size_t kMostText = std::size_t{1} << 20;

/// The table of a file, and a number that differs if the text does.
struct Loaded {
  Table table;
  std::uint64_t fingerprint = 0;
};
Result<Loaded> load(const std::string& file);

/// "AMD EPYC 9554", as /proc/cpuinfo has it; empty if it does not.
std::string cpu_model();

/// A table that came with gdrx, or null: of a GPU by its name, of host memory by the CPU's name and
/// number.
const Table* known(const Platform& platform);
/// Each of them as text, for the tests.
std::span<const std::string_view> known_texts() noexcept;

}  // namespace gdrx::tune
