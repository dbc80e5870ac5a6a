// SPDX-License-Identifier: Apache-2.0
// The plugin as one API, whichever version of NCCL's ABI is spoken: exports/ adapts it.
//
// Threads: any. Calls on one communicator come from NCCL's progress thread, connecting, closing and
// registering from its service thread, at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "plugin/abi/types.hpp"
#include "plugin/core/connector.hpp"
#include "plugin/core/devices.hpp"
#include "plugin/core/listener.hpp"
#include "plugin/core/memory.hpp"

namespace gdrx::net {

/// One for each communicator of NCCL (v11 and later), or for each of its threads (before).
class Context {
 public:
  Context(std::string fabric, Config config)
      : fabric_(std::move(fabric)), config_(std::move(config)) {}
  /// Opened on first use. `on` is the device of that index.
  Result<std::shared_ptr<DeviceContext>> device_context(int index, const NetDevice& on);
  /// For one connection alone, whose usual device context will not do.
  Result<std::shared_ptr<DeviceContext>> another_device_context(const NetDevice& on) const;
  /// NCCL's hints about what is to come.
  void expect(const nccl::NetAttributes& hints) noexcept;

 private:
  std::string fabric_;
  Config config_;
  std::atomic<std::int32_t> peers_{nccl::kUndefined};
  std::mutex mutex_;
  std::map<int, std::weak_ptr<DeviceContext>> device_contexts_;
};

class Plugin {
 public:
  /// Never destroyed: threads of NCCL may still call while the process exits.
  static Plugin& instance();

  /// Finds the devices once. Again and again harmless.
  Result<void> start(int abi);
  /// v11 and later. The context ends with finish().
  std::unique_ptr<Context> make_context(const nccl::CommConfig* config) const;
  /// Before v11: the calling thread's, which is one communicator's service thread. What connects
  /// has the communicator's traffic class in v10; what listens, and before v10, the process's.
  Context& context_of_thread(const nccl::CommConfig* config = nullptr);
  /// Without those that make_virtual() has made.
  std::size_t devices() const noexcept { return physical_; }
  Result<const NetDevice*> device(int index) const;
  /// makeVDevice(): the index of the device of these; the same for the same ones.
  Result<int> make_virtual(std::span<const int> parts);

  Result<std::unique_ptr<Listener>> listen(Context& context, int device, void* handle);
  /// Null: call again with the same handle.
  Result<std::unique_ptr<Sender>> connect(Context& context, int device, void* handle);

 private:
  Plugin();
  Result<void> open(int abi);
  std::unique_ptr<Connector> take_attempt(std::uint64_t number);
  /// After an error `attempt` is null, unless it needs another device context.
  static Result<std::unique_ptr<Sender>> step(std::unique_ptr<Connector>& attempt);
  Config config_;
  Log log_;
  mutable std::mutex mutex_;
  bool started_ = false;
  std::size_t physical_ = 0;
  std::optional<Error> refusal_;  // GDRX_NET_STRICT: why nothing will be connected
  DeviceSet set_;
  SocketAddress address_;
  std::map<std::uint64_t, std::unique_ptr<Connector>> attempts_;
};

}  // namespace gdrx::net
