// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/driver/session.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "net-conformance/driver/notes.hpp"
#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

namespace {

void log_nothing(nccl::LogLevel, unsigned long, const char*, int, const char*, ...) {}

__attribute__((format(printf, 5, 6))) void log_to_stderr(nccl::LogLevel level, unsigned long,
                                                         const char*, int, const char* format,
                                                         ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "  [%d] ", static_cast<int>(level));
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}

void* symbol(void* library, int version) {
  return dlsym(library, fmt::format("ncclNetPlugin_v{}", version).c_str());
}

}  // namespace

nccl::LogFunction logger() noexcept {
  return std::getenv("GDRX_NET_CONFORMANCE_LOG") != nullptr ? &log_to_stderr : &log_nothing;
}

Session::~Session() { finalize(); }

bool Session::exports(int version) const noexcept { return symbol(library_, version) != nullptr; }

Result<void> Session::load() {
  if (net_) {
    return {};
  }
  note_call("dlopen");
  library_ = dlopen(options_.plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* why = dlerror();
    return broken(fmt::format("dlopen failed: {}", why != nullptr ? why : "no reason given"));
  }
  for (int version = kNewest; version >= kOldest; --version) {
    if (options_.version != 0 && options_.version != version) {
      continue;
    }
    if (void* table = symbol(library_, version); table != nullptr) {
      net_ = adapt(version, table);
      return {};
    }
  }
  return broken(options_.version == 0
                    ? fmt::format("no symbol ncclNetPlugin_v{} to v{}", kOldest, kNewest)
                    : fmt::format("no symbol ncclNetPlugin_v{}", options_.version));
}

Result<void> Session::init() {
  if (initialised_) {
    return {};
  }
  GDRX_TRY(load());
  if (const char* missing = net_->missing(); missing != nullptr) {
    return broken(fmt::format("{} is null", missing));
  }
  GDRX_TRY(succeeds(net_->init(&context_, 0x6764727800000001, logger()), "init"));
  initialised_ = true;
  GDRX_TRY(succeeds(net_->devices(&devices_), "devices"));
  if (options_.device < 0 || options_.device >= devices_) {
    return broken(fmt::format("no device {}: there are {}", options_.device, devices_));
  }
  bool overrun = false;
  return succeeds(net_->properties(options_.device, &properties_, &overrun), "getProperties");
}

Result<void*> Session::listening_context() {
  if (!options_.apart || context_ == nullptr) {
    return context_;
  }
  if (second_context_ == nullptr) {
    GDRX_TRY(succeeds(net_->init(&second_context_, 0x6764727800000002, logger()), "init"));
  }
  return second_context_;
}

void Session::finalize() noexcept {
  if (std::exchange(initialised_, false)) {
    if (second_context_ != nullptr) {
      net_->finalize(std::exchange(second_context_, nullptr));
    }
    net_->finalize(std::exchange(context_, nullptr));
  }
}

Result<void> Session::unload() {
  finalize();
  net_.reset();
  note_call("dlclose");
  if (dlclose(std::exchange(library_, nullptr)) != 0) {
    return broken("dlclose failed");
  }
  return {};
}

}  // namespace gdrx::conformance
