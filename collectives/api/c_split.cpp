// SPDX-License-Identifier: Apache-2.0
// Communicators out of a communicator.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <vector>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_init.hpp"
#include "collectives/api/c_struct.hpp"
#include "collectives/gpu/load.hpp"
#include "transport/bootstrap/tcp_bootstrap.hpp"
#include "transport/bootstrap/unique_id.hpp"

namespace gdrx::c_api {
namespace {

/// What a rank asks for.
struct Wish {
  std::int32_t color = gdrxSplitNoColor;
  std::int32_t key = 0;
  std::uint64_t id = 0;      // of the new communicator, if this rank is the first in it: by chance
  std::uint32_t memory = 0;  // what the parent knows holds for the configuration, as the next
  std::uint32_t processes = 0;
};

template <class Value>
Blob blob_of(const Value& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

template <class Value>
Result<Value> value_of(const Blob& blob, std::size_t rank) {
  Value value{};
  if (blob.size() != sizeof value) {
    return fail(Errc::protocol, fmt::format("rank {} sent {} bytes of a split", rank, blob.size()));
  }
  std::memcpy(&value, blob.data(), sizeof value);
  return value;
}

// Of `color`, in the order of the new communicator: by key, then by rank.
std::vector<std::int32_t> members_of(const std::vector<Wish>& wishes, std::int32_t color) {
  std::vector<std::int32_t> members;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color == color) members.push_back(static_cast<std::int32_t>(rank));
  }
  std::stable_sort(members.begin(), members.end(), [&](std::int32_t a, std::int32_t b) {
    return wishes[static_cast<std::size_t>(a)].key < wishes[static_cast<std::size_t>(b)].key;
  });
  return members;
}

// What holds for the configuration of each.
Heritage heritage_of(const std::vector<Wish>& wishes, const std::vector<std::int32_t>& members) {
  Heritage common{true, true, {}};
  for (const std::int32_t member : members) {
    const Wish& wish = wishes[static_cast<std::size_t>(member)];
    common.memory &= wish.memory != 0;
    common.processes &= wish.processes != 0;
  }
  return common;
}

Result<std::vector<Wish>> gather_wishes(Communicator& comm, const Result<Blob>& mine) {
  const std::vector<Blob> blobs = GDRX_TRY(comm.agree(mine));
  std::vector<Wish> wishes;
  for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
    wishes.push_back(GDRX_TRY(value_of<Wish>(blobs[rank], rank)));
  }
  return wishes;
}

/// What all ranks have wished, as one of them has heard it.
Result<Key> heard_by(Communicator& parent, const std::vector<Wish>& wishes) {
  KeyContext context;
  for (const Wish& wish : wishes) context.add(std::as_bytes(std::span(&wish, 1)));
  return derive(parent.mesh().key(), "gdrx wishes", context);
}

// The second meeting of a split. Whoever has told different wishes to different ranks is found
// here, and not named: the others would wait for each other in vain.
Result<std::vector<Blob>> agree_as_heard(Communicator& parent, const Key& heard,
                                         const Result<Blob>& mine) {
  const auto told = mine.map([&](const Blob& more) {
    Blob whole(heard.bytes().begin(), heard.bytes().end());
    whole.insert(whole.end(), more.begin(), more.end());
    return whole;
  });
  std::vector<Blob> all = GDRX_TRY(parent.agree(told));
  for (Blob& blob : all) {
    const auto head = std::span(blob).first(std::min(blob.size(), Key::kBytes));
    if (!std::ranges::equal(head, heard.bytes())) {
      return fail(
          Errc::protocol,
          "the ranks of a split have not heard the same of each other: one of them has told "
          "different things to different ranks");
    }
    blob.erase(blob.begin(), blob.begin() + Key::kBytes);
  }
  return all;
}

// Where ranks meet that no connections join.
Result<Blob> meeting_place(const Communicator::Options& options) {
  return blob_of(GDRX_TRY(make_unique_id(options.config.socket_ifname, options.log,
                                         GDRX_TRY(Secret::load(options.config.secret_file)),
                                         options.config.port_range)));
}

Result<Communicator::Options> options_of(const gdrxComm* comm, const gdrxConfig_t* config) {
  return config != nullptr ? make_options(config) : comm->options;
}

Result<Blob> wish_of(const Wish& wish, const Communicator& parent, gdrxComm_t* made,
                     const Result<Communicator::Options>& options) {
  if (made == nullptr) return fail(Errc::invalid_argument, "newcomm is NULL");
  *made = nullptr;
  if (wish.color < 0 && wish.color != gdrxSplitNoColor) {
    return fail(Errc::invalid_argument,
                fmt::format("color {} is negative and not gdrxSplitNoColor", wish.color));
  }
  if (!options) return tl::unexpected(options.error());
  Wish whole = wish;
  const Heritage heritage = parent.heritage(options->config);
  whole.memory = heritage.memory ? 1 : 0;
  whole.processes = heritage.processes ? 1 : 0;
  const Key chance = GDRX_TRY(Key::random());
  std::memcpy(&whole.id, chance.bytes().data(), sizeof whole.id);
  return blob_of(whole);
}

