// SPDX-License-Identifier: Apache-2.0
// Lists of tensors as one buffer, which is what a call of gdrx takes.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace gdrx_torch {

inline std::size_t count(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

/// Memory that stands for a list of tensors, one behind another: their own, if they lie so, or a
/// copy.
struct Flat {
  at::Tensor buffer;
  std::vector<std::size_t> counts;  // elements of each
  bool copied = false;
  bool even() const;
  void* data() const { return buffer.mutable_data_ptr(); }
};

/// To be read: holds what the tensors have now.
Flat flat_input(const std::vector<at::Tensor>& tensors);
/// To be written. After the call `spread` brings it into the tensors; null: it is there.
Flat flat_output(const std::vector<at::Tensor>& tensors);
std::function<void()> spread(const Flat& flat, std::vector<at::Tensor> tensors);

/// One tensor that is read and written in place: itself, or a dense copy that goes back after it.
at::Tensor dense(const at::Tensor& tensor);
/// Both in turn; either may be null.
std::function<void()> both(std::function<void()> first, std::function<void()> second);
std::function<void()> copy_back(const at::Tensor& tensor, const at::Tensor& from);

}  // namespace gdrx_torch
