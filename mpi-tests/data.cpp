// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/data.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "collectives/reduce/narrow_float.hpp"

namespace gdrx::bench {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::byte kPoison{0xA5};
constexpr std::byte kGuardByte{0x5C};
constexpr std::size_t kBlock = 2048;  // elements at once: everything of them stays in the cache
constexpr std::int32_t kSparse = 4;   // ranks that give float8 a number, see data.hpp

using Block = std::array<std::uint32_t, kBlock>;

// 32 random bits an element. Without branches or division: this loop is most of the time.
void hash_block(const DataKey& key, int rank, std::uint64_t begin, std::size_t count, Block& out) {
  std::uint64_t seed = key.seed * 0x100000001B3u + (begin >> 32) * 0xD6E8FEB86659FD93u +
                       static_cast<std::uint64_t>(rank) * 0x9E3779B97F4A7C15u;
  seed = (seed ^ (seed >> 31)) * 0xBF58476D1CE4E5B9u;
  const auto add = static_cast<std::uint32_t>(seed >> 32);
  const auto flip = static_cast<std::uint32_t>(seed);
  const auto first = static_cast<std::uint32_t>(begin);
  for (std::size_t k = 0; k < count; ++k) {
    std::uint32_t x = (first + static_cast<std::uint32_t>(k)) * 0x9E3779B1u + add;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13) ^ flip) * 0xC2B2AE35u;
    out[k] = x ^ (x >> 16);
  }
}

/// into = into op from, element by element; Wide is what the operator computes in.
template <class Wide, class T>
void combine_block(ReduceOp op, T* into, const T* from, std::size_t count) {
  const auto loop = [&](auto f) {
    for (std::size_t k = 0; k < count; ++k) into[k] = f(into[k], from[k]);
  };
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return loop(
          [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); });
    case ReduceOp::prod:
      return loop(
          [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); });
    case ReduceOp::min:
      return loop([](T a, T b) { return std::min(a, b); });
    case ReduceOp::max:
      return loop([](T a, T b) { return std::max(a, b); });
    case ReduceOp::land:
      return loop([](T a, T b) { return static_cast<T>(a != 0 && b != 0); });
    case ReduceOp::lor:
      return loop([](T a, T b) { return static_cast<T>(a != 0 || b != 0); });
    case ReduceOp::lxor:
      return loop([](T a, T b) { return static_cast<T>((a != 0) != (b != 0)); });
    case ReduceOp::band:
      return loop([](T a, T b) { return static_cast<T>(a & b); });
    case ReduceOp::bor:
      return loop([](T a, T b) { return static_cast<T>(a | b); });
    case ReduceOp::bxor:
      return loop([](T a, T b) { return static_cast<T>(a ^ b); });
    case ReduceOp::minloc:  // of pairs, as the next
    case ReduceOp::maxloc:
    case ReduceOp::premul_sum:  // no name stands for it, nor for the next
    case ReduceOp::user:
      break;
  }
}

int spread_of(DataType type) {
  const std::size_t size = size_of(type);
  return size >= 4 ? 8 : size == 1 ? 1 : 3;
}

// A float type's elements as whole numbers.
void numbers(const DataKey& key, int rank, std::uint64_t begin, std::size_t count,
             std::int32_t* out) {
  Block bits;
  hash_block(key, rank, begin, count, bits);
  const auto ranks = static_cast<std::uint64_t>(key.ranks);
  // Counts with the element up to `ranks`, which spares a division each.
  auto turn = static_cast<std::int32_t>((begin + ranks - static_cast<std::uint64_t>(rank)) % ranks);
  const auto next = [&] { return std::exchange(turn, turn + 1 == key.ranks ? 0 : turn + 1); };
  if (key.op == ReduceOp::prod) {
    for (std::size_t k = 0; k < count; ++k) {
      const std::int32_t sign = (bits[k] & 1) != 0 ? -1 : 1;
      out[k] = next() == 0 ? 2 * sign : sign;
    }
    return;
  }
  const int spread = spread_of(key.type);
  const auto choices = 2 * static_cast<std::uint64_t>(spread) + 1;
  for (std::size_t k = 0; k < count; ++k) {
    out[k] = static_cast<std::int32_t>((bits[k] * choices) >> 32) - spread;
  }
  if (spread == 1 && (key.op == ReduceOp::sum || key.op == ReduceOp::avg)) {
    for (std::size_t k = 0; k < count; ++k) {
      if (next() >= kSparse) out[k] = 0;
    }
  }
}