// `members`: ranks of the communicator that they come from, in the order of the new one.
Result<void> join(const UniqueId& id, const std::vector<std::int32_t>& members, Rank self,
                  gdrxComm_t* made, const Communicator::Options& options) {
  const auto place = std::find(members.begin(), members.end(), index(self)) - members.begin();
  const Deadline deadline = Deadline::after(steady_clock(), options.config.init_timeout);
  auto bootstrap = GDRX_TRY(TcpBootstrap::create(
      id, Rank{static_cast<std::int32_t>(place)}, static_cast<int>(members.size()), options.log,
      deadline, GDRX_TRY(Secret::load(options.config.secret_file))));
  return init(made, *bootstrap, options);
}

/// What a rank brings to the second meeting of a split.
struct Share {
  std::unique_ptr<ControlMesh> mesh;  // of the new communicator; null: its ranks meet at a place
  Blob place;                         // that this rank offers to the others
};

// Nobody speaks to the others over the parent's connections before all are ready to hear it: that
// is what the second meeting is for.
Result<Share> share_of(Communicator& parent, const std::vector<std::int32_t>& members,
                       std::uint64_t id, const Communicator::Options& options) {
  Share share;
  if (members.empty()) return share;
  if (parent.mesh().connects(members)) {
    share.mesh = GDRX_TRY(parent.mesh().split(MeshGroupId{id}, members));
  } else if (members.front() == index(parent.rank())) {
    share.place = GDRX_TRY(meeting_place(options));
  }
  return share;
}

// Their second meeting is the parent's, too: ranks that share memory are faster there.
Result<std::unique_ptr<Communicator>> create_by(Communicator& parent, const Key& heard,
                                                const std::vector<std::int32_t>& members,
                                                std::unique_ptr<ControlMesh> mesh,
                                                Heritage heritage,
                                                const Communicator::Options& options) {
  bool told = false;
  heritage.tell = [&](std::span<const std::byte> mine) -> Result<std::vector<Blob>> {
    told = true;
    const auto all = GDRX_TRY(agree_as_heard(parent, heard, Blob(mine.begin(), mine.end())));
    std::vector<Blob> of_members;
    for (const std::int32_t member : members) {
      of_members.push_back(all[static_cast<std::size_t>(member)]);
    }
    return of_members;
  };
  auto made = Communicator::create(std::move(mesh), options, heritage);
  if (!told) GDRX_TRY(agree_as_heard(parent, heard, tl::unexpected(made.error())));
  return made;
}

Result<void> split(gdrxComm* comm, const Wish& wish, gdrxComm_t* made,
                   const Result<Communicator::Options>& wanted) {
  Communicator& parent = *comm->impl;
  const auto wishes = GDRX_TRY(gather_wishes(parent, wish_of(wish, parent, made, wanted)));
  const Communicator::Options& options = *wanted;  // or nobody had got here
  const bool takes_part = wish.color != gdrxSplitNoColor;
  const auto members = takes_part ? members_of(wishes, wish.color) : std::vector<std::int32_t>();
  const auto first = static_cast<std::size_t>(takes_part ? members.front() : 0);
  const Heritage heritage = heritage_of(wishes, members);
  const Key heard = GDRX_TRY(heard_by(parent, wishes));
  auto share = share_of(parent, members, wishes[first].id, options);
  if (share && share->mesh && heritage.memory) {
    return keep(made, create_by(parent, heard, members, std::move(share->mesh), heritage, options),
                options);
  }
  const auto places = GDRX_TRY(
      agree_as_heard(parent, heard, share.map([](const Share& mine) { return mine.place; })));
  if (!takes_part) return {};
  if (share->mesh) {
    return keep(made, Communicator::create(std::move(share->mesh), options, heritage), options);
  }
  const auto id = GDRX_TRY(value_of<UniqueId>(places[first], first));
  return join(id, members, parent.rank(), made, options);
}

// By a thread that has no GPU of its own, for the one that calls this, and that has `config`.
Result<void> split_in_group(gdrxComm* comm, const Wish& wish, gdrxComm_t* made,
                            const gdrxConfig_t* config) {
  if (made != nullptr) *made = nullptr;
  Result<Communicator::Options> options = options_of(comm, config);
  if (options && !options->gpu) options->gpu = gpu::current_device();
  make_in_group(comm, [=] { return split(comm, wish, made, options); });
  return {};
}

// --- shrinking: the ranks that are left have no collective to agree by

/// What the first of the ranks that stay tells the others.
struct Place {
  std::uint64_t members = 0;  // a digest
  std::uint64_t known = 0;    // 0: there is none, and the id says nothing
  UniqueId id{};
};

