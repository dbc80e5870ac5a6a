// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_meeting.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "transport/bootstrap/fork.hpp"
#include "transport/bootstrap/mesh_tree.hpp"

namespace gdrx {
namespace {

constexpr std::size_t kMostMeshes = 4;      // that a rank offers, the newest first
constexpr std::size_t kMostGone = 8;        // ranks that it has no connection to any more
constexpr std::size_t kMoreOfOthers = 512;  // bytes that an offer has more than this rank's

/// A mesh in an offer. Unused places have no id.
struct MeetingCard {
  std::array<std::byte, 16> id{};
  std::int32_t rank = 0;
  std::uint32_t facts = 0;
  std::int32_t gone_count = 0;
  std::array<std::int32_t, kMostGone> gone{};
};
struct Offer {
  std::array<std::byte, 16> chance{};  // so that no two meetings are alike
  std::array<MeetingCard, kMostMeshes> cards{};
};
static_assert(std::is_trivially_copyable_v<Offer> && sizeof(Offer) == 16 + 4 * 60);

/// What this process has. A child of fork() begins its own: it has none of its parent's threads.
class SharedMeeting {
 public:
  static SharedMeeting& here() {
    SharedMeeting* known = newest.load(std::memory_order_acquire);
    while (known == nullptr || !known->birthplace_.here()) {
      auto made = std::make_unique<SharedMeeting>(known);
      if (newest.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
        return *made.release();  // used until the process ends
      }
    }
    return *known;
  }
  explicit SharedMeeting(SharedMeeting* before) noexcept : before_(before) {}
  void add(SharedMesh mesh) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const SharedMesh& old) { return old.thread.expired(); });
    all_.push_back(std::move(mesh));
  }
  std::vector<SharedMesh> newest_first() {
    const std::lock_guard lock(mutex_);
    return {all_.rbegin(), all_.rend()};
  }

 private:
  static inline std::atomic<SharedMeeting*> newest{nullptr};
  Birthplace birthplace_;
  [[maybe_unused]] SharedMeeting* before_;  // of the parent: known to whoever looks for leaks
  std::mutex mutex_;
  std::vector<SharedMesh> all_;
};

// Nothing for a mesh that has lost too many.
std::optional<MeetingCard> card_of(MeshThread& mesh, std::uint32_t facts) {
  const std::vector<std::int32_t> gone = mesh.wire().lost();
  if (gone.size() > kMostGone) return {};
  MeetingCard card{
      mesh.about().id, mesh.about().rank, facts, static_cast<std::int32_t>(gone.size()), {}};
  std::copy(gone.begin(), gone.end(), card.gone.begin());
  return card;
}

std::optional<Offer> read(const Blob& blob) {
  if (blob.size() < sizeof(Offer)) return {};
  Offer offer;
  std::memcpy(&offer, blob.data(), sizeof offer);
  return offer;
}

std::optional<MeetingCard> find(const Blob& blob, const std::array<std::byte, 16>& id) {
  const auto offer = read(blob);
  if (!offer) return {};
  const auto at = std::find_if(offer->cards.begin(), offer->cards.end(),
                               [&](const MeetingCard& card) { return card.id == id; });
  return at == offer->cards.end() ? std::nullopt : std::optional(*at);
}

bool has_lost_any(const MeetingCard& card, const std::vector<std::int32_t>& ranks) {
  const auto count = static_cast<std::size_t>(card.gone_count);
  return std::any_of(card.gone.begin(), card.gone.begin() + count, [&](std::int32_t gone) {
    return std::find(ranks.begin(), ranks.end(), gone) != ranks.end();
  });
}

// Fills in what the ranks say of it. False: they cannot share it.
bool take_all(const std::vector<Blob>& offers, MeshMeeting::Common& common) {
  for (const Blob& offer : offers) {
    const auto card = find(offer, common.mesh);
    if (!card || card->gone_count < 0 || static_cast<std::size_t>(card->gone_count) > kMostGone) {
      return false;
    }
    if (std::find(common.ranks.begin(), common.ranks.end(), card->rank) != common.ranks.end()) {
      return false;  // two cannot be the same
    }
    common.ranks.push_back(card->rank);
    common.facts &= card->facts;
  }
  return std::none_of(offers.begin(), offers.end(), [&](const Blob& offer) {
    return has_lost_any(*find(offer, common.mesh), common.ranks);
  });
}

Result<MeshGroupId> id_of(const Key& key) {
  return group_id_of(GDRX_TRY(derive(key, "gdrx meeting id")));
}

bool are_of(const std::vector<std::int32_t>& ranks, std::int32_t size) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](std::int32_t rank) { return rank >= 0 && rank < size; });
}

}  // namespace

void share_in_process(SharedMesh mesh) { SharedMeeting::here().add(std::move(mesh)); }

