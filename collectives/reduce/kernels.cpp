// SPDX-License-Identifier: Apache-2.0
// The kernels of what programs reduce most, compiled once an instruction set.
#include <array>

#include "collectives/reduce/kernel_table.hpp"
#include "collectives/reduce/loops.hpp"
#include "collectives/reduce/narrow_float.hpp"

namespace gdrx::reduce::GDRX_ISA {
namespace {

using Bfloat16 = Narrow<std::uint16_t, bfloat16_to_float, float_to_bfloat16>;
using E4m3 = Narrow<std::uint8_t, e4m3_to_float, float_to_e4m3>;
using E5m2 = Narrow<std::uint8_t, e5m2_to_float, float_to_e5m2>;

template <class E>
constexpr KernelRow row() {
  KernelRow kernels{};
  at(kernels, ReduceOp::sum) = reduce_all<E, Sum>;
  at(kernels, ReduceOp::prod) = reduce_all<E, Prod>;
  at(kernels, ReduceOp::min) = reduce_all<E, Min>;
  at(kernels, ReduceOp::max) = reduce_all<E, Max>;
  at(kernels, ReduceOp::avg) = reduce_all<E, Sum>;  // with a division at its end
  at(kernels, ReduceOp::premul_sum) = reduce_all<E, Sum>;
  return kernels;
}

/// A sum of complex numbers is one of twice as many real ones.
template <class T>
void sum_halves(void* dst, const void* const* sources, std::size_t source_count, std::size_t count,
                int finish_over) {
  reduce_all<Plain<T>, Sum>(dst, sources, source_count, 2 * count, finish_over);
}

template <class T>
constexpr KernelRow complex_row() {
  KernelRow kernels{};
  at(kernels, ReduceOp::sum) = sum_halves<T>;
  at(kernels, ReduceOp::avg) = sum_halves<T>;
  at(kernels, ReduceOp::premul_sum) = sum_halves<T>;
  return kernels;
}

constexpr KernelTable table() {
  KernelTable kernels{};
  at(kernels, DataType::int8) = row<Plain<std::int8_t>>();
  at(kernels, DataType::uint8) = row<Plain<std::uint8_t>>();
  at(kernels, DataType::int16) = row<Plain<std::int16_t>>();
  at(kernels, DataType::uint16) = row<Plain<std::uint16_t>>();
  at(kernels, DataType::int32) = row<Plain<std::int32_t>>();
  at(kernels, DataType::uint32) = row<Plain<std::uint32_t>>();
  at(kernels, DataType::int64) = row<Plain<std::int64_t>>();
  at(kernels, DataType::uint64) = row<Plain<std::uint64_t>>();
  at(kernels, DataType::float16) = row<Half>();
  at(kernels, DataType::bfloat16) = row<Bfloat16>();
  at(kernels, DataType::float32) = row<Plain<float>>();
  at(kernels, DataType::float64) = row<Plain<double>>();
  at(kernels, DataType::float8_e4m3) = row<E4m3>();
  at(kernels, DataType::float8_e5m2) = row<E5m2>();
  at(kernels, DataType::complex64) = complex_row<float>();
  at(kernels, DataType::complex128) = complex_row<double>();
  return kernels;
}

}  // namespace

extern const KernelTable kernels;
constexpr KernelTable kernels = table();

}  // namespace gdrx::reduce::GDRX_ISA
