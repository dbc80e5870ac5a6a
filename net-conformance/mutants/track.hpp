// SPDX-License-Identifier: Apache-2.0
// A good plugin behind a wrapper that knows what is under way: what mutants are made from.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/abi/net.hpp"

namespace gdrx::mutants {

using nccl::NetDeviceHandle;
using nccl::NetResult;
using nccl::NetV12;

/// A request that is under way.
struct Note {
  void* comm = nullptr;
  bool is_send = false;
  int n = 0;  // 0: no such request
  std::array<std::byte*, 8> data{};
  std::array<std::size_t, 8> sizes{};
  std::array<int, 8> tags{};
  int tests = 0;
  std::uint64_t age = 0;  // requests posted before it
};

/// The good plugin's table, its requests tracked. Any thread.
const NetV12& good();
Note note_of(void* request, bool count = true);         // `count`: of tests
void* youngest_of(void* comm);                          // the request posted last
int under_way(void* comm, bool grouped_alone = false);  // requests
int posted(void* comm);                                 // receives, ever
/// Of this process.
inline std::atomic<int> g_isends{0};
inline std::atomic<int> g_irecvs{0};

/// Spoils one thing of the table.
struct Mutant {
  const char* name;
  void (*spoil)(NetV12& table);
};
std::span<const Mutant> device_mutants();
std::span<const Mutant> connect_mutants();
std::span<const Mutant> life_mutants();
std::span<const Mutant> transfer_mutants();
std::span<const Mutant> memory_mutants();
std::span<const Mutant> request_mutants();
std::span<const Mutant> group_mutants();
std::span<const Mutant> close_mutants();
std::span<const Mutant> fork_mutants();

/// More than any call that "does not block" may take.
void dawdle();

}  // namespace gdrx::mutants