template <class T>
struct FloatElement {
  using Stored = T;
  using Wide = double;
  static T store(double value) { return static_cast<T>(value); }
};
template <class Bits, Bits (*kStore)(float) noexcept>
struct NarrowElement {
  using Stored = Bits;
  using Wide = double;
  static Bits store(double value) { return kStore(static_cast<float>(value)); }
};

/// Of x86-64 the last six bytes say nothing: they are zero, as in the library's results.
constexpr std::size_t kLongDoubleUsed = __LDBL_MANT_DIG__ == 64 ? 10 : sizeof(long double);
struct LongDoubleElement {
  using Stored = std::array<std::byte, sizeof(long double)>;
  using Wide = long double;
  static Stored store(long double value) {
    Stored stored{};
    std::memcpy(stored.data(), &value, kLongDoubleUsed);
    return stored;
  }
};

// The library divides in its accumulator: double for double, float for what is narrower.
template <class E>
typename E::Wide divided(typename E::Wide value, int ranks) {
  if constexpr (sizeof(typename E::Stored) >= 8) return value / ranks;
  return static_cast<double>(static_cast<float>(value) / static_cast<float>(ranks));
}

template <class E>
void fill_floats(const DataKey& key, int rank, std::byte* to, std::uint64_t begin,
                 std::size_t count) {
  using Stored = typename E::Stored;
  std::array<std::int32_t, kBlock> value;
  std::array<std::int32_t, kBlock> other;
  numbers(key, std::max(rank, 0), begin, count, value.data());
  for (int r = 1; rank < 0 && r < key.ranks; ++r) {
    numbers(key, r, begin, count, other.data());
    combine_block<std::int32_t>(key.op, value.data(), other.data(), count);
  }
  const bool divide = rank < 0 && key.op == ReduceOp::avg;
  for (std::size_t k = 0; k < count; ++k) {
    const typename E::Wide number = value[k];
    const Stored stored = E::store(divide ? divided<E>(number, key.ranks) : number);
    std::memcpy(to + k * sizeof stored, &stored, sizeof stored);
  }
}

/// A sum has twice as many floats; a product is of powers of i.
template <class T>
void fill_complex(const DataKey& key, int rank, std::byte* to, std::uint64_t begin,
                  std::size_t count) {
  if (key.op != ReduceOp::prod) {
    for (std::size_t done = 0; done < 2 * count; done += kBlock) {
      fill_floats<FloatElement<T>>(key, rank, to + done * sizeof(T), 2 * begin + done,
                                   std::min(kBlock, 2 * count - done));
    }
    return;
  }
  Block turns;
  Block more;
  hash_block(key, std::max(rank, 0), begin, count, turns);
  for (int r = 1; rank < 0 && r < key.ranks; ++r) {
    hash_block(key, r, begin, count, more);
    for (std::size_t k = 0; k < count; ++k) turns[k] += more[k];
  }
  constexpr std::array<int, 4> kReal{1, 0, -1, 0};
  for (std::size_t k = 0; k < count; ++k) {
    const std::array<T, 2> number{static_cast<T>(kReal[turns[k] % 4]),
                                  static_cast<T>(kReal[(turns[k] + 3) % 4])};
    std::memcpy(to + k * sizeof number, &number, sizeof number);
  }
}

/// Few values, so that many are equal, and each rank's number as index.
template <class T>
void fill_pairs(const DataKey& key, int rank, std::byte* to, std::uint64_t begin,
                std::size_t count) {
  struct Pair {
    T value;
    int index;
  };
  constexpr std::uint32_t kValues = 8;
  Block best;
  Block more;
  std::array<int, kBlock> index;
  index.fill(std::max(rank, 0));
  hash_block(key, std::max(rank, 0), begin, count, best);
  for (std::size_t k = 0; k < count; ++k) best[k] %= kValues;
  for (int r = 1; rank < 0 && r < key.ranks; ++r) {
    hash_block(key, r, begin, count, more);
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t value = more[k] % kValues;
      if (key.op == ReduceOp::minloc ? value >= best[k] : value <= best[k]) continue;
      best[k] = value;
      index[k] = r;
    }
  }
  constexpr std::size_t kUsed = sizeof(T) == sizeof(long double) ? kLongDoubleUsed : sizeof(T);
  std::memset(to, 0, count * sizeof(Pair));
  for (std::size_t k = 0; k < count; ++k) {
    const auto value = static_cast<T>(best[k]);
    std::memcpy(to + k * sizeof(Pair), &value, kUsed);
    std::memcpy(to + k * sizeof(Pair) + offsetof(Pair, index), &index[k], sizeof(int));
  }
}

