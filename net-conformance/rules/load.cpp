// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "net-conformance/driver/elf.hpp"
#include "net-conformance/rules/common.hpp"

namespace gdrx::conformance {

namespace {

Result<void> library(Session& session) { return session.load(); }

Result<void> members(Session& session) {
  GDRX_TRY(prepared(session.load()));
  GDRX_TRY(expect(session.net().name() != nullptr && session.net().name()[0] != '\0',
                  "the name is null or empty"));
  if (const char* missing = session.net().missing(); missing != nullptr) {
    return broken(fmt::format("{} is null", missing));
  }
  return {};
}

Result<void> init(Session& session) { return session.init(); }

Result<void> symbols(Session& session) {
  GDRX_TRY(prepared(session.load()));
  const ElfFacts facts = GDRX_TRY(read_elf(session.library()));
  for (const std::string& name : facts.exported) {
    if (!name.starts_with("nccl")) {
      return broken(fmt::format("it exports {} symbols that are not NCCL's, {} among them",
                                facts.foreign, name));
    }
  }
  return {};
}

Result<void> own_runtime(Session& session) {
  GDRX_TRY(prepared(session.load()));
  const ElfFacts facts = GDRX_TRY(read_elf(session.library()));
  for (const std::string& name : facts.needed) {
    if (name.starts_with("libstdc++") || name.starts_with("libc++")) {
      return broken("it needs " + name);
    }
  }
  return {};
}

constexpr Severity kMust = Severity::must;
constexpr Severity kShould = Severity::should;

constexpr Rule kRules[] = {
    {"load.library", kMust, "dlopen finds the library and a symbol ncclNetPlugin_v8 to v12",
     "falls back to its own InfiniBand or Socket transport with one INFO line", nullptr, library},
    {"load.members", kMust, "the name and each call that is not optional are there",
     "calls a null pointer", "load.library", members},
    {"load.init", kMust, "init succeeds, and there is the device",
     "falls back to its own transport, or fails if no device is left", "load.members", init},
    {"load.symbols", kShould, "it exports the symbols that NCCL looks for and no others",
     "loads it with RTLD_LOCAL, but unique symbols of C++ are shared with the process all the same",
     "load.library", symbols},
    {"load.own-runtime", kShould, "it needs no libstdc++ of the process",
     "falls back to its own transport in silence where the process has an older libstdc++",
     "load.library", own_runtime},
};

}  // namespace

std::span<const Rule> load_rules() { return kRules; }

}  // namespace gdrx::conformance
