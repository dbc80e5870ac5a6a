// SPDX-License-Identifier: Apache-2.0
#include "gdrx/result.hpp"

#include <cstring>

namespace gdrx {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return "invalid argument";
    case Errc::system:
      return "system error";
    case Errc::unsupported:
      return "unsupported";
    case Errc::timeout:
      return "timeout";
    case Errc::aborted:
      return "aborted";
    case Errc::peer_lost:
      return "peer lost";
    case Errc::mismatch:
      return "mismatched arguments";
    case Errc::protocol:
      return "protocol error";
    case Errc::internal:
      return "internal error";
  }
  return "unknown error";
}

std::string describe(const Error& error) {
  std::string text(error.what);
  if (error.code == Errc::system && error.native > 0) {
    text += " (";
    text += std::strerror(error.native);
    text += ")";
  }
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace gdrx
