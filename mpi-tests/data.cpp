// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/data.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "collectives/reduce/narrow_float.hpp"

namespace gdrx::bench {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::byte kPoison{0xA5};
constexpr std::byte kGuardByte{0x5C};

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}

std::uint64_t hash(const DataKey& key, int rank, std::uint64_t i) {
  return mix(i * 0x9E3779B97F4A7C15u + key.seed * 0x100000001B3u +
             static_cast<std::uint64_t>(rank) * 0xD6E8FEB86659FD93u);
}

int spread_of(DataType type) {
  const bool wide = type == DataType::float32 || type == DataType::float64;
  const bool narrow = type == DataType::float8_e4m3 || type == DataType::float8_e5m2;
  return wide ? 8 : narrow ? 1 : 3;
}

// A float type's element as a number, exact in that type.
double number(const DataKey& key, int rank, std::uint64_t i) {
  const std::uint64_t bits = hash(key, rank, i);
  if (key.op == ReduceOp::prod) {
    const double sign = (bits & 1) != 0 ? -1 : 1;
    return static_cast<int>(i % static_cast<std::uint64_t>(key.ranks)) == rank ? 2 * sign : sign;
  }
  const int spread = spread_of(key.type);
  const auto value = static_cast<int>((bits >> 8) % static_cast<unsigned>(2 * spread + 1)) - spread;
  if (spread == 1 && (key.op == ReduceOp::sum || key.op == ReduceOp::avg)) {
    const auto place = static_cast<std::uint64_t>(rank) + i;
    if (place % static_cast<std::uint64_t>(key.ranks) >= 4) return 0;
  }
  return value;
}

template <class T>
struct FloatElement {
  using Stored = T;
  static T store(double value) { return static_cast<T>(value); }
};
template <class Bits, Bits (*kStore)(float) noexcept>
struct NarrowElement {
  using Stored = Bits;
  static Bits store(double value) { return kStore(static_cast<float>(value)); }
};

template <class T>
T combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return b > a ? b : a;
  }
  return a;
}

template <class E>
void fill_floats(const DataKey& key, int rank, std::byte* to, std::uint64_t begin,
                 std::uint64_t count) {
  using Stored = typename E::Stored;
  for (std::uint64_t k = 0; k < count; ++k) {
    double value = number(key, std::max(rank, 0), begin + k);
    for (int r = 1; rank < 0 && r < key.ranks; ++r) {
      value = combine(key.op, value, number(key, r, begin + k));
    }
    if (rank < 0 && key.op == ReduceOp::avg) {
      // The library divides in its accumulator: double for double, float for the rest.
      value = sizeof(Stored) == 8
                  ? value / key.ranks
                  : static_cast<double>(static_cast<float>(value) / static_cast<float>(key.ranks));
    }
    const Stored stored = E::store(value);
    std::memcpy(to + k * sizeof stored, &stored, sizeof stored);
  }
}

template <class T>
void fill_integers(const DataKey& key, int rank, std::byte* to, std::uint64_t begin,
                   std::uint64_t count) {
  using Unsigned = std::make_unsigned_t<T>;
  for (std::uint64_t k = 0; k < count; ++k) {
    T value = static_cast<T>(hash(key, std::max(rank, 0), begin + k));
    for (int r = 1; rank < 0 && r < key.ranks; ++r) {
      const T other = static_cast<T>(hash(key, r, begin + k));
      const bool order = key.op == ReduceOp::min || key.op == ReduceOp::max;
      value = order ? combine<T>(key.op, value, other)
                    : static_cast<T>(combine<std::uint64_t>(key.op, static_cast<Unsigned>(value),
                                                            static_cast<Unsigned>(other)));
    }
    if (rank < 0 && key.op == ReduceOp::avg) {
      if constexpr (std::is_signed_v<T>) {
        value = static_cast<T>(static_cast<std::int64_t>(value) / key.ranks);
      } else {
        value = static_cast<T>(static_cast<std::uint64_t>(value) /
                               static_cast<std::uint64_t>(key.ranks));
      }
    }
    std::memcpy(to + k * sizeof value, &value, sizeof value);
  }
}

