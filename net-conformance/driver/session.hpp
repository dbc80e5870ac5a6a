// SPDX-License-Identifier: Apache-2.0
// A plugin as one process has it: loaded, its table picked, initialised.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gdrx/result.hpp"
#include "net-conformance/driver/net.hpp"

namespace gdrx::conformance {

/// Versions of the ABI.
inline constexpr int kOldest = 8;
inline constexpr int kNewest = 12;

struct Options {
  std::string plugin;  // path, or a name that the loader finds
  int version = 0;     // kOldest to kNewest; 0: the newest that the plugin has, as NCCL takes it
  int device = 0;
  bool apart = false;          // what listens is another communicator of NCCL's than what connects
  std::string peer;            // host:port where second processes run; empty: here
  const char* rule = nullptr;  // that is being checked
};

/// One thread at a time, save net(), whose rules are the plugin's. Steps may be left out: each does
/// the ones before it.
class Session {
 public:
  explicit Session(Options options) : options_(std::move(options)) {}
  ~Session();  // finalizes, but leaves the library loaded
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<void> load();  // dlopen and the symbol
  Result<void> init();  // the first context, devices
  void finalize() noexcept;
  /// dlclose. net() is dead after it.
  Result<void> unload();

  const Options& options() const noexcept { return options_; }
  Net& net() noexcept { return *net_; }
  void* context() noexcept { return context_; }
  /// Where listen() goes: with Options::apart a context of its own, made when first asked for.
  Result<void*> listening_context();
  int devices() const noexcept { return devices_; }
  int device() const noexcept { return options_.device; }
  void use_device(int device) noexcept { options_.device = device; }     // properties() stay
  const Properties& properties() const noexcept { return properties_; }  // of device()
  int max_recvs() const noexcept { return properties_.max_recvs; }
  bool exports(int version) const noexcept;  // after load()
  void* library() const noexcept { return library_; }

 private:
  Options options_;
  void* library_ = nullptr;
  std::unique_ptr<Net> net_;
  bool initialised_ = false;
  void* context_ = nullptr;
  void* second_context_ = nullptr;
  int devices_ = 0;
  Properties properties_{};
};

/// The logger that plugins get: silent; GDRX_NET_CONFORMANCE_LOG=1 prints.
nccl::LogFunction logger() noexcept;

}  // namespace gdrx::conformance
