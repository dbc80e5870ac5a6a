// SPDX-License-Identifier: Apache-2.0
// The collectives that reduce, and broadcast and barrier.
#include <utility>

#include "backend.hpp"
#include "flat.hpp"
#include "types.hpp"

namespace gdrx_torch {
namespace {

// Small tensors of one type go as one call, up to so much; larger ones each by itself, uncopied.
constexpr std::size_t kJoined = 1 << 20;

bool joins(const Tensors& tensors) {
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() != tensors.front().scalar_type()) return false;
    bytes += tensor.nbytes();
  }
  return bytes <= kJoined;
}

// `buffers` in place, each by a request of its own.
Poster all_reduces(Tensors buffers, c10d::ReduceOp op) {
  return [buffers = std::move(buffers), op = std::move(op)](const Target& there) {
    for (const at::Tensor& buffer : buffers) {
      const Operator made(op, buffer.scalar_type(), there);
      const at::Tensor from = scaled(buffer, op);
      check(gdrxAllReduce(from.const_data_ptr(), buffer.mutable_data_ptr(), count(buffer),
                          made.type(), made.get(), there.comm, there.stream, there.request()),
            there.comm, "all_reduce");
    }
  };
}

}  // namespace

c10dWork Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  at::Tensor& tensor = only("broadcast", tensors);
  const Place place = place_of(tensor, waits_later(opts));
  const at::Tensor buffer = dense(tensor);
  Call call = call_of(c10d::OpType::BROADCAST, "gdrx:broadcast", opts.timeout, waits_later(opts));
  call.shown = call.outputs = {tensor};
  call.inputs = {buffer};
  call.after = copy_back(tensor, buffer);
  return post(place, std::move(call), [&](const Target& there) {
    void* data = buffer.mutable_data_ptr();
    check(gdrxBroadcast(data, data, count(buffer), type_of(buffer.scalar_type()),
                        static_cast<int>(opts.rootRank), there.comm, there.stream, there.request()),
          there.comm, "broadcast");
  });
}

c10dWork Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  at::Tensor& tensor = only("all_reduce", tensors);
  check_operator("all_reduce", opts.reduceOp, tensor.scalar_type());
  const Place place = place_of(tensor, waits_later(opts));
  const at::Tensor buffer = dense(tensor);
  Call call = call_of(c10d::OpType::ALLREDUCE, "gdrx:all_reduce", opts.timeout, waits_later(opts));
  call.shown = call.outputs = {tensor};
  call.inputs = {buffer};
  call.after = copy_back(tensor, buffer);
  return post(place, std::move(call), all_reduces({buffer}, opts.reduceOp));
}

c10dWork Backend::allreduce_sparse(Tensors&, const c10d::AllreduceOptions&) {
  TORCH_CHECK(false,
              "gdrx: all_reduce of a sparse tensor: gdrx adds dense ones. Give tensor.to_dense(), "
              "or make embeddings with sparse=False");
}

c10dWork Backend::allreduce_coalesced(Tensors& tensors,
                                      const c10d::AllreduceCoalescedOptions& opts) {
  TORCH_CHECK(!tensors.empty(), "gdrx: all_reduce_coalesced requires a non-empty list");
  for (const at::Tensor& tensor : tensors) {
    check_dense("all_reduce_coalesced", tensor);
    check_same_device("all_reduce_coalesced", tensor, tensors.front());
    check_operator("all_reduce_coalesced", opts.reduceOp, tensor.scalar_type());
  }
  Call call = call_of(c10d::OpType::ALLREDUCE_COALESCED, "gdrx:all_reduce_coalesced", opts.timeout,
                      waits_later(opts));
  call.shown = call.outputs = tensors;
  const Place place = place_of(tensors.front(), waits_later(opts));
  if (joins(tensors)) {
    const Flat flat = flat_input(tensors);
    std::size_t all = 0;
    for (const std::size_t part : flat.counts) all += part;
    call.inputs = tensors;
    call.inputs.push_back(flat.buffer);
    call.after = spread(flat, tensors);
    const at::ScalarType type = tensors.front().scalar_type();
    return post(place, std::move(call), [&](const Target& there) {
      const Operator made(opts.reduceOp, type, there);
      const at::Tensor from = scaled(flat.buffer, opts.reduceOp);
      check(gdrxAllReduce(from.const_data_ptr(), flat.data(), all, made.type(), made.get(),
                          there.comm, there.stream, there.request()),
            there.comm, "all_reduce_coalesced");
    });
  }
  for (const at::Tensor& tensor : tensors) {
    call.inputs.push_back(dense(tensor));
    call.after = both(std::move(call.after), copy_back(tensor, call.inputs.back()));
  }
  Tensors buffers = call.inputs;
  return post(place, std::move(call), all_reduces(std::move(buffers), opts.reduceOp));
}