// Of ranks that are threads of this process each has a connection of its own to the same mesh:
// which of them meets is not known, and they make a new one.
MeshMeeting MeshMeeting::of(const ControlMesh::Options& options, std::string_view knows,
                            int ranks) {
  MeshMeeting meeting;
  meeting.ranks_ = static_cast<std::size_t>(ranks);
  std::vector<Mesh> found;
  for (const SharedMesh& shared : SharedMeeting::here().newest_first()) {
    auto thread = shared.thread.lock();
    if (!thread || !(thread->about().options == options)) continue;
    found.push_back({std::move(thread), shared.knows == knows ? shared.facts : 0});
  }
  for (const Mesh& mesh : found) {
    const auto twins = std::count_if(found.begin(), found.end(), [&](const Mesh& other) {
      return other.thread->about().id == mesh.thread->about().id;
    });
    if (twins == 1 && meeting.meshes_.size() < kMostMeshes) meeting.meshes_.push_back(mesh);
  }
  return meeting;
}

std::uint32_t MeshMeeting::likely_facts() const {
  std::uint32_t facts = 0;
  for (const Mesh& mesh : meshes_) {
    const auto members = mesh.thread->wire().members().size();
    if (members >= ranks_) facts |= mesh.facts;
  }
  return facts;
}

Result<Blob> MeshMeeting::offer(std::span<const std::byte> more) {
  Offer offer;
  const Key chance = GDRX_TRY(Key::random());
  std::copy_n(chance.bytes().begin(), offer.chance.size(), offer.chance.begin());
  std::size_t place = 0;
  for (const Mesh& mesh : meshes_) {
    if (const auto card = card_of(*mesh.thread, mesh.facts)) offer.cards[place++] = *card;
  }
  const auto bytes = std::as_bytes(std::span(&offer, 1));
  Blob whole(bytes.begin(), bytes.end());
  whole.insert(whole.end(), more.begin(), more.end());
  if (!meshes_.empty()) said_.reserve(ranks_, ranks_ * (whole.size() + kMoreOfOthers));
  room_for_ranks_.reserve(ranks_);
  for (const Mesh& mesh : meshes_) {
    room_for_tree_.reserve(mesh.thread->wire().members().size());
  }
  return whole;
}

const MeshMeeting::Mesh* MeshMeeting::find(const std::array<std::byte, 16>& id) const {
  const auto mesh = std::find_if(meshes_.begin(), meshes_.end(),
                                 [&](const Mesh& one) { return one.thread->about().id == id; });
  return mesh == meshes_.end() ? nullptr : &*mesh;
}

std::optional<MeshMeeting::Common> MeshMeeting::choose(const std::vector<Blob>& offers) {
  const auto first = offers.empty() ? std::nullopt : read(offers.front());
  if (!first) return {};
  Common common;
  common.ranks.swap(room_for_ranks_);
  for (const MeetingCard& wanted : first->cards) {
    const Mesh* const mesh = wanted.id == MeetingCard{}.id ? nullptr : find(wanted.id);
    if (mesh == nullptr) continue;
    common.mesh = wanted.id;
    common.ranks.clear();
    common.facts = ~0U;
    const auto size = static_cast<std::int32_t>(mesh->thread->wire().members().size());
    if (take_all(offers, common) && are_of(common.ranks, size) &&
        mesh_outlives_any(common.ranks, size, room_for_tree_)) {
      return common;
    }
  }
  return {};
}

Result<MeshMeeting::Joined> MeshMeeting::join(const Common& common, const std::vector<Blob>& offers,
                                              Rank self) {
  const Mesh* const mesh = find(common.mesh);
  if (mesh == nullptr) return fail(Errc::internal, "a mesh that was not offered here");
  try {
    auto joined = try_to_join(*mesh, common, offers, self);
    if (!joined) refuse(*mesh, common.ranks, offers, self, joined.error());
    return joined;
  } catch (const std::bad_alloc&) {
    refuse(*mesh, common.ranks, offers, self, no_memory());
    throw;
  }
}

Result<Key> MeshMeeting::key_of(const Mesh& mesh, const std::vector<Blob>& offers) {
  said_.clear();
  for (const Blob& offer : offers) said_.add(std::span(offer));
  return derive(mesh.thread->about().key, "gdrx meeting", said_);
}

Result<MeshMeeting::Joined> MeshMeeting::try_to_join(const Mesh& mesh, const Common& common,
                                                     const std::vector<Blob>& offers, Rank self) {
  const Key key = GDRX_TRY(key_of(mesh, offers));
  const MeshGroupId id = GDRX_TRY(id_of(key));
  Joined joined{GDRX_TRY(open_group(mesh.thread, {id, common.ranks, self, key})), {}};
  for (const Blob& offer : offers)
    joined.more.emplace_back(offer.begin() + sizeof(Offer), offer.end());
  return joined;
}

void MeshMeeting::refuse(const Mesh& mesh, std::span<const std::int32_t> ranks,
                         const std::vector<Blob>& offers, Rank self, const Error& why) noexcept {
  MeshWire& wire = mesh.thread->wire();
  try {
    const auto id = key_of(mesh, offers).and_then(id_of);
    if (id) return wire.refuse(*id, ranks, self, why);
  } catch (const std::bad_alloc&) {  // as where there is no id  NOLINT(bugprone-empty-catch)
  }
  wire.hang_up();
}

void MeshMeeting::hang_up() const noexcept {
  for (const Mesh& mesh : meshes_) mesh.thread->wire().hang_up();
}

}  // namespace gdrx
