// SPDX-License-Identifier: Apache-2.0
#include "base/thread_cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <semaphore>
#include <system_error>

#include "base/cpu_list.hpp"
#include "base/own_thread.hpp"

namespace gdrx {
namespace {

namespace fs = std::filesystem;

// A page of the largest size: sysfs gives no more.
constexpr std::size_t kLongestList = 65536;
// From a device of a bus on a PCI device, such as virtio's, to that.
constexpr int kFoldersAbove = 4;

// The kernel refuses a set that is shorter than its own, which may have more than the 1024 CPUs of
// a cpu_set_t.
class CpuMask {
 public:
  CpuMask() : set_(CPU_ALLOC(kMostCpus)) {
    if (!set_) throw std::bad_alloc();
    CPU_ZERO_S(kBytes, set_.get());
  }
  explicit CpuMask(const CpuNumbers& cpus) : CpuMask() {
    for (const int cpu : cpus) CPU_SET_S(cpu, kBytes, set_.get());
  }
  static constexpr std::size_t kBytes = CPU_ALLOC_SIZE(kMostCpus);
  cpu_set_t* get() const noexcept { return set_.get(); }
  CpuNumbers numbers() const {
    CpuNumbers all;
    for (int cpu = 0; cpu < kMostCpus; ++cpu) {
      if (CPU_ISSET_S(cpu, kBytes, set_.get())) all.push_back(cpu);
    }
    return all;
  }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
  };
  std::unique_ptr<cpu_set_t, Free> set_;
};

CpuNumbers both(const CpuNumbers& a, const CpuNumbers& b) {
  CpuNumbers common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common;
}

bool is_list(std::string_view setting) { return setting != "auto" && setting != "off"; }

/// A thread that sleeps until it ends: its CPUs may be tried, and it need not run on them.
class Sleeper {
 public:
  ~Sleeper() { wake_.release(); }
  pthread_t handle() { return thread_.handle(); }

 private:
  std::binary_semaphore wake_{0};
  OwnThread thread_{"gdrx-cpus", [this] { wake_.acquire(); }};
};

// What is left of the list where this process may run. The kernel drops the rest without a word,
// and the masks of the program's threads say nothing of the cpuset: a thread has to try. On CPUs
// that others poll on by a real-time policy it would never end: it is put back before.
CpuNumbers tried(const CpuNumbers& wanted) {
  const CpuMask mask(wanted);
  const CpuMask own(cpus_of_thread(pthread_self()));
  Sleeper sleeper;
  if (pthread_setaffinity_np(sleeper.handle(), CpuMask::kBytes, mask.get()) != 0) return {};
  const CpuMask got;
  const int error = pthread_getaffinity_np(sleeper.handle(), CpuMask::kBytes, got.get());
  pthread_setaffinity_np(sleeper.handle(), CpuMask::kBytes, own.get());
  return error == 0 ? both(wanted, got.numbers()) : CpuNumbers();
}

CpuNumbers told_by(const std::string& folder) {
  std::error_code error;
  fs::path at = fs::canonical(folder, error);
  if (folder.empty() || error) return {};
  for (int above = 0; above <= kFoldersAbove && at.has_relative_path(); ++above) {
    std::ifstream file(at / "local_cpulist");
    if (file) {
      std::string text(kLongestList, '\0');
      file.read(text.data(), static_cast<std::streamsize>(text.size()));
      text.resize(static_cast<std::size_t>(file.gcount()));
      if (text.ends_with('\n')) text.pop_back();
      return is_cpu_list(text) ? cpus_of_list(text) : CpuNumbers();
    }
    at = at.parent_path();
  }
  return {};
}

void move_thread(pthread_t thread, const char* name, const ThreadHome& home) {
  const bool list = is_list(home.setting);
  const CpuNumbers before = cpus_of_thread(thread);
  const CpuNumbers cpus =
      list ? cpus_of_list(home.setting) : choose_cpus(before, home.near, home.least);
  if (cpus.empty() || cpus == before) {
    home.log.info("thread {}: CPUs {}", name, list_of_cpus(before));
    return;
  }
  const CpuMask mask(cpus);
  const int error = pthread_setaffinity_np(thread, CpuMask::kBytes, mask.get());
  if (error != 0) {
    const std::string line =
        fmt::format("thread {} stays on CPUs {}: {} are refused: {}", name, list_of_cpus(before),
                    list_of_cpus(cpus), std::strerror(error));
    list ? home.log.warn("{}", line) : home.log.info("{}", line);  // auto was not asked for
    return;
  }
  // As the kernel has it: a cpuset that has shrunk since the list was tried leaves fewer.
  home.log.info("thread {}: CPUs {}, {}", name, list_of_cpus(cpus_of_thread(thread)),
                list ? "by GDRX_THREAD_CPUS" : "near what it works with");
}

}  // namespace

CpuNumbers cpus_near(const std::vector<std::string>& folders) {
  CpuNumbers all;
  for (const std::string& folder : folders) {
    CpuNumbers merged;
    const CpuNumbers own = told_by(folder);
    std::set_union(all.begin(), all.end(), own.begin(), own.end(), std::back_inserter(merged));
    all = std::move(merged);
  }
  return all;
}

CpuNumbers choose_cpus(const CpuNumbers& may_use, std::span<const CpuNumbers> near,
                       std::size_t least) {
  CpuNumbers chosen;
  for (const CpuNumbers& of_device : near) {
    CpuNumbers narrower = both(chosen.empty() ? may_use : chosen, of_device);
    if (narrower.size() >= least) chosen = std::move(narrower);
  }
  return chosen;
}

CpuNumbers cpus_of_thread(pthread_t thread) {
  const CpuMask mask;
  if (pthread_getaffinity_np(thread, CpuMask::kBytes, mask.get()) != 0) return {};
  return mask.numbers();
}

Result<void> check_thread_cpus(std::string_view setting) {
  if (!is_list(setting)) return {};
  const CpuNumbers wanted = cpus_of_list(setting);
  CpuNumbers left;
  try {
    left = tried(wanted);
  } catch (const std::system_error& error) {
    return fail(Errc::system, "a thread that tries GDRX_THREAD_CPUS", error.code().value());
  }
  CpuNumbers missing;
  std::set_difference(wanted.begin(), wanted.end(), left.begin(), left.end(),
                      std::back_inserter(missing));
  if (missing.empty()) return {};
  return fail(Errc::unsupported,
              fmt::format("GDRX_THREAD_CPUS={}: {} {}: not there, or not allowed to this process",
                          setting, missing.size() == 1 ? "CPU" : "CPUs", list_of_cpus(missing)));
}

void place_thread(pthread_t thread, const char* name, const ThreadHome& home) noexcept {
  pthread_setname_np(thread, name);
  if (home.setting == "off") return;
  try {
    move_thread(thread, name, home);
  } catch (...) {  // no memory: it runs where it is  NOLINT(bugprone-empty-catch)
  }
}

}  // namespace gdrx
