// SPDX-License-Identifier: Apache-2.0
// A tool for NVTX_INJECTION64_PATH that writes what it hears to $GDRX_TEST_NVTX.PID, a line each:
//   domain NAME | category NUMBER NAME | push THREAD CATEGORY BYTES TEXT | pop THREAD
//   start ID CATEGORY BYTES TEXT | end ID
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace {

std::FILE* out = nullptr;
std::mutex mutex;
std::atomic<nvtxRangeId_t> next_range{1};
std::atomic<int> next_thread{0};
thread_local const int thread = next_thread++;
int depth_of_domain = 0;

template <class... Values>
void write(const char* format, Values... values) {
  const std::lock_guard lock(mutex);
  std::fprintf(out, format, values...);
  std::fflush(out);
}

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  write("domain %s\n", name);
  return reinterpret_cast<nvtxDomainHandle_t>(&depth_of_domain);
}

void NVTX_API name_category(nvtxDomainHandle_t, std::uint32_t category, const char* name) {
  write("category %u %s\n", category, name);
}

int NVTX_API push(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  write("push %d %u %llu %s\n", thread, event->category,
        static_cast<unsigned long long>(event->payload.ullValue), event->message.ascii);
  return 0;
}

int NVTX_API pop(nvtxDomainHandle_t) {
  write("pop %d\n", thread);
  return 0;
}

nvtxRangeId_t NVTX_API start(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) {
  const nvtxRangeId_t id = next_range++;
  write("start %llu %u %llu %s\n", static_cast<unsigned long long>(id), event->category,
        static_cast<unsigned long long>(event->payload.ullValue), event->message.ascii);
  return id;
}

void NVTX_API end(nvtxDomainHandle_t, nvtxRangeId_t id) {
  write("end %llu\n", static_cast<unsigned long long>(id));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const char* name = std::getenv("GDRX_TEST_NVTX");
  if (name == nullptr) return 0;
  out = std::fopen((std::string(name) + "." + std::to_string(getpid())).c_str(), "w");
  if (out == nullptr) return 0;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  const auto set = [&](int id, auto function) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, &create_domain);
  set(NVTX_CBID_CORE2_DomainNameCategoryA, &name_category);
  set(NVTX_CBID_CORE2_DomainRangePushEx, &push);
  set(NVTX_CBID_CORE2_DomainRangePop, &pop);
  set(NVTX_CBID_CORE2_DomainRangeStartEx, &start);
  set(NVTX_CBID_CORE2_DomainRangeEnd, &end);
  return 1;
}
