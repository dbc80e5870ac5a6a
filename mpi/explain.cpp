// SPDX-License-Identifier: Apache-2.0
#include "mpi/explain.hpp"

#include <cstdio>
#include <string>

#include "mpi/abi/abi.hpp"
#include "mpi/settings.hpp"

namespace gdrx::mpi {
namespace {

struct Cell {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> nanoseconds{0};
};

std::array<std::array<Cell, kVerdicts>, kForms * kKinds> cells;  // those of a form together

constexpr std::array<const char*, kVerdicts> kWhy{{
    "taken",
    "passed on: one rank alone, or between two groups",
    "passed on: ranks of several MPI_COMM_WORLDs",
    "passed on: ranks on several hosts",
    "passed on: gdrx has no communicator for them (a line says why)",
    "passed on: the first calls of a communicator",
    "passed on: of a size at which MPI is as fast",
    "passed on: no bytes",
    "passed on: gdrx does not reduce this type",
    "passed on: an operator of the program's",
    "passed on: arguments that MPI refuses",
}};

std::string name_of(std::size_t cell) {
  const auto form = static_cast<Form>(cell / kKinds);
  std::string name = kTraits[cell % kKinds].name;
  if (form == Form::blocking) return name;
  if (form == Form::persistent) return name + "_init";
  name[0] = static_cast<char>(name[0] - 'A' + 'a');
  return "I" + name;
}

}  // namespace

void note_call(Kind kind, Form form, Verdict verdict, std::size_t bytes,
               std::uint64_t nanoseconds) noexcept {
  Cell& cell = cells[static_cast<std::size_t>(form) * kKinds + static_cast<std::size_t>(kind)]
                    [static_cast<std::size_t>(verdict)];
  cell.calls.fetch_add(1, std::memory_order_relaxed);
  cell.bytes.fetch_add(bytes, std::memory_order_relaxed);
  cell.nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
}

void explain() noexcept {
  static std::atomic<bool> told{false};
  if (!settings().explain || told.exchange(true)) return;
  const MPI_Comm world = MPI_COMM_WORLD;
  if (!is_served()) {
    std::fprintf(stderr, "gdrx: %s is before a program whose MPI is not %s: nothing is taken\n",
                 kAbi.object, kAbi.mpis);
    return;
  }
  int rank = 0;
  if (real::Comm_rank(world, &rank) != MPI_SUCCESS || rank != 0) return;
  std::uint64_t all = 0;
  std::uint64_t eligible = 0;
  std::uint64_t taken = 0;
  for (std::size_t kind = 0; kind < kForms * kKinds; ++kind) {
    for (std::size_t why = 0; why < kVerdicts; ++why) {
      const Cell& cell = cells[kind][why];
      const std::uint64_t calls = cell.calls.load();
      if (calls == 0) continue;
      all += calls;
      if (is_eligible(static_cast<Verdict>(why))) eligible += calls;
      if (why == 0) taken += calls;
      std::fprintf(stderr, "gdrx: MPI_%s: %llu %s, %llu bytes, %.3f ms\n", name_of(kind).c_str(),
                   static_cast<unsigned long long>(calls), kWhy[why],
                   static_cast<unsigned long long>(cell.bytes.load()),
                   static_cast<double>(cell.nanoseconds.load()) / 1e6);
    }
  }
  std::fprintf(stderr,
               "gdrx: rank 0: %llu of %llu collective calls were taken, %llu were eligible\n",
               static_cast<unsigned long long>(taken), static_cast<unsigned long long>(all),
               static_cast<unsigned long long>(eligible));
}

}  // namespace gdrx::mpi
