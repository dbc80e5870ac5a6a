// SPDX-License-Identifier: Apache-2.0
// The thread of a mesh. It hears what comes, and gives each communicator that shares it its turns.
#pragma once

#include <poll.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/own_thread.hpp"
#include "transport/bootstrap/mesh_wire.hpp"

namespace gdrx {

/// What a mesh is to those that share it.
struct MeshAbout {
  std::array<std::byte, 16> id{};  // no secret
  std::int32_t rank = 0;           // of this end
  Key key;                         // see ControlMesh::key()
  ControlMesh::Options options;
  std::string description;
};

class MeshThread {
 public:
  MeshThread(MeshLinks links, MeshAbout about, Socket bell)
      : about_(std::move(about)),
        wire_(std::move(links), about_.options.heartbeat, about_.options.silence, std::move(bell)),
        heartbeat_(about_.options.heartbeat) {}
  ~MeshThread();
  MeshThread(const MeshThread&) = delete;
  MeshThread& operator=(const MeshThread&) = delete;

  /// Once. It runs until this is destroyed.
  Result<void> start();
  MeshWire& wire() noexcept { return wire_; }
  const MeshAbout& about() const noexcept { return about_; }
  /// See ControlMesh.
  void wake() noexcept;
  void serve();
  /// See ControlMesh.
  void place_thread(const std::function<void(pthread_t)>& place) {
    if (!placed_.exchange(true)) place(thread_.handle());
  }
  bool is_crowded() const noexcept { return busy_.load(std::memory_order_relaxed) > 1; }

 private:
  void run() noexcept;
  void turn();
  Duration tick();
  void tell_news();
  void wait(Duration longest);

  MeshAbout about_;
  MeshWire wire_;
  Duration heartbeat_;
  std::vector<MeshWire::Group> groups_;  // that have their turn
  std::vector<pollfd> entries_;
  std::atomic<int> busy_{0};  // groups that wanted another turn at once
  std::atomic<bool> stop_{false};
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> woken_{false};
  std::atomic<bool> placed_{false};
  OwnThread thread_;
};

/// What a key that all ranks have derived says. No secret.
MeshGroupId group_id_of(const Key& name) noexcept;

/// A communicator that is to share a mesh.
struct MeshPlan {
  MeshGroupId id{};
  std::vector<std::int32_t> ranks;  // of the mesh, by rank of the communicator
  Rank self{};                      // of the communicator
  Key key;
};
/// From now on its frames are heard, and those that have come. Errc::internal: between its ranks
/// there is no connection.
Result<std::unique_ptr<ControlMesh>> open_group(const std::shared_ptr<MeshThread>& mesh,
                                                MeshPlan plan);

}  // namespace gdrx
