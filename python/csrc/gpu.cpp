// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine.hpp"
#include "flat.hpp"
#include "types.hpp"

namespace gdrx_torch {
Place::Place(Gpu& gpu, c10::Device device, bool async) : async_(async) {
  device = numbered(device);
  const c10::Stream own = gpu.stream_of(device);  // also a check of the device
  const c10::Stream caller = current_stream(device);
  if (async) {
    c10::Event now(device.type());
    now.record(caller);
    now.block(own);
  }
  stream_ = async ? own : caller;
  guard_.reset_stream(*stream_);
}

gdrxConfig_t config_of(const Wishes& wishes) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.gpu_blocks = wishes.gpu_blocks;
  config.reproducible = wishes.reproducible ? 1 : 0;
  return config;
}

Gpu::Gpu(Meeting meeting, int number)
    : meeting_(std::move(meeting)), number_(number), process_(getpid()) {}

void Gpu::check_process(const char* call) const {
  TORCH_CHECK(getpid() == process_, "gdrx: ", call,
              ": the process was forked: a group belongs to the process that made it");
}

c10::Stream Gpu::stream_of(c10::Device device) {
  const std::lock_guard lock(lock_);
  TORCH_CHECK(!device_ || *device_ == device, "gdrx: a tensor on ", device, ": this group is on ",
              *device_, ", a group has one GPU a rank");
  device_ = device;
  if (!own_) {
    own_ = c10::impl::VirtualGuardImpl(device.type())
               .getStreamFromGlobalPool(device, meeting_.wishes.urgent_stream);
  }
  return *own_;
}

void Gpu::connect(c10::Device device, Milliseconds timeout) {
  stream_of(device);
  const std::lock_guard lock(launching_);
  comm_of(kAll, timeout);
}

// With launching_ held. Two ranks that talk before all have met have a communicator of their own.
Gpu::Comm& Gpu::comm_of(int peer, Milliseconds timeout) {
  if (meeting_.size == 2 || comms_.contains(kAll)) peer = kAll;
  if (const auto made = comms_.find(peer); made != comms_.end()) return made->second;
  const Comm made = make(peer, timeout);
  const std::lock_guard lock(lock_);
  return comms_.emplace(peer, made).first->second;
}

Gpu::Comm Gpu::make(int peer, Milliseconds timeout) {
  std::string key = meeting_.name + "/cuda";
  int rank = meeting_.rank;
  int size = meeting_.size;
  if (peer != kAll) {
    const auto [low, high] = std::minmax(rank, peer);
    key += "/" + std::to_string(low) + "-" + std::to_string(high);
    rank = rank == low ? 0 : 1;
    size = 2;
  }
  const gdrxUniqueId id = exchange_id(meeting_.store, key, rank);
  const int gpu = device_->index();
  gdrxConfig_t config = config_of(meeting_.wishes);
  config.timeout_seconds = std::chrono::duration<double>(timeout).count();
  config.gpus = &gpu;
  Comm comm{nullptr, timeout, 0};
  if (gdrxCommInitRank(&comm.handle, size, id, rank, &config) != gdrxSuccess) {
    C10_THROW_ERROR(DistBackendError, std::string("gdrx: no communicator for CUDA tensors: ") +
                                          gdrxGetLastError(nullptr));
  }
  gdrxMemoryInfo_t held{};
  held.size = sizeof held;
  check(gdrxCommGetMemory(comm.handle, &held), comm.handle, "memory of a new communicator");
  comm.memory = held.gpu_bytes;
  return comm;
}

void Gpu::run(const Place& place, GpuWork& work, int peer, const Poster& poster) {
  const Call& call = work.call;
  check_process(call.title);
  if (place.async()) free_shelf(place.stream());
  const std::lock_guard launching(launching_);
  TORCH_CHECK(!left_, "gdrx: ", call.title, ": the group was shut down");
  TORCH_CHECK(!comms_.empty() || !is_captured(place.stream()), "gdrx: ", call.title,
              ": the first call of CUDA tensors in a group makes its communicator, which no graph "
              "can record: make one call before the capture");
  Comm& comm = comm_of(peer, call.timeout);
  if (comm.limit != call.timeout) {
    gdrxCommSetTimeout(comm.handle, std::chrono::duration<double>(call.timeout).count());
    comm.limit = call.timeout;
  }
  {
    const std::lock_guard lock(lock_);
    last_ = place.stream();
    calls_[call.title].add(call);
  }
  try {
    poster({comm.handle, native(place.stream()), nullptr});
    if (call.after) {
      const at::NoGradGuard no_grad;
      call.after();
    }
  } catch (...) {
    work.begun(place);  // a part of it may run
    throw;
  }
  work.begun(place);
}

