// SPDX-License-Identifier: Apache-2.0
// The collectives that move: all-gather, gather, scatter, all-to-all.
#include <numeric>
#include <utility>

#include "backend.hpp"
#include "flat.hpp"
#include "types.hpp"

namespace gdrx_torch {
namespace {

template <class List>
void check_list(const char* call, const List& list, int size) {
  TORCH_CHECK(list.size() == static_cast<std::size_t>(size), "gdrx: ", call, ": a list of ",
              list.size(), " for ", size, " ranks: one for each is needed");
}

// Elements for each rank, of a tensor that is cut along its first dimension. No list: even.
std::vector<std::size_t> parts(const char* which, const at::Tensor& tensor,
                               const std::vector<std::int64_t>& splits, int size) {
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (splits.empty()) {
    TORCH_CHECK(rows % size == 0, "gdrx: all_to_all_single: the ", which, " has ", rows,
                " rows, which ", size, " ranks do not divide evenly");
    return std::vector<std::size_t>(static_cast<std::size_t>(size),
                                    count(tensor) / static_cast<std::size_t>(size));
  }
  TORCH_CHECK(splits.size() == static_cast<std::size_t>(size),
              "gdrx: all_to_all_single: ", splits.size(), " ", which, " split sizes for ", size,
              " ranks");
  const std::int64_t sum = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
  TORCH_CHECK(sum == rows, "gdrx: all_to_all_single: the ", which, " split sizes sum to ", sum,
              ", its first dimension is ", rows);
  const std::int64_t row = rows == 0 ? 0 : tensor.numel() / rows;
  std::vector<std::size_t> elements;
  for (const std::int64_t split : splits) {
    TORCH_CHECK(split >= 0, "gdrx: all_to_all_single: a split size is negative");
    elements.push_back(static_cast<std::size_t>(split * row));
  }
  return elements;
}

}  // namespace

c10dWork Backend::allgather(TensorLists& outputs, Tensors& inputs,
                            const c10d::AllgatherOptions& opts) {
  only("all_gather", inputs);
  TORCH_CHECK(outputs.size() == 1, "gdrx: all_gather requires a single-element output list");
  return gather_lists(c10d::OpType::ALLGATHER, outputs, inputs, opts);
}

// outputs[rank][i] is what `rank` has as its input i.
c10dWork Backend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                      const c10d::AllgatherOptions& opts) {
  TORCH_CHECK(!inputs.empty(), "gdrx: all_gather_coalesced requires non-empty input");
  check_list("all_gather_coalesced", outputs, getSize());
  TensorLists of_each(inputs.size());
  for (const Tensors& list : outputs) {
    TORCH_CHECK(list.size() == inputs.size(), "gdrx: all_gather_coalesced: an output list of ",
                list.size(), " tensors for ", inputs.size(), " inputs");
    for (std::size_t i = 0; i < list.size(); ++i) of_each[i].push_back(list[i]);
  }
  return gather_lists(c10d::OpType::ALLGATHER_COALESCED, of_each, inputs, opts);
}

// outputs[i] has the inputs i of all ranks.
c10dWork Backend::gather_lists(c10d::OpType type, TensorLists& outputs, Tensors& inputs,
                               const c10d::AllgatherOptions& opts) {
  const Place place = place_of(inputs.front(), waits_later(opts));
  Call call = call_of(type, "gdrx:all_gather", opts.timeout, waits_later(opts));
  call.shown = inputs;
  Tensors from;
  std::vector<Flat> to;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_dense("all_gather", inputs[i]);
    check_list("all_gather", outputs[i], getSize());
    check_alike("all_gather", outputs[i], inputs[i]);
    const std::size_t mine = count(outputs[i][static_cast<std::size_t>(getRank())]);
    TORCH_CHECK(mine == count(inputs[i]), "gdrx: all_gather: this rank's input has ",
                count(inputs[i]), " elements, its place in the output ", mine);
    from.push_back(dense(inputs[i]));
    to.push_back(flat_output(outputs[i]));
    call.inputs.push_back(to.back().buffer);
    call.outputs.insert(call.outputs.end(), outputs[i].begin(), outputs[i].end());
    call.after = both(std::move(call.after), spread(to.back(), outputs[i]));
  }
  call.inputs.insert(call.inputs.end(), from.begin(), from.end());
  return post(place, std::move(call), [&](const Target& there) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const gdrxDataType_t type = type_of(from[i].scalar_type());
      const void* data = from[i].const_data_ptr();
      gdrxRequest_t* request = there.request();
      check(to[i].even() ? gdrxAllGather(data, to[i].data(), count(from[i]), type, there.comm,
                                         there.stream, request)
                         : gdrxAllGatherv(data, to[i].data(), to[i].counts.data(), nullptr, type,
                                          there.comm, there.stream, request),
            there.comm, "all_gather");
    }
  });
}

