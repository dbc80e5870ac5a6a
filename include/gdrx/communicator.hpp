// SPDX-License-Identifier: Apache-2.0
// C++ over the C API: handles that close themselves, spans, errors as exceptions. Header-only.
#pragma once

#include <gdrx/gdrx.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gdrx::api {

/// A gdrx call that failed: result() and a line that says what, where and what to do.
class GdrxError : public std::runtime_error {
 public:
  GdrxError(gdrxResult_t result, const std::string& what)
      : std::runtime_error(what), result_(result) {}
  gdrxResult_t result() const noexcept { return result_; }

 private:
  gdrxResult_t result_;
};

inline void check(gdrxResult_t result, gdrxComm_t comm = nullptr) {
  if (result == gdrxSuccess) return;
  const std::string detail = gdrxGetLastError(comm);
  throw GdrxError(result, detail.empty() ? gdrxGetErrorString(result) : detail);
}

/// gdrxDataType_t of a C++ type; narrow floats and pairs have none and are named by the
/// caller.
template <class T>
struct TypeOf;
template <>
struct TypeOf<std::int8_t> {
  static constexpr gdrxDataType_t value = gdrxInt8;
};
template <>
struct TypeOf<std::uint8_t> {
  static constexpr gdrxDataType_t value = gdrxUint8;
};
template <>
struct TypeOf<std::int32_t> {
  static constexpr gdrxDataType_t value = gdrxInt32;
};
template <>
struct TypeOf<std::uint32_t> {
  static constexpr gdrxDataType_t value = gdrxUint32;
};
template <>
struct TypeOf<std::int64_t> {
  static constexpr gdrxDataType_t value = gdrxInt64;
};
template <>
struct TypeOf<std::uint64_t> {
  static constexpr gdrxDataType_t value = gdrxUint64;
};
template <>
struct TypeOf<float> {
  static constexpr gdrxDataType_t value = gdrxFloat32;
};
template <>
struct TypeOf<double> {
  static constexpr gdrxDataType_t value = gdrxFloat64;
};
template <>
struct TypeOf<std::int16_t> {
  static constexpr gdrxDataType_t value = gdrxInt16;
};
template <>
struct TypeOf<std::uint16_t> {
  static constexpr gdrxDataType_t value = gdrxUint16;
};
template <>
struct TypeOf<bool> {
  static constexpr gdrxDataType_t value = gdrxBool;
};
template <>
struct TypeOf<std::byte> {
  static constexpr gdrxDataType_t value = gdrxByte;
};
template <>
struct TypeOf<long double> {
  static constexpr gdrxDataType_t value = gdrxLongDouble;
};
template <>
struct TypeOf<std::complex<float>> {
  static constexpr gdrxDataType_t value = gdrxComplex64;
};
template <>
struct TypeOf<std::complex<double>> {
  static constexpr gdrxDataType_t value = gdrxComplex128;
};

/// An operation under way. Its destructor waits, so that the buffers are the caller's again.
class Request {
 public:
  Request(gdrxComm_t comm, gdrxRequest_t handle) noexcept : comm_(comm), handle_(handle) {}
  Request(Request&& other) noexcept
      : comm_(other.comm_), handle_(std::exchange(other.handle_, nullptr)) {}
  Request& operator=(Request&&) = delete;
  ~Request() { gdrxWait(&handle_); }

  void wait() { check(gdrxWait(&handle_), comm_); }
  /// True when done.
  bool test() {
    const gdrxResult_t result = gdrxTest(&handle_);
    if (result == gdrxInProgress) return false;
    check(result, comm_);
    return true;
  }

 private:
  gdrxComm_t comm_;
  gdrxRequest_t handle_;
};

/// Owns a gdrxComm_t. Thread rules are gdrx.h's. Throws GdrxError.
class Communicator {
 public:
  explicit Communicator(gdrxComm_t handle) noexcept : handle_(handle) {}
  Communicator(int ranks, const gdrxUniqueId& id, int rank, const gdrxConfig_t* config = nullptr) {
    check(gdrxCommInitRank(&handle_, ranks, id, rank, config));
  }
  /// All ranks of this process.
  static std::vector<Communicator> all(int ranks, const gdrxConfig_t* config = nullptr) {
    std::vector<gdrxComm_t> handles(static_cast<std::size_t>(ranks));
    check(gdrxCommInitAll(handles.data(), ranks, config));
    std::vector<Communicator> communicators;
    for (gdrxComm_t handle : handles) communicators.emplace_back(handle);
    return communicators;
  }
  Communicator(Communicator&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Communicator() { gdrxCommDestroy(handle_); }

  gdrxComm_t handle() const noexcept { return handle_; }
  int rank() const {
    int value = 0;
    check(gdrxCommUserRank(handle_, &value), handle_);
    return value;
  }
  int size() const {
    int value = 0;
    check(gdrxCommCount(handle_, &value), handle_);
    return value;
  }

  /// `out` may be `in`. Both have the same length on every rank.
  template <class T>
  void all_reduce(std::span<const T> in, std::span<T> out, gdrxRedOp_t op = gdrxSum) {
    require_same(in.size(), out.size());
    check(gdrxAllReduce(in.data(), out.data(), in.size(), TypeOf<T>::value, op, handle_, nullptr,
                        nullptr),
          handle_);
  }
  template <class T>
  void all_reduce(std::span<T> in_place, gdrxRedOp_t op = gdrxSum) {
    all_reduce<T>(std::span<const T>(in_place), in_place, op);
  }
  template <class T>
  [[nodiscard]] Request all_reduce_async(std::span<const T> in, std::span<T> out,
                                         gdrxRedOp_t op = gdrxSum) {
    require_same(in.size(), out.size());
    gdrxRequest_t request = nullptr;
    check(gdrxAllReduce(in.data(), out.data(), in.size(), TypeOf<T>::value, op, handle_, nullptr,
                        &request),
          handle_);
    return Request(handle_, request);
  }
  template <class T>
  void broadcast(std::span<T> data, int root) {
    check(gdrxBroadcast(data.data(), data.data(), data.size(), TypeOf<T>::value, root, handle_,
                        nullptr, nullptr),
          handle_);
  }
  void barrier() { check(gdrxBarrier(handle_, nullptr, nullptr), handle_); }
  void abort() { check(gdrxCommAbort(handle_)); }

 private:
  static void require_same(std::size_t in, std::size_t out) {
    if (in != out) throw GdrxError(gdrxInvalidArgument, "in and out differ in length");
  }
  gdrxComm_t handle_ = nullptr;
};

}  // namespace gdrx::api
