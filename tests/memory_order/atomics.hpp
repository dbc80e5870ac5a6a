// SPDX-License-Identifier: Apache-2.0
// Behind this line a source's atomics are the model's. What it needs of others is included before:
// their atomics are the real ones.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "tests/memory_order/model.hpp"

namespace gdrx::model {

// What is stored is a number of 64 bits at most. Zeros are a good one, as in mapped memory.
template <class T>
class Operations {
 public:
  using Order = std::memory_order;
  using From = std::source_location;
  explicit Operations(T* at) noexcept : at_(at) {}
  T load(Order order, From from) const { return back(model::load(at_, bits(*at_), order, from)); }
  void store(T value, Order order, From from) const {
    model::store(at_, bits(*at_), bits(value), order, from);
  }
  bool compare(T& expected, T next, Order order, Order failure, From from) const {
    const T read =
        back(model::compare(at_, bits(*at_), bits(expected), bits(next), order, failure, from));
    if (bits(read) == bits(expected)) return true;
    expected = read;
    return false;
  }
  template <class Next>
  T change(const Next& next, Order order, From from) const {
    return back(model::exchange(
        at_, bits(*at_), [&](std::uint64_t value) { return bits(next(back(value))); }, order,
        from));
  }

 private:
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  static std::uint64_t bits(const T& value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  static T back(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  T* at_;
};

}  // namespace gdrx::model

namespace std {

template <class T>
class model_atomic_ref {
 public:
  using Order = memory_order;
  using From = source_location;
  static constexpr bool is_always_lock_free = true;
  explicit model_atomic_ref(T& at) noexcept : at_(&at) {}
  T load(Order order = memory_order_seq_cst, From from = From::current()) const noexcept {
    return at_.load(order, from);
  }
  void store(T value, Order order = memory_order_seq_cst,
             From from = From::current()) const noexcept {
    at_.store(value, order, from);
  }
  T exchange(T value, Order order = memory_order_seq_cst,
             From from = From::current()) const noexcept {
    return at_.change([&](T) { return value; }, order, from);
  }
  T fetch_or(T value, Order order = memory_order_seq_cst,
             From from = From::current()) const noexcept {
    return at_.change([&](T before) { return static_cast<T>(before | value); }, order, from);
  }
  T fetch_add(T value, Order order = memory_order_seq_cst,
              From from = From::current()) const noexcept {
    return at_.change([&](T before) { return static_cast<T>(before + value); }, order, from);
  }
  bool compare_exchange_strong(T& expected, T next, Order order, Order failure,
                               From from = From::current()) const noexcept {
    return at_.compare(expected, next, order, failure, from);
  }

 private:
  gdrx::model::Operations<T> at_;
};

template <class T>
class model_atomic {
 public:
  using Order = memory_order;
  using From = source_location;
  static constexpr bool is_always_lock_free = true;
  model_atomic() noexcept = default;
  model_atomic(T value) noexcept : value_(value) {}
  T load(Order order = memory_order_seq_cst, From from = From::current()) const noexcept {
    return model_atomic_ref<T>(value_).load(order, from);
  }
  void store(T value, Order order = memory_order_seq_cst, From from = From::current()) noexcept {
    model_atomic_ref<T>(value_).store(value, order, from);
  }
  T fetch_add(T value, Order order = memory_order_seq_cst, From from = From::current()) noexcept {
    return model_atomic_ref<T>(value_).fetch_add(value, order, from);
  }
  bool compare_exchange_strong(T& expected, T next, Order order, Order failure,
                               From from = From::current()) noexcept {
    return model_atomic_ref<T>(value_).compare_exchange_strong(expected, next, order, failure,
                                                               from);
  }

 private:
  mutable T value_{};
};

inline void model_atomic_thread_fence(memory_order order,
                                      source_location from = source_location::current()) noexcept {
  gdrx::model::fence(order, from);
}

}  // namespace std

#define atomic model_atomic
#define atomic_ref model_atomic_ref
#define atomic_thread_fence model_atomic_thread_fence
