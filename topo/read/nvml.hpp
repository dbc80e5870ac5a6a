// SPDX-License-Identifier: Apache-2.0
// The parts of NVML's stable C ABI that tell links. A test hands in a table of its own.
#pragma once

#include <array>
#include <cstdint>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

using NvmlDevice = void*;
inline constexpr int kNvmlSuccess = 0;
inline constexpr unsigned kMostNvLinks = 18;  // Hopper's and Blackwell's
inline constexpr unsigned kMostC2cLinks = 32;

struct NvmlPci {
  std::array<char, 16> legacy;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(NvmlPci) == 68);

struct NvmlField {
  unsigned field = 0;
  unsigned scope = 0;  // which link
  long long timestamp = 0;
  long long latency = 0;
  unsigned type = 0;
  int status = 0;
  std::uint64_t value = 0;  // these fields are unsigned int, in its low half
};
static_assert(sizeof(NvmlField) == 40);
inline constexpr unsigned kC2cCount = 170;
inline constexpr unsigned kC2cStatus = 171;     // 1: active
inline constexpr unsigned kC2cBandwidth = 172;  // MB/s of a link

/// The last two are newer than the others and may be null.
struct NvmlTable {
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*pci)(NvmlDevice, NvmlPci*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*link_state)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*link_remote)(NvmlDevice, unsigned, NvmlPci*) = nullptr;
  int (*capability)(NvmlDevice, int*, int*) = nullptr;
  int (*fields)(NvmlDevice, int, NvmlField*) = nullptr;
};

/// Adds what it tells of the GPUs of `parts`: by bus id, whatever order and mask it has.
void add_nvml(const NvmlTable& nvml, Parts& parts);

}  // namespace gdrx::topo
