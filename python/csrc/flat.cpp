// SPDX-License-Identifier: Apache-2.0
#include "flat.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace gdrx_torch {
namespace {

// One behind another in one storage.
bool adjacent(const std::vector<at::Tensor>& tensors) {
  const auto* at = static_cast<const char*>(tensors.front().const_data_ptr());
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_contiguous()) return false;
    if (tensor.numel() == 0) continue;
    if (!tensor.is_alias_of(tensors.front()) || tensor.const_data_ptr() != at) return false;
    at += tensor.nbytes();
  }
  return true;
}

Flat flat_of(const std::vector<at::Tensor>& tensors, bool reads) {
  const at::NoGradGuard no_grad;
  Flat flat;
  std::size_t total = 0;
  for (const at::Tensor& tensor : tensors) {
    flat.counts.push_back(static_cast<std::size_t>(tensor.numel()));
    total += flat.counts.back();
  }
  if (adjacent(tensors)) {
    flat.buffer = tensors.front();
    return flat;
  }
  flat.copied = true;
  flat.buffer = at::empty({static_cast<std::int64_t>(total)}, tensors.front().options());
  if (!reads) return flat;
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    flat.buffer.narrow(0, offset, tensor.numel()).copy_(tensor.detach().reshape({-1}));
    offset += tensor.numel();
  }
  return flat;
}

}  // namespace

bool Flat::even() const {
  return std::all_of(counts.begin(), counts.end(),
                     [&](std::size_t count) { return count == counts.front(); });
}

Flat flat_input(const std::vector<at::Tensor>& tensors) { return flat_of(tensors, true); }
Flat flat_output(const std::vector<at::Tensor>& tensors) { return flat_of(tensors, false); }

std::function<void()> spread(const Flat& flat, std::vector<at::Tensor> tensors) {
  if (!flat.copied) return nullptr;
  return [buffer = flat.buffer, tensors = std::move(tensors)] {
    std::int64_t offset = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.detach().copy_(buffer.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
      offset += tensor.numel();
    }
  };
}

at::Tensor dense(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  return tensor.is_contiguous() ? tensor : tensor.detach().contiguous();
}

std::function<void()> copy_back(const at::Tensor& tensor, const at::Tensor& from) {
  if (tensor.is_same(from)) return nullptr;
  return [tensor, from] { tensor.detach().copy_(from); };
}

std::function<void()> both(std::function<void()> first, std::function<void()> second) {
  if (!first) return second;
  if (!second) return first;
  return [first = std::move(first), second = std::move(second)] {
    first();
    second();
  };
}

}  // namespace gdrx_torch