c10::intrusive_ptr<c10d::Work> Gpu::launch(const Place& place, Call call, const Poster& poster,
                                           std::uint64_t number) {
  const bool barrier = call.type == c10d::OpType::BARRIER;
  auto work =
      c10::make_intrusive<GpuWork>(shared_from_this(), meeting_.rank, std::move(call), number);
  if (barrier) work->block_host();
  Record::of_process().begin(number_, work->call, number, {}, true);
  run(place, *work, kAll, poster);
  const std::lock_guard lock(lock_);
  if (bracket_) bracket_->works.push_back(work);
  return work;
}

c10::intrusive_ptr<c10d::Work> Gpu::exchange(Call call, Message message, std::uint64_t number) {
  stream_of(message.tensor.device());
  {
    const std::lock_guard lock(lock_);
    if (bracket_) {
      if (!bracket_->batch) {
        Call all = call;
        all.type = c10d::OpType::COALESCED;
        all.title = "gdrx:batch";
        all.outputs.clear();
        bracket_->batch =
            c10::make_intrusive<GpuWork>(shared_from_this(), meeting_.rank, std::move(all), number);
      }
      Call& all = bracket_->batch->call;
      all.outputs.push_back(message.tensor);
      bracket_->messages.push_back(std::move(message));
      return bracket_->batch;
    }
  }
  auto work =
      c10::make_intrusive<GpuWork>(shared_from_this(), meeting_.rank, std::move(call), number);
  const int peer = message.peer;
  run_messages({std::move(message)}, *work, peer);
  return work;
}

void Gpu::record(const Message& message) {
  Call call;
  call.title = message.sends ? "gdrx:send" : "gdrx:recv";
  (message.sends ? call.inputs : call.outputs).push_back(message.tensor);
  Record::of_process().begin(number_, call, 0, {message.peer, message.sends}, true);
}

void Gpu::run_messages(const std::vector<Message>& messages, GpuWork& work, int peer) {
  const Place place(*this, messages.front().tensor.device(), true);
  Call& call = work.call;
  for (const Message& message : messages) {
    const at::Tensor buffer = dense(message.tensor);
    call.inputs.push_back(buffer);
    if (!message.sends) call.after = both(std::move(call.after), copy_back(message.tensor, buffer));
    record(message);
  }
  run(place, work, peer, [&](const Target& to) {
    int ranks = 0;
    gdrxCommCount(to.comm, &ranks);
    const bool pair = ranks != meeting_.size;  // then the peer is its only other rank
    gdrxGroupStart();
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& [tensor, other, sends] = messages[i];
      const int there = pair ? (other < meeting_.rank ? 0 : 1) : other;
      void* const data = call.inputs[i].mutable_data_ptr();
      const gdrxDataType_t type = type_of(tensor.scalar_type());
      if (sends) {
        gdrxSend(data, count(tensor), type, there, to.comm, to.stream, nullptr);
      } else {
        gdrxRecv(data, count(tensor), type, there, to.comm, to.stream, nullptr);
      }
    }
    check(gdrxGroupEnd(), to.comm, call.title);  // with the first error of them all
  });
}

void Gpu::start_coalescing() {
  const std::lock_guard lock(lock_);
  bracket_.emplace();  // an error may have left another open
}

std::vector<c10::intrusive_ptr<c10d::Work>> Gpu::end_coalescing() {
  std::optional<Bracket> ended;
  {
    const std::lock_guard lock(lock_);
    ended.swap(bracket_);
  }
  if (!ended) return {};
  if (ended->batch) {
    run_messages(ended->messages, *ended->batch, kAll);
    ended->works.push_back(ended->batch);
  }
  return std::move(ended->works);
}

std::map<const char*, Counted> Gpu::counts() {
  const std::lock_guard lock(lock_);
  return calls_;
}

std::uint64_t Gpu::memory() {
  const std::lock_guard lock(lock_);
  std::uint64_t bytes = 0;
  for (const auto& [peer, comm] : comms_) bytes += comm.memory;
  return bytes;
}

std::string Gpu::explain(c10::Device device, std::size_t bytes, Milliseconds timeout) {
  check_process("explain");
  stream_of(numbered(device));
  const std::lock_guard lock(launching_);
  TORCH_CHECK(!left_, "gdrx: explain: the group was shut down");
  Comm& comm = comm_of(kAll, timeout);
  std::vector<char> text(16384);
  check(gdrxCommExplain(comm.handle, bytes, text.data(), text.size()), comm.handle, "explain");
  return text.data();
}

}  // namespace gdrx_torch