template <class T>
void integers(const DataKey& key, int rank, std::uint64_t begin, std::size_t count, T* out) {
  Block bits;
  hash_block(key, rank, begin, count, bits);
  if (key.type == DataType::boolean || key.op == ReduceOp::land || key.op == ReduceOp::lor ||
      key.op == ReduceOp::lxor) {
    for (std::size_t k = 0; k < count; ++k) out[k] = static_cast<T>(bits[k] & 1);
    return;
  }
  for (std::size_t k = 0; k < count; ++k) {
    out[k] = static_cast<T>(sizeof(T) < 8 ? bits[k] : bits[k] * 0x9E3779B97F4A7C15u);
  }
}

template <class T>
void fill_integers(const DataKey& key, int rank, std::byte* to, std::uint64_t begin,
                   std::size_t count) {
  std::array<T, kBlock> value;
  std::array<T, kBlock> other;
  integers(key, std::max(rank, 0), begin, count, value.data());
  for (int r = 1; rank < 0 && r < key.ranks; ++r) {
    integers(key, r, begin, count, other.data());
    combine_block<std::uint64_t>(key.op, value.data(), other.data(), count);
  }
  if (rank < 0 && key.op == ReduceOp::avg) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    for (std::size_t k = 0; k < count; ++k) {
      value[k] = static_cast<T>(static_cast<Wide>(value[k]) / static_cast<Wide>(key.ranks));
    }
  }
  std::memcpy(to, value.data(), count * sizeof(T));
}

using Filler = void (*)(const DataKey&, int rank, std::byte* to, std::uint64_t begin,
                        std::size_t count);

Filler filler_of(DataType type) {
  using namespace gdrx::reduce;
  switch (type) {
    case DataType::int8:
      return fill_integers<std::int8_t>;
    case DataType::uint8:
      return fill_integers<std::uint8_t>;
    case DataType::int32:
      return fill_integers<std::int32_t>;
    case DataType::uint32:
      return fill_integers<std::uint32_t>;
    case DataType::int64:
      return fill_integers<std::int64_t>;
    case DataType::uint64:
      return fill_integers<std::uint64_t>;
    case DataType::float16:
      return fill_floats<NarrowElement<std::uint16_t, float_to_half>>;
    case DataType::bfloat16:
      return fill_floats<NarrowElement<std::uint16_t, float_to_bfloat16>>;
    case DataType::float32:
      return fill_floats<FloatElement<float>>;
    case DataType::float64:
      return fill_floats<FloatElement<double>>;
    case DataType::float8_e4m3:
      return fill_floats<NarrowElement<std::uint8_t, float_to_e4m3>>;
    case DataType::float8_e5m2:
      return fill_floats<NarrowElement<std::uint8_t, float_to_e5m2>>;
    case DataType::int16:
      return fill_integers<std::int16_t>;
    case DataType::uint16:
      return fill_integers<std::uint16_t>;
    case DataType::boolean:
    case DataType::byte:
      return fill_integers<std::uint8_t>;
    case DataType::complex64:
      return fill_complex<float>;
    case DataType::complex128:
      return fill_complex<double>;
    case DataType::long_double:
      return fill_floats<LongDoubleElement>;
    case DataType::float8_e4m3fnuz:
      return fill_floats<NarrowElement<std::uint8_t, float_to_e4m3fnuz>>;
    case DataType::float8_e5m2fnuz:
      return fill_floats<NarrowElement<std::uint8_t, float_to_e5m2fnuz>>;
    case DataType::float_int:
      return fill_pairs<float>;
    case DataType::double_int:
      return fill_pairs<double>;
    case DataType::long_int:
      return fill_pairs<long>;
    case DataType::int_int:
      return fill_pairs<int>;
    case DataType::short_int:
      return fill_pairs<short>;
    case DataType::long_double_int:
      return fill_pairs<long double>;
  }
  return nullptr;
}

// rank -1: the expected result.
void fill(const DataKey& key, int rank, std::byte* to, std::uint64_t begin, std::uint64_t count) {
  const Filler filler = filler_of(key.type);
  for (std::uint64_t done = 0; done < count; done += kBlock) {
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, count - done));
    filler(key, rank, to + done * size_of(key.type), begin + done, now);
  }
}

}  // namespace

void fill_input(const DataKey& key, int rank, std::byte* to, std::uint64_t count) {
  fill(key, rank, to, 0, count);
}

void fill_input(const DataKey& key, int rank, std::byte* to, std::uint64_t begin,
                std::uint64_t count) {
  fill(key, rank, to, begin, count);
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

std::uint64_t count_wrong(const std::byte* got, const std::byte* expected, DataType type,
                          std::uint64_t count) {
  const std::uint64_t parts = class_of(type) == TypeClass::complex ? 2 : 1;
  return count_wrong(got, expected, size_of(type) / parts, count * parts);
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
