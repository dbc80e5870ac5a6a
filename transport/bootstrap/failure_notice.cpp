// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/failure_notice.hpp"
#include "base/printable.hpp"

#include <algorithm>
#include <cstring>

namespace gdrx {
namespace {

struct NoticeHead {
  std::int32_t code = 0;
  std::int32_t origin = 0;
  std::int32_t subject = 0;
};
static_assert(sizeof(NoticeHead) == 12 && std::is_trivially_copyable_v<NoticeHead>);

}  // namespace

EncodedNotice::EncodedNotice(const FailureNotice& notice) noexcept {
  const NoticeHead head{static_cast<std::int32_t>(notice.code), index(notice.origin),
                        index(notice.subject)};
  const std::size_t text = std::min(notice.text.size(), kMostNotice - sizeof head);
  size_ = sizeof head + text;
  std::memcpy(bytes_.data(), &head, sizeof head);
  std::memcpy(bytes_.data() + sizeof head, notice.text.data(), text);
}

Result<FailureNotice> decode_notice(std::span<const std::byte> bytes, std::int32_t size) {
  NoticeHead head;
  if (bytes.size() < sizeof head || bytes.size() > kMostNotice) {
    return fail(Errc::protocol, "a notice of a wrong length");
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.code < 0 || head.code > static_cast<std::int32_t>(Errc::internal)) {
    return fail(Errc::protocol, "a notice of an unknown kind");
  }
  const auto is_rank = [size](std::int32_t rank) { return rank >= 0 && rank < size; };
  if (!is_rank(head.origin) || !is_rank(head.subject)) {
    return fail(Errc::protocol, "a notice about a rank that is none");
  }
  return FailureNotice{static_cast<Errc>(head.code), Rank{head.origin}, Rank{head.subject},
                       printable(bytes.subspan(sizeof head))};
}

}  // namespace gdrx
