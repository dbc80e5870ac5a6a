// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include "mpi-tests/calls.hpp"

namespace gdrx::bench {
namespace {

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::int8:
      return MPI_INT8_T;
    case DataType::uint8:
      return MPI_UINT8_T;
    case DataType::int32:
      return MPI_INT32_T;
    case DataType::uint32:
      return MPI_UINT32_T;
    case DataType::int64:
      return MPI_INT64_T;
    case DataType::uint64:
      return MPI_UINT64_T;
    case DataType::float32:
      return MPI_FLOAT;
    case DataType::float64:
      return MPI_DOUBLE;
    case DataType::int16:
      return MPI_INT16_T;
    case DataType::uint16:
      return MPI_UINT16_T;
    case DataType::boolean:
      return MPI_C_BOOL;
    case DataType::complex64:
      return MPI_C_FLOAT_COMPLEX;
    case DataType::complex128:
      return MPI_C_DOUBLE_COMPLEX;
    case DataType::long_double:
      return MPI_LONG_DOUBLE;
    case DataType::byte:
      return MPI_BYTE;
    case DataType::float_int:
      return MPI_FLOAT_INT;
    case DataType::double_int:
      return MPI_DOUBLE_INT;
    case DataType::long_int:
      return MPI_LONG_INT;
    case DataType::int_int:
      return MPI_2INT;
    case DataType::short_int:
      return MPI_SHORT_INT;
    case DataType::long_double_int:
      return MPI_LONG_DOUBLE_INT;
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
    case DataType::float8_e4m3fnuz:
    case DataType::float8_e5m2fnuz:
      return MPI_DATATYPE_NULL;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::prod:
      return MPI_PROD;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::land:
      return MPI_LAND;
    case ReduceOp::lor:
      return MPI_LOR;
    case ReduceOp::lxor:
      return MPI_LXOR;
    case ReduceOp::band:
      return MPI_BAND;
    case ReduceOp::bor:
      return MPI_BOR;
    case ReduceOp::bxor:
      return MPI_BXOR;
    case ReduceOp::minloc:
      return MPI_MINLOC;
    case ReduceOp::maxloc:
      return MPI_MAXLOC;
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
    case ReduceOp::user:
      return MPI_OP_NULL;
  }
  return MPI_OP_NULL;
}

// What is not reduced is bytes where MPI has no such type.
struct Unit {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::uint64_t elements = 1;  // of MPI's in one of ours
};
Unit unit_of(DataType type) {
  const MPI_Datatype known = mpi_type(type);
  if (known != MPI_DATATYPE_NULL) return {known, 1};
  return {MPI_BYTE, size_of(type)};
}

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}

void all_to_all_v(const Place& place, const Unit& unit, const Ends& ends) {
  std::vector<int> sends;
  std::vector<int> receives;
  std::vector<int> places;
  const auto in_units = [&](std::uint64_t count) {
    return static_cast<int>(count * unit.elements);
  };
  for (int peer = 0; peer < place.ranks; ++peer) {
    sends.push_back(in_units(place.part_between(place.rank, peer)));
    receives.push_back(in_units(place.part_between(peer, place.rank)));
    places.push_back(in_units(place.at(peer)));
  }
  MPI_Alltoallv(ends.input, sends.data(), places.data(), unit.type, ends.output, receives.data(),
                places.data(), unit.type, MPI_COMM_WORLD);
}

void hypercube(const Place& place, const Unit& unit, std::size_t element, const Ends& ends) {
  const int part = static_cast<int>(place.part() * unit.elements);
  std::byte* const own = ends.output + place.at(place.rank) * element;
  if (!ends.in_place) std::copy_n(ends.input, place.part() * element, own);
  for (int mask = 1; mask < place.ranks; mask *= 2) {
    const int peer = place.rank ^ mask;
    const int from = place.rank & ~(mask - 1);
    MPI_Sendrecv(ends.output + place.at(from) * element, part * mask, unit.type, peer, 0,
                 ends.output + place.at(from ^ mask) * element, part * mask, unit.type, peer, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

}  // namespace

bool has_mpi(const Place& place, DataType type, ReduceOp op) {
  const Unit unit = unit_of(type);
  if (place.count * unit.elements > std::numeric_limits<int>::max()) return false;
  if (!reduces(place.kind)) return true;
  const MPI_Op known = mpi_op(op);
  const bool bits = type == DataType::boolean && known != MPI_LAND && known != MPI_LOR &&
                    known != MPI_LXOR;  // which MPI does not know of truth values
  return mpi_type(type) != MPI_DATATYPE_NULL && known != MPI_OP_NULL && !bits;
}

void call_mpi(const Place& place, DataType type, ReduceOp op, const Ends& ends) {
  const Unit unit = unit_of(type);
  const int count = static_cast<int>(place.count * unit.elements);
  const int part = static_cast<int>(place.part() * unit.elements);
  const bool at_root = place.rank == place.root;
  const void* const input = ends.in_place ? MPI_IN_PLACE : ends.input;
  switch (place.kind) {
    case Kind::all_reduce:
      MPI_Allreduce(input, ends.output, count, unit.type, mpi_op(op), MPI_COMM_WORLD);
      return;
    case Kind::reduce:
      MPI_Reduce(at_root ? input : ends.input, ends.output, count, unit.type, mpi_op(op),
                 place.root, MPI_COMM_WORLD);
      return;
    case Kind::reduce_scatter:
      // In place its input is where its output begins.
      MPI_Reduce_scatter_block(input,
                               ends.in_place ? const_cast<std::byte*>(ends.input) : ends.output,
                               part, unit.type, mpi_op(op), MPI_COMM_WORLD);
      return;
    case Kind::broadcast:
      MPI_Bcast(at_root ? const_cast<std::byte*>(ends.input) : ends.output, count, unit.type,
                place.root, MPI_COMM_WORLD);
      return;
    case Kind::all_gather:
      MPI_Allgather(input, part, unit.type, ends.output, part, unit.type, MPI_COMM_WORLD);
      return;
    case Kind::all_to_all:
      MPI_Alltoall(ends.input, part, unit.type, ends.output, part, unit.type, MPI_COMM_WORLD);
      return;
    case Kind::all_to_all_v:
      return all_to_all_v(place, unit, ends);
    case Kind::gather:
      MPI_Gather(at_root ? input : ends.input, part, unit.type, ends.output, part, unit.type,
                 place.root, MPI_COMM_WORLD);
      return;
    case Kind::scatter:
      MPI_Scatter(ends.input, part, unit.type,
                  at_root && ends.in_place ? MPI_IN_PLACE : ends.output, part, unit.type,
                  place.root, MPI_COMM_WORLD);
      return;
    case Kind::send_recv:
      MPI_Sendrecv(ends.input, count, unit.type, place.next(), 0, ends.output, count, unit.type,
                   place.last(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      return;
    case Kind::hypercube:
      return hypercube(place, unit, size_of(type), ends);
  }
}

}  // namespace gdrx::bench
