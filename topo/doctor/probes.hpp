// SPDX-License-Identifier: Apache-2.0
// Libraries that may be missing: loaded when asked, with their stable C ABI written down here.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <type_traits>

#include "gdrx/doctor.hpp"

namespace gdrx::doctor {

Result<CudaFacts> probe_cuda();
Result<NvmlFacts> probe_nvml();
Result<VerbsFacts> probe_verbs();

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

inline Result<Library> open_library(const char* name) {
  Library library(dlopen(name, RTLD_NOW | RTLD_LOCAL));
  if (!library) return fail(Errc::unsupported, std::string(name) + " cannot be loaded");
  return library;
}

template <class Function>
bool find_symbol(const Library& library, Function& function, const char* name) {
  function = reinterpret_cast<std::remove_reference_t<Function>>(dlsym(library.get(), name));
  return function != nullptr;
}

}  // namespace gdrx::doctor