// In their order; FNV-1a, a rank at a time.
std::uint64_t digest_of(const std::vector<std::int32_t>& members) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::int32_t member : members) {
    hash = (hash ^ static_cast<std::uint32_t>(member)) * 0x100000001b3;
  }
  return hash;
}

Result<std::vector<std::int32_t>> members_without(const gdrxComm* comm, const int* exclude,
                                                  int count) {
  if (count < 0 || (count > 0 && exclude == nullptr)) {
    return fail(Errc::invalid_argument, "exclude is NULL or its count is negative");
  }
  const std::span<const int> gone(exclude, static_cast<std::size_t>(count));
  for (const int rank : gone) GDRX_TRY(rank_of(comm, rank, "exclude"));
  std::vector<std::int32_t> members;
  for (std::int32_t rank = 0; rank < comm->impl->size(); ++rank) {
    if (std::find(gone.begin(), gone.end(), rank) == gone.end()) members.push_back(rank);
  }
  if (std::find(members.begin(), members.end(), index(comm->impl->rank())) == members.end()) {
    return fail(Errc::invalid_argument,
                fmt::format("rank {} excludes itself: only ranks that stay call gdrxCommShrink",
                            index(comm->impl->rank())));
  }
  return members;
}

Result<Place> tell(Communicator& comm, std::uint32_t number,
                   const std::vector<std::int32_t>& members, const Communicator::Options& options) {
  Place place{digest_of(members), 0, {}};
  const auto made = meeting_place(options);
  if (made) place.id = GDRX_TRY(value_of<UniqueId>(*made, 0));
  place.known = made ? 1 : 0;
  GDRX_TRY(comm.mesh().tell_place(number, std::as_bytes(std::span(&place, 1))));
  if (!made) return tl::unexpected(made.error());
  return place;
}

Result<Place> hear(Communicator& comm, std::uint32_t number,
                   const std::vector<std::int32_t>& members, Deadline deadline) {
  const Blob told = GDRX_TRY(comm.mesh().await_place(number, deadline));
  const auto first = static_cast<std::size_t>(members.front());
  const auto place = GDRX_TRY(value_of<Place>(told, first));
  if (place.members != digest_of(members)) {
    return fail(Errc::mismatch,
                fmt::format("rank {} excludes other ranks than rank {}: all that stay must give "
                            "the same list",
                            first, index(comm.rank())));
  }
  if (place.known == 0) {
    return fail(Errc::system, fmt::format("rank {} could not offer a place to meet", first));
  }
  return place;
}

Result<void> shrink(gdrxComm* comm, const int* exclude, int count, gdrxComm_t* made,
                    const gdrxConfig_t* config) {
  if (made == nullptr) return fail(Errc::invalid_argument, "newcomm is NULL");
  *made = nullptr;
  Communicator& parent = *comm->impl;
  const auto members = GDRX_TRY(members_without(comm, exclude, count));
  const Communicator::Options options = GDRX_TRY(options_of(comm, config));
  const std::uint32_t number = ++comm->shrinks;
  const Deadline deadline = Deadline::after(steady_clock(), options.config.init_timeout);
  const bool first = members.front() == index(parent.rank());
  const Place place = GDRX_TRY(first ? tell(parent, number, members, options)
                                     : hear(parent, number, members, deadline));
  return join(place.id, members, parent.rank(), made, options);
}

}  // namespace
}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxCommSplit(gdrxComm_t comm, int color, int key, gdrxComm_t* newcomm,
                           const gdrxConfig_t* config) {
  return guarded_call(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    const trace::Span mark(comm->impl->track(), trace::Row::calls, trace::Kind::call,
                           "gdrxCommSplit");
    GDRX_TRY(check_open(comm));
    if (!in_group()) return split(comm, {color, key}, newcomm, options_of(comm, config));
    return split_in_group(comm, {color, key}, newcomm, config);
  });
}

gdrxResult_t gdrxCommShrink(gdrxComm_t comm, const int* exclude, int count, gdrxComm_t* newcomm,
                            const gdrxConfig_t* config) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    const trace::Span mark(comm->impl->track(), trace::Row::calls, trace::Kind::call,
                           "gdrxCommShrink");
    return shrink(comm, exclude, count, newcomm, config);
  });
}

gdrxResult_t gdrxCommGetAsyncErrorInfo(gdrxComm_t comm, gdrxAsyncErrorInfo_t* info) {
  if (comm == nullptr || !is_known(info, sizeof *info)) return gdrxInvalidArgument;
  gdrxAsyncErrorInfo_t full{};
  const gdrxResult_t asked = gdrxCommGetAsyncError(comm, &full.result);
  if (asked != gdrxSuccess) return asked;
  const auto blame = is_made(comm) ? comm->impl->blame() : Blame{};
  full.origin = blame.origin;
  full.subject = blame.subject;
  fill(info, full);
  return gdrxSuccess;
}
