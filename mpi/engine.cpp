// SPDX-License-Identifier: Apache-2.0
#include "mpi/engine.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <string>

namespace gdrx::mpi {
namespace {

constexpr const char* kName = "libgdrx.so.0";

// Beside this library, else where the loader finds it.
void* open_library() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&engine), &here) != 0 && here.dli_fname != nullptr) {
    const std::string path = here.dli_fname;
    const std::string beside = path.substr(0, path.rfind('/') + 1) + kName;
    if (void* const opened = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL)) return opened;
  }
  return dlopen(kName, RTLD_NOW | RTLD_LOCAL);
}

bool fill(Engine& engine) {
  void* const library = open_library();
  if (library == nullptr) {
    std::fprintf(stderr, "gdrx: MPI keeps all collectives: %s\n", dlerror());
    return false;
  }
  bool whole = true;
#define GDRX_FIND(name)                                                                \
  engine.name = reinterpret_cast<decltype(engine.name)>(dlsym(library, "gdrx" #name)); \
  whole = whole && engine.name != nullptr;
  GDRX_ENGINE(GDRX_FIND)
#undef GDRX_FIND
  if (!whole) {
    std::fprintf(stderr, "gdrx: MPI keeps all collectives: %s is of another version\n", kName);
  }
  return whole;
}

}  // namespace

const Engine* engine() noexcept {
  static Engine found;
  static const bool whole = fill(found);
  return whole ? &found : nullptr;
}

}  // namespace gdrx::mpi