c10dWork Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  at::Tensor& tensor = only("reduce", tensors);
  check_operator("reduce", opts.reduceOp, tensor.scalar_type());
  const Place place = place_of(tensor, waits_later(opts));
  const at::Tensor buffer = dense(tensor);
  const bool is_root = opts.rootRank == getRank();
  Call call = call_of(c10d::OpType::REDUCE, "gdrx:reduce", opts.timeout, waits_later(opts));
  call.shown = call.outputs = {tensor};
  call.inputs = {buffer};
  if (is_root) call.after = copy_back(tensor, buffer);
  return post(place, std::move(call), [&](const Target& there) {
    const Operator made(opts.reduceOp, buffer.scalar_type(), there);
    const at::Tensor from = scaled(buffer, opts.reduceOp);
    check(gdrxReduce(from.const_data_ptr(), is_root ? buffer.mutable_data_ptr() : nullptr,
                     count(buffer), made.type(), made.get(), static_cast<int>(opts.rootRank),
                     there.comm, there.stream, there.request()),
          there.comm, "reduce");
  });
}

c10dWork Backend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                 const c10d::ReduceScatterOptions& opts) {
  at::Tensor& output = only("reduce_scatter", outputs);
  TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == static_cast<std::size_t>(getSize()),
              "gdrx: reduce_scatter requires one list of as many tensors as there are ranks");
  const at::ScalarType type = output.scalar_type();
  check_alike("reduce_scatter", inputs[0], output);
  check_operator("reduce_scatter", opts.reduceOp, type);
  const std::size_t mine = count(inputs[0][static_cast<std::size_t>(getRank())]);
  TORCH_CHECK(mine == count(output), "gdrx: reduce_scatter: this rank's output has ", count(output),
              " elements, its part of the input ", mine);
  const Place place = place_of(output, waits_later(opts));
  const Flat flat = flat_input(inputs[0]);
  const at::Tensor buffer = dense(output);
  Call call =
      call_of(c10d::OpType::REDUCE_SCATTER, "gdrx:reduce_scatter", opts.timeout, waits_later(opts));
  call.shown = call.inputs = inputs[0];
  call.inputs.push_back(flat.buffer);
  call.inputs.push_back(buffer);
  call.outputs = {output};
  call.after = copy_back(output, buffer);
  return post(place, std::move(call), [&](const Target& there) {
    const Operator made(opts.reduceOp, type, there);
    const at::Tensor from = scaled(flat.buffer, opts.reduceOp);
    gdrxRequest_t* request = there.request();
    void* to = buffer.mutable_data_ptr();
    check(flat.even()
              ? gdrxReduceScatter(from.const_data_ptr(), to, mine, made.type(), made.get(),
                                  there.comm, there.stream, request)
              : gdrxReduceScatterv(from.const_data_ptr(), to, flat.counts.data(), made.type(),
                                   made.get(), there.comm, there.stream, request),
          there.comm, "reduce_scatter");
  });
}

c10dWork Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                       const c10d::ReduceScatterOptions& opts) {
  Tensors outputs{output};
  Tensors inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, opts);
}

c10dWork Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                  const c10d::ReduceScatterOptions& opts) {
  TORCH_CHECK(outputs.size() == inputs.size() && !outputs.empty(),
              "gdrx: reduce_scatter_tensor: ", inputs.size(), " inputs for ", outputs.size(),
              " outputs");
  const Place place = place_of(outputs.front(), waits_later(opts));
  Call call =
      call_of(outputs.size() == 1 ? c10d::OpType::_REDUCE_SCATTER_BASE : c10d::OpType::COALESCED,
              "gdrx:reduce_scatter_tensor", opts.timeout, waits_later(opts));
  call.shown = inputs;
  call.outputs = outputs;
  Tensors from;
  Tensors to;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check_dense("reduce_scatter_tensor", outputs[i]);
    check_alike("reduce_scatter_tensor", {inputs[i]}, outputs[i]);
    check_operator("reduce_scatter_tensor", opts.reduceOp, outputs[i].scalar_type());
    TORCH_CHECK(inputs[i].numel() == outputs[i].numel() * getSize(),
                "gdrx: reduce_scatter_tensor: an input of ", inputs[i].numel(),
                " elements for an output of ", outputs[i].numel(), " on each of ", getSize(),
                " ranks");
    from.push_back(dense(inputs[i]));
    to.push_back(dense(outputs[i]));
    call.after = both(std::move(call.after), copy_back(outputs[i], to.back()));
  }
  call.inputs = from;
  call.inputs.insert(call.inputs.end(), to.begin(), to.end());
  return post(place, std::move(call), [&](const Target& there) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const Operator made(opts.reduceOp, to[i].scalar_type(), there);
      const at::Tensor source = scaled(from[i], opts.reduceOp);
      check(gdrxReduceScatter(source.const_data_ptr(), to[i].mutable_data_ptr(), count(to[i]),
                              made.type(), made.get(), there.comm, there.stream, there.request()),
            there.comm, "reduce_scatter_tensor");
    }
  });
}

// Of the host's memory, unless a GPU is named.
c10dWork Backend::barrier(const c10d::BarrierOptions& opts) {
  const bool named = (opts.device && !opts.device->is_cpu()) || !opts.device_ids.empty();
  const Place place =
      named ? Place(engine_->gpu(),
                    opts.device.value_or(at::Device(
                        at::kCUDA, static_cast<at::DeviceIndex>(opts.device_ids.front()))),
                    waits_later(opts))
            : Place();
  Call call = call_of(c10d::OpType::BARRIER, "gdrx:barrier", opts.timeout, waits_later(opts));
  return post(place, std::move(call), [](const Target& there) {
    check(gdrxBarrier(there.comm, there.stream, there.request()), there.comm, "barrier");
  });
}

}  // namespace gdrx_torch
