// SPDX-License-Identifier: Apache-2.0
// A group's life, messages, and the barrier that names who is missing.
#include "backend.hpp"

#include <algorithm>
#include <utility>

#include "flat.hpp"
#include "types.hpp"

namespace gdrx_torch {
namespace {

// How long a rank that leaves waits for the others.
constexpr Milliseconds kGrace{60'000};
constexpr const char* kName = "gdrx";  // of a group, in its store

// NCCL's programs give tags that NCCL does not look at: they are right here, too. Others' may not
// be.
void warn_of_tag(int tag) {
  if (tag == 0) return;
  TORCH_WARN_ONCE("gdrx: messages of CUDA tensors are matched by their order, as NCCL's: a tag (",
                  tag, ") does not choose among them");
}

}  // namespace

Backend::Backend(StorePtr store, int rank, int size, Milliseconds timeout, const Wishes& wishes,
                 bool later)
    : Backend(store, later ? Engine::unmade({store, kName, rank, size, wishes}, timeout)
                           : Engine::create({store, kName, rank, size, wishes}, timeout)) {
  has_members_ = !later;
}

Backend::Backend(StorePtr store, std::shared_ptr<Engine> engine)
    : c10d::Backend(engine->rank(), engine->size()),
      store_(std::move(store)),
      engine_(std::move(engine)),
      options_(c10::make_intrusive<GroupOptions>(engine_->timeout(), engine_->wishes())) {
  init();
}

Backend::~Backend() { engine_->shutdown(std::min(engine_->timeout(), kGrace)); }

void Backend::shutdown() { engine_->shutdown(std::min(engine_->timeout(), kGrace)); }

void Backend::set_reproducible(bool on) {
  TORCH_CHECK(has_members_, "gdrx: the group has no members yet, or no longer: call reconfigure");
  Meeting next = engine_->gpu().meeting();
  next.name += "/again";
  next.wishes.reproducible = on;
  const auto before =
      std::exchange(engine_, Engine::create(next, engine_->timeout(), engine_.get()));
  options_->wishes = next.wishes;
  before->shutdown(std::min(before->timeout(), kGrace));
}

void Backend::named(const std::string& name, const std::vector<std::uint64_t>& ranks) {
  options_->group_name = name;
  options_->global_ranks_in_group = ranks;
  Record::of_process().name_group(engine_->number(), name, ranks);
}

void Backend::share(PoolId pool, const std::vector<Segment>& segments) {
  engine_->gpu().share(pool, segments, numbered(at::kCUDA), engine_->timeout());
}

void Backend::setTimeout(Milliseconds timeout) {
  TORCH_CHECK(timeout.count() > 0, "gdrx: a timeout of ", timeout.count(), " ms: give more than 0");
  options_->timeout = timeout;
  engine_->set_timeout(timeout);
}

void Backend::addEphemeralTimeout(const Milliseconds& timeout) {
  TORCH_CHECK(timeout.count() >= 0, "gdrx: a timeout longer by ", timeout.count(),
              " ms: give 0 or more");
  engine_->extend_timeout(timeout);
}

#if GDRX_TORCH_AT_LEAST(7)
c10d::ErrorType Backend::getError() {
  const std::string why = engine_->failure();
  if (why.empty()) return c10d::ErrorType::SUCCESS;
  return why.find("timeout") != std::string::npos ? c10d::ErrorType::TIMEOUT
                                                  : c10d::ErrorType::COMM_ERROR;
}
#endif

Call Backend::call_of(c10d::OpType type, const char* title, Milliseconds timeout,
                      bool async) const {
  Call call;
  call.type = type;
  call.title = title;
  call.timeout = std::max(timeout, Milliseconds(0));  // unset is negative
  call.async = async;
  return call;
}

// The group's own timeout for a call that has none.
Milliseconds Backend::limit_of(Milliseconds timeout) const {
  return timeout.count() > 0 ? timeout : engine_->timeout();
}

Place Backend::place_of(const at::Tensor& tensor, bool async) {
  if (tensor.is_cpu()) return {};
  TORCH_CHECK(has_members_, "gdrx: the group has no members yet, or no longer: call reconfigure");
  return Place(engine_->gpu(), tensor.device(), async);
}

c10dWork Backend::post(const Place& place, Call call, const Poster& poster) {
  if (Estimate* const on = estimate()) return foresee(*on, place, std::move(call), poster);
  if (!place.on_gpu()) return engine_->post(std::move(call), poster);
  call.timeout = limit_of(call.timeout) + engine_->take_extended();
  return engine_->gpu().launch(place, std::move(call), poster, engine_->next_number());
}

void Backend::eagerConnectSingleDevice(at::Device device) {
  if (!device.is_cpu() && has_members_)
    engine_->gpu().connect(numbered(device), engine_->timeout());
}

std::string Backend::explain(std::size_t bytes, bool cuda) {
  if (!cuda) return engine_->describe(bytes);
  return engine_->gpu().explain(at::kCUDA, bytes, engine_->timeout());
}

#if GDRX_TORCH_AT_LEAST(9)
c10::intrusive_ptr<c10d::Backend> Backend::split(const StorePtr& store,
                                                 const std::vector<int>& ranks,
                                                 const c10::intrusive_ptr<Options>& opts) {
  const auto place = std::find(ranks.begin(), ranks.end(), getRank());
  if (place == ranks.end()) return nullptr;
  // PyTorch before 2.15 splits once for each kind of device. The one that it gets serves them all.
  if (store == split_store_) {
    if (auto made = split_.lock()) return made;
  }
  ++splits_;
  const Milliseconds timeout = opts ? opts->timeout : engine_->timeout();
  const auto asked = c10::dynamic_intrusive_pointer_cast<GroupOptions>(opts);  // or NCCL's
  auto made = c10::make_intrusive<Backend>(store, static_cast<int>(place - ranks.begin()),
                                           static_cast<int>(ranks.size()), timeout,
                                           asked ? asked->wishes : options_->wishes);
  if (opts) {
    made->named(opts->group_name, opts->global_ranks_in_group);
  }
  split_store_ = store;
  split_ = c10::weak_intrusive_ptr<c10d::Backend>(c10::intrusive_ptr<c10d::Backend>(made));
  return made;
}
#endif

#if GDRX_TORCH_AT_LEAST(10)
c10::intrusive_ptr<c10d::Backend> Backend::shrink(const std::vector<int64_t>& ranks_to_exclude, int,
                                                  const c10::intrusive_ptr<Options>& opts) {
  const std::vector<int> ranks(ranks_to_exclude.begin(), ranks_to_exclude.end());
  auto made = c10::make_intrusive<Backend>(store_, engine_->without(ranks));
  std::vector<std::uint64_t> left = options_->global_ranks_in_group;
  for (int rank = static_cast<int>(left.size()); rank-- > 0;) {
    if (std::count(ranks.begin(), ranks.end(), rank) > 0) left.erase(left.begin() + rank);
  }
  made->named(options_->group_name + "/without " + c10::str(ranks), left);
  if (opts) made->setTimeout(opts->timeout);
  return made;
}
#endif

void Backend::check_peer(const char* call, int peer) const {
  TORCH_CHECK(peer >= 0 && peer < getSize(), "gdrx: ", call, ": ", peer,
              " is not a rank of the group");
}

c10dWork Backend::send(Tensors& tensors, int peer, int tag) {
  at::Tensor& tensor = only("send", tensors);
  TORCH_CHECK(peer != getRank(), "gdrx: send: rank ", peer, " sends to itself");
  check_peer("send", peer);
  TORCH_CHECK(tag >= 0, "gdrx: send: a tag is not negative");
  if (Estimate* const on = estimate()) return foresee(*on, {tensor, peer, true});
  Call call = call_of(c10d::OpType::SEND, "gdrx:send", c10d::kUnsetTimeout, true);
  call.shown = call.outputs = {tensor};
  if (!tensor.is_cpu()) {
    warn_of_tag(tag);
    return exchange(std::move(call), {tensor, peer, true});
  }
  call.inputs = {dense(tensor)};
  return engine_->send(std::move(call), peer, {tag, Purpose::user});
}

c10dWork Backend::recv(Tensors& tensors, int peer, int tag) {
  at::Tensor& tensor = only("recv", tensors);
  TORCH_CHECK(peer != getRank(), "gdrx: recv: rank ", peer, " receives from itself");
  check_peer("recv", peer);
  TORCH_CHECK(tag >= 0, "gdrx: recv: a tag is not negative");
  if (Estimate* const on = estimate()) return foresee(*on, {tensor, peer, false});
  Call call = call_of(c10d::OpType::RECV, "gdrx:recv", c10d::kUnsetTimeout, true);
  call.shown = call.outputs = {tensor};
  if (!tensor.is_cpu()) {
    warn_of_tag(tag);
    return exchange(std::move(call), {tensor, peer, false});
  }
  return engine_->receive(std::move(call), peer, {tag, Purpose::user});
}

c10dWork Backend::exchange(Call call, Message message) {
  TORCH_CHECK(has_members_, "gdrx: the group has no members yet, or no longer: call reconfigure");
  call.timeout = limit_of(call.timeout) + engine_->take_extended();
  return engine_->gpu().exchange(std::move(call), std::move(message), engine_->sequence());
}

c10dWork Backend::recvAnysource(Tensors& tensors, int tag) {
  at::Tensor& tensor = only("recv", tensors);
  TORCH_CHECK(
      tensor.is_cpu(), "gdrx: recv from any rank, of a tensor on ", tensor.device(),
      ": a kernel waits for one rank. Have the sender send a small CPU tensor first, receive "
      "that from any rank, and then this one with src=");
  TORCH_CHECK(tag >= 0, "gdrx: recv: a tag is not negative");
  TORCH_CHECK(estimate() == nullptr, "gdrx: recv from any rank in a time estimate: give src=");
  Call call = call_of(c10d::OpType::RECVANYSOURCE, "gdrx:recvAnySource", c10d::kUnsetTimeout, true);
  call.shown = call.outputs = {tensor};
  return engine_->receive(std::move(call), kAnySource, {tag, Purpose::user});
}

// Rank 0 hears from each rank within the timeout, and tells all who is missing.
void Backend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  TORCH_CHECK(estimate() == nullptr,
              "gdrx: monitored_barrier in a time estimate: it waits for all ranks");
  const Milliseconds timeout = opts.timeout.count() >= 0 ? opts.timeout : engine_->timeout();
  ++barriers_;
  if (getRank() == 0) {
    TORCH_CHECK(timeout.count() > 0, "Rank 0 timed out in monitoredBarrier after 0 ms");
    const std::string missing = missing_ranks(timeout, wait_all_ranks);
    tell_barrier(missing, timeout);
    TORCH_CHECK(missing.empty(), "[Rank 0]: ", missing, " failed to pass monitoredBarrier in ",
                timeout.count(), " ms");
    return;
  }
  const Key key{barriers_, Purpose::barrier};
  Call here = call_of(c10d::OpType::BARRIER, "gdrx:monitored_barrier", timeout, true);
  here.inputs = {at::zeros({1}, at::kByte)};
  engine_->send(std::move(here), 0, key);
  Call answer = call_of(c10d::OpType::BARRIER, "gdrx:monitored_barrier", timeout, true);
  const at::Tensor word = at::zeros({96}, at::kByte);
  answer.outputs = {word};
  // Rank 0 may have come as late as this rank may, and waits as long for others.
  answer.timeout = timeout * 2;
  std::string missing;
  try {
    engine_->receive(std::move(answer), 0, key)->wait();
    missing = static_cast<const char*>(word.const_data_ptr());
  } catch (const c10::Error& error) {
    missing = error.what_without_backtrace();
  }
  TORCH_CHECK(missing.empty(), "Rank ", getRank(), " successfully reached monitoredBarrier, but ",
              "received errors while waiting for send/recv from rank 0: ", missing);
}

std::string Backend::missing_ranks(Milliseconds timeout, bool wait_all_ranks) {
  std::vector<WorkPtr> words;
  for (int rank = 1; rank < getSize(); ++rank) {
    Call call = call_of(c10d::OpType::BARRIER, "gdrx:monitored_barrier", timeout, true);
    call.outputs = {at::zeros({1}, at::kByte)};
    words.push_back(engine_->receive(std::move(call), rank, {barriers_, Purpose::barrier}));
  }
  std::string missing;
  for (int rank = 1; rank < getSize(); ++rank) {
    try {
      words[static_cast<std::size_t>(rank) - 1]->wait();
    } catch (const c10::Error&) {
      missing +=
          (missing.empty() ? (wait_all_ranks ? "Ranks " : "Rank ") : ", ") + std::to_string(rank);
      if (!wait_all_ranks) break;
    }
  }
  return missing;
}

void Backend::tell_barrier(const std::string& missing, Milliseconds timeout) {
  const at::Tensor word = at::zeros({96}, at::kByte);
  const std::size_t length = std::min<std::size_t>(missing.size(), 95);
  std::copy_n(missing.data(), length, static_cast<char*>(word.mutable_data_ptr()));
  for (int rank = 1; rank < getSize(); ++rank) {
    Call call = call_of(c10d::OpType::BARRIER, "gdrx:monitored_barrier", timeout, true);
    call.inputs = {word};
    engine_->send(std::move(call), rank, {barriers_, Purpose::barrier});
  }
}

}  // namespace gdrx_torch