c10dWork Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                  const c10d::AllgatherOptions& opts) {
  Tensors outputs{output};
  Tensors inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, opts);
}

c10dWork Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                  const c10d::AllgatherOptions& opts) {
  TORCH_CHECK(outputs.size() == inputs.size() && !inputs.empty(),
              "gdrx: all_gather_into_tensor: ", inputs.size(), " inputs for ", outputs.size(),
              " outputs");
  const Place place = place_of(inputs.front(), waits_later(opts));
  Call call = call_of(outputs.size() == 1 ? c10d::OpType::_ALLGATHER_BASE : c10d::OpType::COALESCED,
                      "gdrx:all_gather_into_tensor", opts.timeout, waits_later(opts));
  call.shown = inputs;
  call.outputs = outputs;
  Tensors from;
  Tensors to;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_dense("all_gather_into_tensor", inputs[i]);
    check_alike("all_gather_into_tensor", {outputs[i]}, inputs[i]);
    TORCH_CHECK(outputs[i].numel() == inputs[i].numel() * getSize(),
                "gdrx: all_gather_into_tensor: an output of ", outputs[i].numel(),
                " elements for inputs of ", inputs[i].numel(), " on each of ", getSize(), " ranks");
    from.push_back(dense(inputs[i]));
    to.push_back(dense(outputs[i]));
    call.after = both(std::move(call.after), copy_back(outputs[i], to.back()));
  }
  call.inputs = from;
  call.inputs.insert(call.inputs.end(), to.begin(), to.end());
  return post(place, std::move(call), [&](const Target& there) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      check(
          gdrxAllGather(from[i].const_data_ptr(), to[i].mutable_data_ptr(), count(from[i]),
                        type_of(from[i].scalar_type()), there.comm, there.stream, there.request()),
          there.comm, "all_gather_into_tensor");
    }
  });
}

c10dWork Backend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) {
  at::Tensor& input = only("gather", inputs);
  const bool is_root = opts.rootRank == getRank();
  const Place place = place_of(input, waits_later(opts));
  const at::Tensor from = dense(input);
  Call call = call_of(c10d::OpType::GATHER, "gdrx:gather", opts.timeout, waits_later(opts));
  call.shown = {input};
  call.inputs = {from};
  Flat to;
  if (is_root) {
    TORCH_CHECK(outputs.size() == 1, "gdrx: gather requires one output list on the root");
    check_list("gather", outputs[0], getSize());
    check_alike("gather", outputs[0], input);
    to = flat_output(outputs[0]);
    call.inputs.push_back(to.buffer);
    call.outputs = outputs[0];
    call.after = spread(to, outputs[0]);
  } else {
    TORCH_CHECK(outputs.empty() || (outputs.size() == 1 && outputs[0].empty()),
                "gdrx: gather requires empty output on non-root");
  }
  return post(place, std::move(call), [&](const Target& there) {
    check(gdrxGatherv(from.const_data_ptr(), count(from), is_root ? to.data() : nullptr,
                      is_root ? to.counts.data() : nullptr, nullptr, type_of(from.scalar_type()),
                      static_cast<int>(opts.rootRank), there.comm, there.stream, there.request()),
          there.comm, "gather");
  });
}

