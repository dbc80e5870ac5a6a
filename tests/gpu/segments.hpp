// SPDX-License-Identifier: Apache-2.0
// GPU memory as PyTorch's expandable segments have it: reserved addresses, physical handles mapped
// there side by side.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace gdrx::gpu {

template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result) !=
      cudaSuccess) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

class Segments {
 public:
  static constexpr std::uint64_t kPage = 2 << 20;

  /// A handle for each of `pages`, of so many pages of 2 MiB. `exportable`: processes may share it.
  Segments(int device, std::vector<std::uint64_t> pages, bool exportable = true)
      : pages_(std::move(pages)) {
    CUmemAllocationProp what{};
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    if (exportable) what.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    must(driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&at_, room(), 0, 0,
                                                                                0),
         "cuMemAddressReserve");
    CUdeviceptr next = at_;
    for (const std::uint64_t count : pages_) {
      CUmemGenericAllocationHandle handle = 0;
      must(driver_function<decltype(&cuMemCreate)>("cuMemCreate")(&handle, count * kPage, &what, 0),
           "cuMemCreate");
      must(driver_function<decltype(&cuMemMap)>("cuMemMap")(next, count * kPage, 0, handle, 0),
           "cuMemMap");
      handles_.push_back(handle);
      next += count * kPage;
    }
    open_to(device);
  }
  ~Segments() {
    CUdeviceptr next = at_;
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      driver_function<decltype(&cuMemUnmap)>("cuMemUnmap")(next, pages_[i] * kPage);
      driver_function<decltype(&cuMemRelease)>("cuMemRelease")(handles_[i]);
      next += pages_[i] * kPage;
    }
    driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree")(at_, room());
  }
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  std::byte* data() const { return reinterpret_cast<std::byte*>(at_); }
  /// To read and write for another GPU, too.
  void open_to(int device) const {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    must(driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess")(at_, bytes(), &access, 1),
         "cuMemSetAccess");
  }
  /// All that is mapped; behind it is a page that is not.
  std::uint64_t bytes() const {
    return kPage * std::accumulate(pages_.begin(), pages_.end(), std::uint64_t{0});
  }

 private:
  std::uint64_t room() const { return bytes() + kPage; }
  static void must(CUresult status, const char* what) {
    if (status == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: %d\n", what, static_cast<int>(status));
    std::abort();
  }

  std::vector<std::uint64_t> pages_;
  std::vector<CUmemGenericAllocationHandle> handles_;
  CUdeviceptr at_ = 0;
};

}  // namespace gdrx::gpu
