// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/control_mesh.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <numeric>
#include <thread>

#include "transport/bootstrap/mesh_meeting.hpp"
#include "transport/bootstrap/mesh_thread.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPlacePoll{1};
constexpr std::size_t kLongestPlace = 512;
constexpr MeshGroupId kWholeMesh{0};  // of the communicator for which it was made

class GroupMesh final : public ControlMesh {
 public:
  /// `group` is in the mesh, or comes into it at once.
  GroupMesh(std::shared_ptr<MeshThread> mesh, MeshWire::Group group, const Key& key)
      : mesh_(std::move(mesh)), group_(std::move(group)), key_(key) {}

  ~GroupMesh() override {
    {
      const std::lock_guard lock(group_->calling);
      group_->handlers = {};
    }
    wire().remove(*group_);
  }

  Rank rank() const noexcept override { return group_->self; }
  int size() const noexcept override { return group_->size(); }
  std::string describe() const override { return mesh_->about().description; }
  const Key& key() const noexcept override { return key_; }
  void wake() noexcept override {
    group_->woken.store(true);
    mesh_->wake();
  }
  bool is_own_thread() const noexcept override { return wire().is_here(); }
  void serve() override { mesh_->serve(); }
  bool is_crowded() const noexcept override { return mesh_->is_crowded(); }
  void place_thread(const std::function<void(pthread_t)>& place) override {
    mesh_->place_thread(place);
  }

  Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                       Deadline deadline) override {
    try {
      return wire().all_gather(*group_, mine, deadline);
    } catch (const std::bad_alloc&) {
      announce({no_memory().code, rank(), rank(), no_memory().what});
      throw;
    }
  }

  void start(Handlers handlers) override {
    {
      const std::lock_guard lock(group_->calling);
      group_->handlers = handlers;
    }
    wire().start(*group_, std::move(handlers.data_path_hears));
    wake();
  }

  void announce(const FailureNotice& notice) noexcept override {
    wire().announce(*group_, notice);
    wake();
  }

  Result<void> tell_place(std::uint32_t number, std::span<const std::byte> place) override {
    if (place.empty() || place.size() > kLongestPlace) {
      return fail(Errc::invalid_argument, fmt::format("a place of {} bytes", place.size()));
    }
    wire().tell_place(*group_, number, place);
    return {};
  }

  Result<Blob> await_place(std::uint32_t number, Deadline deadline) const override {
    while (true) {
      if (auto place = wire().place(*group_, number)) return *std::move(place);
      if (is_own_thread()) mesh_->serve();
      if (deadline.passed(steady_clock().now())) {
        return fail(Errc::timeout,
                    fmt::format("rank {} was told by nobody where the ranks meet", index(rank())));
      }
      std::this_thread::sleep_for(kPlacePoll);
    }
  }

  bool leave(Deadline deadline) override {
    return wire().leave(*group_, deadline) == MeshGroup::Leave::together;
  }

  std::string awaited() const override { return wire().awaited(*group_); }

  bool connects(std::span<const std::int32_t> members) const override {
    return mesh_outlives_any(of_mesh(members), mesh_size());
  }

  Result<std::unique_ptr<ControlMesh>> split(MeshGroupId id,
                                             std::span<const std::int32_t> members) override {
    if (id == kWholeMesh) return fail(Errc::protocol, "an id that only the first may have");
    const auto self = std::find(members.begin(), members.end(), index(rank())) - members.begin();
    // Whom a liar has told of other members would speak here of what it is not in, and be blamed.
    KeyContext context;
    context.add(std::uint64_t(id)).add(std::as_bytes(members));
    const Key key = GDRX_TRY(derive(key_, "gdrx split", context));
    const Key name = GDRX_TRY(derive(key, "gdrx split id"));
    return open_group(
        mesh_, {group_id_of(name), of_mesh(members), Rank{static_cast<std::int32_t>(self)}, key});
  }

  void share(std::string knows, std::uint32_t facts) override {
    if (group_->id != kWholeMesh) return;
    share_in_process({mesh_, std::move(knows), facts});
  }

 private:
  MeshWire& wire() const noexcept { return mesh_->wire(); }
  std::int32_t mesh_size() const noexcept {
    return static_cast<std::int32_t>(wire().members().size());
  }
  std::vector<std::int32_t> of_mesh(std::span<const std::int32_t> members) const {
    std::vector<std::int32_t> ranks;
    for (const std::int32_t member : members) {
      ranks.push_back(group_->ranks[static_cast<std::size_t>(member)]);
    }
    return ranks;
  }

  std::shared_ptr<MeshThread> mesh_;
  MeshWire::Group group_;
  Key key_;
};

Result<MeshAbout> about(const MeshLinks& links, Rank rank, const ControlMesh::Options& options) {
  MeshAbout about{{}, index(rank), links.key, options, links.description};
  const Key name = GDRX_TRY(derive(links.key, "gdrx mesh id"));
  std::copy_n(name.bytes().begin(), about.id.size(), about.id.begin());
  return about;
}

}  // namespace

MeshGroupId group_id_of(const Key& name) noexcept {
  MeshGroupId id{};
  std::memcpy(&id, name.bytes().data(), sizeof id);
  return id;
}

Result<std::unique_ptr<ControlMesh>> open_group(const std::shared_ptr<MeshThread>& mesh,
                                                MeshPlan plan) {
  MeshWire& wire = mesh->wire();
  if (plan.id == kWholeMesh) return fail(Errc::protocol, "an id that only the first may have");
  const auto tree = mesh_tree(plan.ranks, static_cast<std::int32_t>(wire.members().size()));
  if (!tree) return fail(Errc::internal, "a communicator of ranks that have no connection");
  std::vector<MeshMember> names;
  for (const std::int32_t rank : plan.ranks) {
    names.push_back(wire.members()[static_cast<std::size_t>(rank)]);
  }
  auto group = std::make_shared<MeshGroup>(plan.id, std::move(plan.ranks), std::move(names),
                                           plan.self, *tree, wire.links());
  std::unique_ptr<ControlMesh> made = std::make_unique<GroupMesh>(mesh, group, plan.key);
  GDRX_TRY(wire.add(group));
  return made;
}

Result<std::unique_ptr<ControlMesh>> ControlMesh::create(Bootstrap& bootstrap,
                                                         const Options& options, const Log& log,
                                                         Deadline deadline) {
  MeshLinks links = GDRX_TRY(make_mesh_links(bootstrap, options, log, deadline));
  MeshAbout whole = GDRX_TRY(about(links, bootstrap.rank(), options));
  const Key key = links.key;
  std::vector<std::int32_t> ranks(links.members.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto tree = mesh_tree(ranks, bootstrap.size());
  if (!tree) return fail(Errc::internal, "a mesh in parts");
  Socket bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.valid()) return fail(Errc::system, "eventfd", errno);
  const auto mesh =
      std::make_shared<MeshThread>(std::move(links), std::move(whole), std::move(bell));
  MeshWire& wire = mesh->wire();
  auto group = std::make_shared<MeshGroup>(kWholeMesh, std::move(ranks), wire.members(),
                                           bootstrap.rank(), *tree, wire.links());
  GDRX_TRY(wire.add(group));  // before the thread hears what is for it
  auto made = std::make_unique<GroupMesh>(mesh, std::move(group), key);
  if (const auto running = mesh->start(); !running) {
    const Error& why = running.error();
    made->announce({why.code, made->rank(), made->rank(), why.what});
    return tl::unexpected(why);
  }
  return made;
}

}  // namespace gdrx
