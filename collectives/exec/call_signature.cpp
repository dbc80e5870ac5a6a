// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/call_signature.hpp"

#include <fmt/format.h>

#include "gdrx/traits.hpp"

namespace gdrx::exec {

std::string describe(const CallSignature& signature) {
  std::string text = fmt::format("{} #{}", to_string(signature.collective), signature.sequence);
  if (signature.collective == Collective::barrier) return text;
  const plan::CollectiveTraits& traits = plan::traits_of(signature.collective);
  const bool of_parts = traits.has_parts();
  if (of_parts && traits.by_messages()) {
    text += fmt::format(" of {}", to_string(signature.type));  // each rank knows its own counts
  } else {
    text += fmt::format(" of {} {}", signature.count, to_string(signature.type));
  }
  if (traits.reduces) text += fmt::format(", {}", to_string(signature.op));
  if (signature.user_op != 0) text += fmt::format(" operator {}", signature.user_op);
  if (traits.rooted) text += fmt::format(", root {}", signature.root);
  if (traits.has_leaves())
    text += fmt::format(", leaves {:08x}", static_cast<std::uint32_t>(signature.root));
  if (of_parts && !traits.by_messages()) text += fmt::format(", counts {:08x}", signature.root);
  if (signature.collective != Collective::send_recv) {
    text += fmt::format(", {}", plan::to_string(signature.algorithm));
  }
  return text;
}

Result<void> check_signature(const CallSignature& theirs, Rank peer, const CallSignature& mine,
                             Rank self) {
  if (theirs == mine) return {};
  if (theirs.magic != kSignatureMagic || theirs.version != kSignatureVersion) {
    return fail(Errc::protocol,
                fmt::format("rank {} sent a message that is not of this version of gdrx "
                            "(magic {:#x}, version {})",
                            index(peer), theirs.magic, theirs.version));
  }
  return fail(Errc::mismatch,
              fmt::format("rank {} called {} while rank {} called {}: all ranks must make the same "
                          "calls with the same arguments",
                          index(peer), describe(theirs), index(self), describe(mine)));
}

Result<void> check_count(std::uint64_t theirs, Rank peer, std::uint64_t expected, Rank self,
                         const CallSignature& signature) {
  if (theirs == expected) return {};
  return fail(Errc::mismatch,
              fmt::format("rank {} sends {} elements to rank {} in {}, which expects {}",
                          index(peer), theirs, index(self), describe(signature), expected));
}

Result<void> check_message(const MessageHeader& theirs, Rank peer, const MessageHeader& expected,
                           Rank self) {
  if (auto same = check_signature(theirs.signature, peer, expected.signature, self); !same)
    return same;
  GDRX_TRY(check_count(theirs.count, peer, expected.count, self, expected.signature));
  if (theirs.instance == expected.instance && theirs.index == expected.index &&
      theirs.bytes == expected.bytes && theirs.source == expected.source) {
    return {};
  }
  return fail(
      Errc::protocol,
      fmt::format("rank {} sent slice {} message {} of {} bytes where slice {} message {} of "
                  "{} bytes was expected in {}",
                  index(peer), theirs.instance, theirs.index, theirs.bytes, expected.instance,
                  expected.index, expected.bytes, describe(expected.signature)));
}

}  // namespace gdrx::exec