// rank -1: the expected result.
void fill(const DataKey& key, int rank, std::byte* to, std::uint64_t begin, std::uint64_t count) {
  using namespace gdrx::reduce;
  using Half = NarrowElement<std::uint16_t, float_to_half>;
  using Bfloat16 = NarrowElement<std::uint16_t, float_to_bfloat16>;
  using E4m3 = NarrowElement<std::uint8_t, float_to_e4m3>;
  using E5m2 = NarrowElement<std::uint8_t, float_to_e5m2>;
  switch (key.type) {
    case DataType::int8:
      return fill_integers<std::int8_t>(key, rank, to, begin, count);
    case DataType::uint8:
      return fill_integers<std::uint8_t>(key, rank, to, begin, count);
    case DataType::int32:
      return fill_integers<std::int32_t>(key, rank, to, begin, count);
    case DataType::uint32:
      return fill_integers<std::uint32_t>(key, rank, to, begin, count);
    case DataType::int64:
      return fill_integers<std::int64_t>(key, rank, to, begin, count);
    case DataType::uint64:
      return fill_integers<std::uint64_t>(key, rank, to, begin, count);
    case DataType::float16:
      return fill_floats<Half>(key, rank, to, begin, count);
    case DataType::bfloat16:
      return fill_floats<Bfloat16>(key, rank, to, begin, count);
    case DataType::float32:
      return fill_floats<FloatElement<float>>(key, rank, to, begin, count);
    case DataType::float64:
      return fill_floats<FloatElement<double>>(key, rank, to, begin, count);
    case DataType::float8_e4m3:
      return fill_floats<E4m3>(key, rank, to, begin, count);
    case DataType::float8_e5m2:
      return fill_floats<E5m2>(key, rank, to, begin, count);
  }
}

}  // namespace

void fill_input(const DataKey& key, int rank, std::byte* to, std::uint64_t count) {
  fill(key, rank, to, 0, count);
}

void fill_expected(const DataKey& key, std::byte* to, std::uint64_t begin, std::uint64_t count) {
  fill(key, -1, to, begin, count);
}

std::uint64_t count_wrong(const std::byte* got, const std::byte* expected, std::size_t element,
                          std::uint64_t count) {
  if (count == 0 || std::memcmp(got, expected, count * element) == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (std::memcmp(got + i * element, expected + i * element, element) == 0) continue;
    // Zero has two signs, and which one an operator keeps is not its result.
    const bool zeros = std::all_of(got + i * element, got + (i + 1) * element - 1,
                                   [](std::byte b) { return b == std::byte{0}; }) &&
                       std::all_of(expected + i * element, expected + (i + 1) * element - 1,
                                   [](std::byte b) { return b == std::byte{0}; });
    const auto last = [&](const std::byte* p) {
      return p[(i + 1) * element - 1] & std::byte{0x7f};
    };
    if (zeros && last(got) == std::byte{0} && last(expected) == std::byte{0}) continue;
    ++wrong;
  }
  return wrong;
}

GuardedBuffer::GuardedBuffer(std::size_t bytes, bool unaligned)
    : bytes_(bytes), memory_(bytes + 2 * kGuard + 4096, kGuardByte) {
  const auto base = reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuard;
  offset_ = kGuard + (4096 - base % 4096) % 4096 + (unaligned ? 1 : 0);
  if (offset_ + bytes_ + kGuard > memory_.size())
    memory_.resize(offset_ + bytes_ + kGuard, kGuardByte);
}

void GuardedBuffer::poison() noexcept { std::fill_n(data(), bytes_, kPoison); }

std::uint64_t GuardedBuffer::damaged_guards() const noexcept {
  const auto intact = [](std::byte b) { return b == kGuardByte; };
  const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(offset_);
  const auto end = begin + static_cast<std::ptrdiff_t>(bytes_);
  return static_cast<std::uint64_t>(
      offset_ - static_cast<std::size_t>(std::count_if(memory_.begin(), begin, intact)) +
      static_cast<std::size_t>(memory_.end() - end) -
      static_cast<std::size_t>(std::count_if(end, memory_.end(), intact)));
}

}  // namespace gdrx::bench
