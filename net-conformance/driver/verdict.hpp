// SPDX-License-Identifier: Apache-2.0
// How a check says what it found: Result<void>, with the kind of the failure as its code.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "gdrx/result.hpp"
#include "net-conformance/driver/net.hpp"

namespace gdrx::conformance {

enum class Verdict : std::uint8_t { pass, fail, skip, blocked };

/// The rule does not hold; `seen` says what was seen instead.
inline tl::unexpected<Error> broken(std::string seen) {
  return fail(Errc::protocol, std::move(seen));
}
/// The rule does not apply to this plugin.
inline tl::unexpected<Error> skipped(std::string why) {
  return fail(Errc::unsupported, std::move(why));
}
/// The rule could not be tried, since something that it rests upon does not work.
inline tl::unexpected<Error> blocked(std::string why) {
  return fail(Errc::aborted, std::move(why));
}

inline Verdict verdict_of(const Error& error) noexcept {
  return error.code == Errc::unsupported ? Verdict::skip
         : error.code == Errc::aborted   ? Verdict::blocked
                                         : Verdict::fail;
}

/// Holds the rule's own condition.
inline Result<void> expect(bool holds, const char* seen) {
  if (!holds) {
    return broken(seen);
  }
  return {};
}

/// A call that has to succeed for the rule to hold.
inline Result<void> succeeds(NetResult result, const char* call) {
  if (result != NetResult::success) {
    return broken(std::string(call) + " returned " + to_string(result));
  }
  return {};
}

/// Preparation: what fails in it is some other rule's matter.
template <class T>
Result<T> prepared(Result<T> result) {
  if (!result && result.error().code == Errc::protocol) {
    result.error().code = Errc::aborted;
  }
  return result;
}

}  // namespace gdrx::conformance
