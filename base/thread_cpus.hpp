// SPDX-License-Identifier: Apache-2.0
// Where gdrx's own threads run, by GDRX_THREAD_CPUS: those that move data or write doorbells.
// Others wait, or make what libraries start threads for, and keep the program's CPUs. The program's
// threads are never touched.
#pragma once

#include <pthread.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/log.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

/// In ascending order, each once.
using CpuNumbers = std::vector<int>;

/// The CPUs near one of these devices, each given by its folder in sysfs: by that, or by the
/// nearest folder above that tells. Empty: none tells, or what it tells is no list.
CpuNumbers cpus_near(const std::vector<std::string>& folders);

/// A polling thread of the program may be on any CPU. A single one near might be that one.
inline constexpr std::size_t kLeastNear = 2;

/// Of the CPUs that a thread may use those near its devices, of which the first counts most, if
/// they are at least so many. Empty: it stays on all of them. Pure.
CpuNumbers choose_cpus(const CpuNumbers& may_use, std::span<const CpuNumbers> near,
                       std::size_t least = kLeastNear);

/// The CPUs that `thread`, one of this process's, may run on; any number of them. Empty: the kernel
/// does not say.
CpuNumbers cpus_of_thread(pthread_t thread);

/// Errc::unsupported names what this process may not use of a list in `setting`: other hosts of the
/// job may have those CPUs.
Result<void> check_thread_cpus(std::string_view setting);

/// Where a thread of gdrx's own belongs.
struct ThreadHome {
  std::string setting = "auto";    // GDRX_THREAD_CPUS
  std::vector<CpuNumbers> near{};  // as choose_cpus() takes them
  Log log{};
  std::size_t least = kLeastNear;
};
/// Names the thread, by 15 bytes at most, and puts it on its CPUs. What the kernel refuses is a
/// line of the log. Never from the data path.
void place_thread(pthread_t thread, const char* name, const ThreadHome& home) noexcept;

}  // namespace gdrx
