// SPDX-License-Identifier: Apache-2.0
// Libraries that may be missing: loaded when asked, with their stable C ABI written down here.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "gdrx/doctor.hpp"

namespace gdrx::doctor {

Result<CudaFacts> probe_cuda();
Result<NvmlFacts> probe_nvml();
Result<VerbsFacts> probe_verbs();

/// By netlink; needs no rights. The error's native code is EOPNOTSUPP where the driver has no DCB.
Result<Dcb> probe_dcb(const std::string& interface);
/// Of the kernel's answer. Errors: it is an error, or no answer to this question.
Result<Dcb> parse_dcb(std::span<const std::byte> answer);

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
