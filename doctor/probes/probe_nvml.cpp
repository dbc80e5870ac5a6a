// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <string>

#include "base/system_library.hpp"
#include "doctor/probes/probes.hpp"

namespace gdrx::doctor {
namespace {

struct NvmlPci {
  std::array<char, 16> legacy;
  std::array<unsigned, 5> numbers;
  std::array<char, 32> bus;
};
static_assert(sizeof(NvmlPci) == 68);
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
constexpr int kLibraryMismatch = 18;  // the library and the loaded module are of two versions

struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  int (*pci)(void*, NvmlPci*) = nullptr;
  int (*bar1)(void*, NvmlMemory*) = nullptr;
  int (*memory)(void*, NvmlMemory*) = nullptr;
  int (*mig)(void*, unsigned*, unsigned*) = nullptr;
  int (*persistence)(void*, int*) = nullptr;
};

bool take(SystemLibrary& library, Nvml& nvml) {
  return library.take({
      {nvml.mig, "nvmlDeviceGetMigMode", Symbol::Need::newer},  // absent before R450
      {nvml.init, "nvmlInit_v2"},
      {nvml.shutdown, "nvmlShutdown"},
      {nvml.version, "nvmlSystemGetDriverVersion"},
      {nvml.count, "nvmlDeviceGetCount_v2"},
      {nvml.handle, "nvmlDeviceGetHandleByIndex_v2"},
      {nvml.pci, "nvmlDeviceGetPciInfo_v3"},
      {nvml.bar1, "nvmlDeviceGetBAR1MemoryInfo"},
      {nvml.memory, "nvmlDeviceGetMemoryInfo"},
      {nvml.persistence, "nvmlDeviceGetPersistenceMode"},
  });
}

NvmlDevice device_facts(const Nvml& nvml, void* device) {
  NvmlDevice found;
  NvmlPci pci{};
  NvmlMemory bar1{};
  NvmlMemory memory{};
  unsigned mig = 0;
  unsigned pending = 0;
  int persistence = 1;
  if (nvml.pci(device, &pci) == 0) found.bus = pci.bus.data();
  if (nvml.bar1(device, &bar1) == 0) {
    found.bar1_bytes = bar1.total;
    found.bar1_free = bar1.free;
  }
  if (nvml.memory(device, &memory) == 0) found.memory_bytes = memory.total;
  found.mig = nvml.mig != nullptr && nvml.mig(device, &mig, &pending) == 0 && mig != 0;
  found.persistence = nvml.persistence(device, &persistence) != 0 || persistence != 0;
  return found;
}

}  // namespace

Result<NvmlFacts> probe_nvml() {
  SystemLibrary library = SystemLibrary::open({"libnvidia-ml.so.1"});
  Nvml nvml;
  if (!take(library, nvml)) return tl::unexpected(library.error());
  if (const int status = nvml.init(); status == kLibraryMismatch) {
    return fail(Errc::mismatch, "nvmlInit: driver/library version mismatch (NVML error 18)");
  } else if (status != 0) {
    return fail(Errc::system, fmt::format("nvmlInit: NVML error {}", status));
  }
  NvmlFacts facts;
  std::array<char, 96> version{};
  unsigned count = 0;
  if (nvml.version(version.data(), version.size()) == 0) facts.driver = version.data();
  if (nvml.count(&count) != 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    void* device = nullptr;
    if (nvml.handle(i, &device) == 0) facts.devices.push_back(device_facts(nvml, device));
  }
  nvml.shutdown();
  return facts;
}

}  // namespace gdrx::doctor
