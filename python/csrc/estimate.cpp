// SPDX-License-Identifier: Apache-2.0
// What calls would take, as gdrx predicts it: none of them starts, so one rank may ask alone.
#include <ATen/core/ivalue.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "backend.hpp"
#include "types.hpp"

namespace gdrx_torch {
namespace {

constexpr std::chrono::minutes kLongest{1};

// Of this thread, by the number of a backend.
std::map<std::uint64_t, Estimate>& estimates() {
  thread_local std::map<std::uint64_t, Estimate> all;
  return all;
}

double predicted_us(gdrxComm_t comm, const char* title, const std::function<void()>& make) {
  double us = 0;
  check(gdrxGroupStart(), comm, title);
  try {
    make();
  } catch (...) {
    gdrxGroupPredict(&us);  // the thread's next call is in no group
    throw;
  }
  const gdrxResult_t predicted = gdrxGroupPredict(&us);
  if (predicted == gdrxSuccess) return us;
  const std::string reason = gdrxGetLastError(comm);
  gdrxGroupEnd();  // where it was not the outermost it is open
  C10_THROW_ERROR(DistBackendError, std::string("gdrx: ") + title + ": " + reason);
}

/// A call that was not made: it has ended, and its outputs are as they were.
class Foreseen : public c10d::Work {
 public:
  Foreseen(int rank, c10d::OpType type, Tensors outputs)
      : c10d::Work(rank, type), outputs_(std::move(outputs)) {}
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(Milliseconds) override { return true; }
  void synchronize() override {}
  Tensors result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    std::vector<c10::Device> devices;  // a group has one GPU at most
    for (const at::Tensor& output : outputs_) {
      if (!output.is_cpu() && devices.empty()) devices.push_back(output.device());
    }
    auto ended = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()), std::move(devices));
    ended->markCompleted(c10::IValue(outputs_));
    return ended;
  }

 private:
  Tensors outputs_;
};

Poster poster_of(const std::vector<Message>& messages) {
  return [&](const Target& there) {
    for (const auto& [tensor, peer, sends] : messages) {
      const gdrxDataType_t type = type_of(tensor.scalar_type());
      void* const data = const_cast<void*>(tensor.const_data_ptr());  // nothing is written
      check(sends ? gdrxSend(data, count(tensor), type, peer, there.comm, there.stream,
                             there.request())
                  : gdrxRecv(data, count(tensor), type, peer, there.comm, there.stream,
                             there.request()),
            there.comm, sends ? "send" : "recv");
    }
  };
}

}  // namespace

double Engine::predict(Call call, const Poster& poster) {
  const char* const title = call.title;
  check_process(title);
  const std::lock_guard lock(mutex_);
  check_usable(title);
  const auto aside = c10::make_intrusive<Work>(shared_from_this(), rank(), std::move(call), 0);
  return predicted_us(comm_, title, [&] { poster({comm_, gdrxStreamNone, aside.get()}); });
}

double Gpu::predict(const c10::Stream& stream, const char* title, const Poster& poster) {
  check_process(title);
  const std::lock_guard launching(launching_);
  const auto made = comms_.find(kAll);
  TORCH_CHECK(made != comms_.end(), "gdrx: ", title,
              ": a time estimate of CUDA tensors needs the group's communicator for them, which "
              "their first call makes: make one, or give device_id to init_process_group");
  const gdrxComm_t comm = made->second.handle;
  return predicted_us(comm, title, [&] { poster({comm, native(stream), nullptr}); });
}

void Backend::startTimeEstimate() { estimates()[number_] = Estimate(); }

float Backend::endTimeEstimate() {
  const auto ended = estimates().extract(number_);
  TORCH_CHECK(!ended.empty(), "gdrx: the end of a time estimate that this thread has not begun");
  return static_cast<float>(ended.mapped().us);
}

Estimate* Backend::estimate() const {
  if (estimates().empty()) return nullptr;
  const auto found = estimates().find(number_);
  if (found == estimates().end()) return nullptr;
  TORCH_CHECK(Clock::now() - found->second.begun < kLongest,
              "gdrx: a time estimate has begun over a minute ago, and calls of the group start "
              "nothing since: an error in its block leaves it on. End it by "
              "group._get_backend(device)._end_time_estimate()");
  return &found->second;
}

c10dWork Backend::foresee(Estimate& estimate, const Place& place, Call call, const Poster& poster) {
  auto ended = c10::make_intrusive<Foreseen>(getRank(), call.type, call.outputs);
  estimate.us += place.on_gpu() ? engine_->gpu().predict(place.stream(), call.title, poster)
                                : engine_->predict(std::move(call), poster);
  return ended;
}

c10dWork Backend::foresee(Estimate& estimate, Message message) {
  estimate.messages.push_back(std::move(message));
  if (!estimate.bracket) return foresee_messages(estimate);
  return c10::make_intrusive<Foreseen>(getRank(), c10d::OpType::COALESCED, Tensors());
}

// They start together.
c10dWork Backend::foresee_messages(Estimate& estimate) {
  const std::vector<Message> messages = std::exchange(estimate.messages, {});
  Call call = call_of(c10d::OpType::COALESCED, "gdrx:batch", c10d::kUnsetTimeout, true);
  for (const Message& message : messages) call.outputs.push_back(message.tensor);
  if (messages.empty()) {
    return c10::make_intrusive<Foreseen>(getRank(), call.type, Tensors());
  }
  return foresee(estimate, place_of(messages.front().tensor, true), std::move(call),
                 poster_of(messages));
}

void Backend::startCoalescing() {
  Estimate* const on = estimate();
  if (on == nullptr) return engine_->start_coalescing();
  on->bracket = true;
}

c10dWork Backend::endCoalescing() {
  Estimate* const on = estimate();
  if (on == nullptr) return engine_->end_coalescing();
  on->bracket = false;
  return foresee_messages(*on);
}

}  // namespace gdrx_torch
