// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <c10/util/Exception.h>
#include <dlfcn.h>

namespace gdrx_torch {
namespace {

// A function of CUDA's driver. Null: this process has none.
void* of_driver(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : dlsym(driver, name);
}

// c10::cuda::CUDAStream::stream() const, in every PyTorch with CUDA. A CUDAStream is a c10::Stream
// and nothing else.
constexpr const char* kStreamOf = "_ZNK3c104cuda10CUDAStream6streamEv";

// PyTorch 2.11 and later tell it by themselves.
template <class Stream>
void* handle_of(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    using Ask = void* (*)(const Stream*);
    static const auto ask = [] {
      void* const lib = dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
      return lib == nullptr ? Ask{} : reinterpret_cast<Ask>(dlsym(lib, kStreamOf));
    }();
    TORCH_CHECK(ask != nullptr, "gdrx: this PyTorch does not tell the handle of ", stream,
                ": CUDA tensors need PyTorch 2.11 or later");
    return ask(&stream);
  }
}

constexpr int kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED

// Changes the thread's mode for that of `mode`.
void exchange_mode(int& mode) {
  static const auto exchange =
      reinterpret_cast<int (*)(int*)>(of_driver("cuThreadExchangeStreamCaptureMode"));
  if (exchange != nullptr) exchange(&mode);
}

}  // namespace

gdrxStream_t native(const c10::Stream& stream) {
  void* const handle = handle_of(stream);
  return handle == nullptr ? gdrxStreamDefault : static_cast<gdrxStream_t>(handle);
}

bool is_captured(const c10::Stream& stream) {
  static const auto ask = reinterpret_cast<int (*)(void*, int*)>(of_driver("cuStreamIsCapturing"));
  void* const handle = handle_of(stream);
  int status = 0;
  // The default stream cannot be captured, and to ask it would end the capture of another.
  return ask != nullptr && handle != nullptr && ask(handle, &status) == 0 && status != 0;
}

c10::Device numbered(c10::Device device) {
  return device.has_index() ? device : c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

BesideCaptures::BesideCaptures() : mode_(kRelaxed) { exchange_mode(mode_); }
BesideCaptures::~BesideCaptures() { exchange_mode(mode_); }

}  // namespace gdrx_torch