c10dWork Backend::gather_into_tensor(at::Tensor& output, at::Tensor& input,
                                     const c10d::GatherOptions& opts) {
  TensorLists outputs;
  Tensors inputs{input};
  if (opts.rootRank == getRank()) {
    TORCH_CHECK(output.numel() == input.numel() * getSize(),
                "gdrx: gather_into_tensor: an output "
                "of ",
                output.numel(), " elements for inputs of ", input.numel(), " on each of ",
                getSize(), " ranks");
    TORCH_CHECK(output.is_contiguous(), "gdrx: gather_into_tensor: the output is not contiguous");
    outputs.push_back(output.view({-1}).chunk(getSize()));
    if (input.numel() == 0) outputs[0].assign(static_cast<std::size_t>(getSize()), output);
  }
  return gather(outputs, inputs, opts);
}

c10dWork Backend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& opts) {
  at::Tensor& output = only("scatter", outputs);
  const bool is_root = opts.rootRank == getRank();
  const Place place = place_of(output, waits_later(opts));
  const at::Tensor to = dense(output);
  Call call = call_of(c10d::OpType::SCATTER, "gdrx:scatter", opts.timeout, waits_later(opts));
  call.outputs = {output};
  call.after = copy_back(output, to);
  Flat from;
  if (is_root) {
    TORCH_CHECK(inputs.size() == 1, "gdrx: scatter requires one input list on the root");
    check_list("scatter", inputs[0], getSize());
    check_alike("scatter", inputs[0], output);
    from = flat_input(inputs[0]);
    call.shown = call.inputs = inputs[0];
    call.inputs.push_back(from.buffer);
  } else {
    TORCH_CHECK(inputs.empty() || (inputs.size() == 1 && inputs[0].empty()),
                "gdrx: scatter requires empty input on non-root");
  }
  call.inputs.push_back(to);
  return post(place, std::move(call), [&](const Target& there) {
    check(gdrxScatterv(is_root ? from.data() : nullptr, is_root ? from.counts.data() : nullptr,
                       nullptr, to.mutable_data_ptr(), count(to), type_of(to.scalar_type()),
                       static_cast<int>(opts.rootRank), there.comm, there.stream, there.request()),
          there.comm, "scatter");
  });
}

c10dWork Backend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                std::vector<int64_t>& output_splits,
                                std::vector<int64_t>& input_splits,
                                const c10d::AllToAllOptions& opts) {
  check_dense("all_to_all_single", input);
  check_alike("all_to_all_single", {output}, input);
  const auto sends = parts("input", input, input_splits, getSize());
  const auto receives = parts("output", output, output_splits, getSize());
  const Place place = place_of(input, waits_later(opts));
  const at::Tensor from = dense(input);
  const at::Tensor to = dense(output);
  Call call = call_of(c10d::OpType::ALLTOALL_BASE, "gdrx:all_to_all_single", opts.timeout,
                      waits_later(opts));
  call.shown = {input};
  call.inputs = {from, to};
  call.outputs = {output};
  call.after = copy_back(output, to);
  // Ranks see their own splits alone: whether all are even nobody knows who was given lists.
  return post(place, std::move(call), [&](const Target& there) {
    check(gdrxAllToAllv(from.const_data_ptr(), sends.data(), nullptr, to.mutable_data_ptr(),
                        receives.data(), nullptr, type_of(from.scalar_type()), there.comm,
                        there.stream, there.request()),
          there.comm, "all_to_all_single");
  });
}

c10dWork Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) {
  check_list("all_to_all", inputs, getSize());
  check_list("all_to_all", outputs, getSize());
  check_alike("all_to_all", inputs, inputs[0]);
  check_alike("all_to_all", outputs, inputs[0]);
  const Place place = place_of(inputs.front(), waits_later(opts));
  const Flat from = flat_input(inputs);
  const Flat to = flat_output(outputs);
  Call call = call_of(c10d::OpType::ALLTOALL, "gdrx:all_to_all", opts.timeout, waits_later(opts));
  call.shown = call.inputs = inputs;
  call.inputs.push_back(from.buffer);
  call.inputs.push_back(to.buffer);
  call.outputs = outputs;
  call.after = spread(to, outputs);
  return post(place, std::move(call), [&](const Target& there) {
    check(gdrxAllToAllv(from.data(), from.counts.data(), nullptr, to.data(), to.counts.data(),
                        nullptr, type_of(from.buffer.scalar_type()), there.comm, there.stream,
                        there.request()),
          there.comm, "all_to_all");
  });
}

}  // namespace gdrx_torch
