// SPDX-License-Identifier: Apache-2.0
// PyTorch's element types and operators in gdrx's words, and what a tensor must be.
#pragma once

#include <gdrx/gdrx.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <string>
#include <vector>

#include "work.hpp"

namespace gdrx_torch {

gdrxDataType_t type_of(at::ScalarType type);

/// An operator for one call, and the type that it takes elements for. The communicator's lock is
/// held from here to its end: PREMUL_SUM makes an operator of the communicator's, which ends with
/// this. On a GPU it is a sum: the caller gives what `scaled` gave.
class Operator {
 public:
  Operator(const c10d::ReduceOp& op, at::ScalarType type, const Target& to);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  gdrxRedOp_t get() const { return op_; }
  gdrxDataType_t type() const { return type_; }

 private:
  gdrxRedOp_t op_ = gdrxSum;
  gdrxDataType_t type_;
  gdrxComm_t made_for_ = nullptr;  // null: it is one of gdrx's own
};

/// What a call with this operator reads in the tensor's place: itself, or for PREMUL_SUM on a GPU
/// its product, since kernels have no operators of a program's own.
at::Tensor scaled(const at::Tensor& tensor, const c10d::ReduceOp& op);

/// Throws what PyTorch shows as a RuntimeError, with the call's name before it.
void check_dense(const char* call, const at::Tensor& tensor);
void check_same_device(const char* call, const at::Tensor& tensor, const at::Tensor& like);
/// Of the type and on the device of `like`.
void check_alike(const char* call, const std::vector<at::Tensor>& tensors, const at::Tensor& like);
void check_operator(const char* call, const c10d::ReduceOp& op, at::ScalarType type);
/// The only one of the list.
at::Tensor& only(const char* call, std::vector<at::Tensor>& tensors);

}  // namespace gdrx_torch
