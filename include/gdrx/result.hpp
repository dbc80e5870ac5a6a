// SPDX-License-Identifier: Apache-2.0
// Errors are values: Result<T> is what a function that can fail returns.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "gdrx/text.hpp"

namespace gdrx {

enum class Errc : std::uint8_t {
  invalid_argument,  // the caller's mistake: a bad value, a bad environment variable
  system,       // a call of the operating system or of a library failed; Error::native says how
  unsupported,  // not built in, or not possible on this machine
  timeout,      // a deadline passed
  aborted,      // the communicator was aborted here or by a peer
  peer_lost,    // another rank died or became unreachable
  mismatch,     // ranks called with different arguments
  protocol,     // a peer sent something that is not of the protocol
  internal,     // a defect of gdrx
};

std::string_view to_string(Errc code) noexcept;

#ifdef __cpp_lib_source_location
using SourceLocation = std::source_location;
#else  // clang 14 over libstdc++ lacks it
struct SourceLocation {
  static constexpr SourceLocation current() noexcept { return {}; }
};
#endif

/// Its copy throws nothing: a failure keeps its reason where there is no memory, too.
struct Error {
  Errc code = Errc::internal;
  Text what;       // one line: what failed, where, what to do
  int native = 0;  // errno or a library's own code, 0 if there is none
  SourceLocation where = SourceLocation::current();
};

/// "what (native text)" for a person. Never contains a newline.
std::string describe(const Error& error);

template <class T>
using Result = tl::expected<T, Error>;

/// The one way to make a failed Result: `return fail(Errc::system, "open /dev/x", errno);`
inline tl::unexpected<Error> fail(Errc code, Text what, int native = 0,
                                  SourceLocation where = SourceLocation::current()) {
  return tl::unexpected<Error>(Error{code, std::move(what), native, where});
}

/// What std::bad_alloc becomes. Making it needs no memory.
inline Error no_memory(SourceLocation where = SourceLocation::current()) noexcept {
  return Error{Errc::system, "out of memory", 0, where};
}

namespace detail {
template <class T>
T take(Result<T>&& result) {
  return *std::move(result);
}
inline void take(Result<void>&&) {}
}  // namespace detail

/// "Not yet" is not an error.
enum class Progress : std::uint8_t { pending, done };

}  // namespace gdrx

/// Yields the value of a Result, or returns its error from the enclosing function:
/// `auto qp = GDRX_TRY(QueuePair::create(device, limits));`  Works for Result<void> too.
#define GDRX_TRY(...)                                                             \
  ({                                                                              \
    auto gdrx_try_result = (__VA_ARGS__);                                         \
    if (!gdrx_try_result) {                                                       \
      return ::tl::unexpected<::gdrx::Error>(std::move(gdrx_try_result).error()); \
    }                                                                             \
    ::gdrx::detail::take(std::move(gdrx_try_result));                             \
  })
