// SPDX-License-Identifier: Apache-2.0
// The thread of a mesh. It hears what comes, and gives each communicator that shares it its turns.
#pragma once

#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "transport/bootstrap/mesh_wire.hpp"

namespace gdrx {

class MeshThread {
 public:
  MeshThread(MeshLinks links, const ControlMesh::Options& options, Socket bell)
      : wire_(std::move(links), options.heartbeat, options.silence, std::move(bell)),
        heartbeat_(options.heartbeat) {}
  ~MeshThread();
  MeshThread(const MeshThread&) = delete;
  MeshThread& operator=(const MeshThread&) = delete;

  /// Once. It runs until this is destroyed.
  Result<void> start();
  MeshWire& wire() noexcept { return wire_; }
  /// See ControlMesh.
  void wake() noexcept;
  void serve();
  bool is_crowded() const noexcept { return busy_.load(std::memory_order_relaxed) > 1; }

 private:
  void run() noexcept;
  bool has_told(const char* why) noexcept;
  void turn();
  Duration tick();
  void tell_news();
  void wait(Duration longest);

  MeshWire wire_;
  Duration heartbeat_;
  std::vector<MeshWire::Group> groups_;  // that have their turn
  std::vector<pollfd> entries_;
  std::atomic<int> busy_{0};  // groups that wanted another turn at once
  std::atomic<bool> stop_{false};
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> woken_{false};
  std::thread thread_;
};

}  // namespace gdrx
