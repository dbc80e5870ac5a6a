// SPDX-License-Identifier: Apache-2.0
// PyTorch's element types and operators in gdrx's words, and what a tensor must be.
#pragma once

#include <gdrx/gdrx.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <string>
#include <vector>

namespace gdrx_torch {

gdrxDataType_t type_of(at::ScalarType type);

/// An operator for one call. The communicator's lock is held from here to its end: PREMUL_SUM makes
/// an operator of the communicator's, which ends with this.
class Operator {
 public:
  Operator(const c10d::ReduceOp& op, at::ScalarType type, gdrxComm_t comm);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  gdrxRedOp_t get() const { return op_; }

 private:
  gdrxRedOp_t op_ = gdrxSum;
  gdrxComm_t made_for_ = nullptr;  // null: it is one of gdrx's own
};

/// Throws what PyTorch shows as a RuntimeError, with the call's name before it.
void check_dense(const char* call, const at::Tensor& tensor);
void check_same_type(const char* call, const std::vector<at::Tensor>& tensors, at::ScalarType type);
void check_operator(const char* call, const c10d::ReduceOp& op, at::ScalarType type);
/// The only one of the list.
at::Tensor& only(const char* call, std::vector<at::Tensor>& tensors);

}  // namespace gdrx_torch
