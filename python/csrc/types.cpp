// SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace gdrx_torch {

gdrxDataType_t type_of(at::ScalarType type) {
  switch (type) {
    case at::kChar:
      return gdrxInt8;
    case at::kByte:
      return gdrxUint8;
    case at::kShort:
      return gdrxInt16;
    case at::kInt:
      return gdrxInt32;
    case at::kLong:
      return gdrxInt64;
    case at::kUInt16:
      return gdrxUint16;
    case at::kUInt32:
      return gdrxUint32;
    case at::kUInt64:
      return gdrxUint64;
    case at::kHalf:
      return gdrxFloat16;
    case at::kBFloat16:
      return gdrxBfloat16;
    case at::kFloat:
      return gdrxFloat32;
    case at::kDouble:
      return gdrxFloat64;
    case at::kBool:
      return gdrxBool;
    case at::kComplexFloat:
      return gdrxComplex64;
    case at::kComplexDouble:
      return gdrxComplex128;
    case at::kFloat8_e4m3fn:
      return gdrxFloat8e4m3;
    case at::kFloat8_e5m2:
      return gdrxFloat8e5m2;
    case at::kFloat8_e4m3fnuz:
      return gdrxFloat8e4m3fnuz;
    case at::kFloat8_e5m2fnuz:
      return gdrxFloat8e5m2fnuz;
    default:
      TORCH_CHECK(false, "gdrx has no element type for ", c10::toString(type));
  }
}

namespace {

using Kind = c10d::ReduceOp::RedOpType;

// Truths are bytes of 0 and 1 to a kernel, which has no logical operators. For "exclusive or" there
// is no other: such a call goes through host memory.
gdrxRedOp_t of_bytes(gdrxRedOp_t logical) { return logical == gdrxLor ? gdrxMax : gdrxMin; }

// gdrx's bool takes logical operators: a sum of truths is their "or", a product their "and".
gdrxRedOp_t of_bool(Kind kind) {
  switch (kind) {
    case Kind::SUM:
    case Kind::MAX:
    case Kind::BOR:
      return gdrxLor;
    case Kind::PRODUCT:
    case Kind::MIN:
    case Kind::BAND:
      return gdrxLand;
    default:
      return gdrxBxor;
  }
}

gdrxRedOp_t of_number(Kind kind) {
  switch (kind) {
    case Kind::AVG:
      return gdrxAvg;
    case Kind::PRODUCT:
      return gdrxProd;
    case Kind::MIN:
      return gdrxMin;
    case Kind::MAX:
      return gdrxMax;
    case Kind::BAND:
      return gdrxBand;
    case Kind::BOR:
      return gdrxBor;
    case Kind::BXOR:
      return gdrxBxor;
    default:
      return gdrxSum;
  }
}

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
using Factor = c10d::PreMulSumSupplement;
#else
using Factor = c10d::NCCLPreMulSumSupplement;
#endif

// A number without a dimension, so that it multiplies tensors on any device.
at::Tensor factor_of(const c10d::ReduceOp& op, at::ScalarType type) {
  const auto* factor = dynamic_cast<const Factor*>(op.supplement_.get());
  TORCH_CHECK(factor != nullptr, "gdrx: PREMUL_SUM comes without its factor");
  const at::NoGradGuard no_grad;
  if (factor->tensor_factor.defined()) {
    return factor->tensor_factor.detach().to(type).reshape({});
  }
  return at::full({}, factor->double_factor, at::TensorOptions().dtype(at::kDouble)).to(type);
}

}  // namespace

Operator::Operator(const c10d::ReduceOp& op, at::ScalarType type, const Target& to)
    : type_(type_of(type)) {
  if (op.op_ != Kind::PREMUL_SUM) {
    op_ = type == at::kBool ? of_bool(op.op_) : of_number(op.op_);
    if (to.on_gpu() && type == at::kBool && op_ != gdrxBxor) {
      op_ = of_bytes(op_);
      type_ = gdrxUint8;
    }
    return;
  }
  if (to.on_gpu()) return;
  const at::Tensor factor = factor_of(op, type).cpu();
  const auto made = gdrxRedOpCreatePreMulSum(&op_, factor.const_data_ptr(), type_, to.comm);
  TORCH_CHECK(made == gdrxSuccess, "gdrx: PREMUL_SUM: ", gdrxGetLastError(to.comm));
  made_for_ = to.comm;
}

at::Tensor scaled(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  if (op.op_ != Kind::PREMUL_SUM || tensor.is_cpu()) return tensor;
  const at::NoGradGuard no_grad;
  return tensor.detach().mul(factor_of(op, tensor.scalar_type()));
}

Operator::~Operator() {
  if (made_for_ != nullptr) gdrxRedOpDestroy(op_, made_for_);
}

void check_dense(const char* call, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined(), "gdrx: ", call, ": a tensor is not defined");
  TORCH_CHECK(tensor.layout() == at::kStrided, "gdrx: ", call,
              ": a sparse tensor: gdrx moves dense ones, give tensor.to_dense()");
  TORCH_CHECK(tensor.is_cpu() || tensor.is_cuda(), "gdrx: ", call, ": a tensor on ",
              tensor.device(), ": gdrx serves CPU and CUDA tensors");
  type_of(tensor.scalar_type());
}

void check_same_device(const char* call, const at::Tensor& tensor, const at::Tensor& like) {
  TORCH_CHECK(tensor.device() == like.device(), "gdrx: ", call, ": tensors on ", like.device(),
              " and on ", tensor.device(), " in one call: all must be on one device");
}

void check_alike(const char* call, const std::vector<at::Tensor>& tensors, const at::Tensor& like) {
  const at::ScalarType type = like.scalar_type();
  for (const at::Tensor& tensor : tensors) {
    check_dense(call, tensor);
    check_same_device(call, tensor, like);
    TORCH_CHECK(tensor.scalar_type() == type, "gdrx: ", call, ": tensors of ", type, " and of ",
                tensor.scalar_type(), " in one call: all must be of one type");
  }
}

void check_operator(const char* call, const c10d::ReduceOp& op, at::ScalarType type) {
  const bool bits = op.op_ == Kind::BAND || op.op_ == Kind::BOR || op.op_ == Kind::BXOR;
  const bool scaled = op.op_ == Kind::AVG || op.op_ == Kind::PREMUL_SUM;
  const bool ordered = op.op_ == Kind::MIN || op.op_ == Kind::MAX;
  TORCH_CHECK(!bits || c10::isIntegralType(type, true), "gdrx: ", call, ": a bitwise operator on ",
              type, ": it needs integers or bool");
  TORCH_CHECK(!scaled || type != at::kBool, "gdrx: ", call,
              ": AVG and PREMUL_SUM have no meaning for bool");
  TORCH_CHECK(!ordered || !c10::isComplexType(type), "gdrx: ", call,
              ": complex numbers have no MIN and no MAX");
}

at::Tensor& only(const char* call, std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "gdrx: ", call, ": a list of ", tensors.size(),
              " tensors: it requires a single-element list");
  check_dense(call, tensors.front());
  return tensors.front();
}

}  // namespace gdrx_torch
