// SPDX-License-Identifier: Apache-2.0
// What calls would take, as gdrx predicts it: none of them starts, so one rank may ask alone.
#include <utility>

#include "backend.hpp"
#include "types.hpp"

namespace gdrx_torch {
namespace {

double predicted_us(gdrxComm_t comm, const char* title, const std::function<void()>& make) {
  double us = 0;
  check(gdrxGroupStart(), comm, title);
  try {
    make();
  } catch (...) {
    gdrxGroupPredict(&us);  // the thread's next call is in no group
    throw;
  }
  check(gdrxGroupPredict(&us), comm, title);
  return us;
}

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

void Backend::startTimeEstimate() { estimate_.emplace(); }

float Backend::endTimeEstimate() {
  TORCH_CHECK(estimate_, "gdrx: the end of a time estimate that has not begun");
  return static_cast<float>(std::exchange(estimate_, std::nullopt)->us);
}

// An error ends the estimate: the calls after it are made.
c10dWork Backend::foresee(const Place& place, Call call, const Poster& poster) {
  Estimate estimate = *std::exchange(estimate_, std::nullopt);
  estimate.us += place.on_gpu() ? engine_->gpu().predict(place.stream(), call.title, poster)
                                : engine_->predict(std::move(call), poster);
  estimate_ = std::move(estimate);
  return nothing_left();
}

c10dWork Backend::foresee(Message message) {
  estimate_->messages.push_back(std::move(message));
  return estimate_->bracket ? nothing_left() : foresee_messages();
}

// They start together.
c10dWork Backend::foresee_messages() {
  const std::vector<Message> messages = std::exchange(estimate_->messages, {});
  if (messages.empty()) return nothing_left();
  const Place place = place_of(messages.front().tensor, true);
  Call call = call_of(c10d::OpType::COALESCED, "gdrx:batch", c10d::kUnsetTimeout, true);
  return foresee(place, std::move(call), poster_of(messages));
}

c10dWork Backend::nothing_left() const {
  return c10::make_intrusive<AllWork>(getRank(), std::vector<c10dWork>());
}

void Backend::startCoalescing() {
  if (!estimate_) return engine_->start_coalescing();
  estimate_->bracket = true;
}

c10dWork Backend::endCoalescing() {
  if (!estimate_) return engine_->end_coalescing();
  estimate_->bracket = false;
  return foresee_messages();
}

}  // namespace gdrx_torch
