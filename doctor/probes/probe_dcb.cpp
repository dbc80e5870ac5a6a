// SPDX-License-Identifier: Apache-2.0
// Priority flow control as the kernel tells it: one question over netlink, and reading the answer.
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "doctor/probes/probes.hpp"

namespace gdrx::doctor {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kSequence = 1;

template <class T>
std::optional<T> head(Bytes bytes) {
  T value{};
  if (bytes.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Calls `take(type, contents)` for each attribute; ends at the first that does not fit.
template <class Take>
void each_attribute(Bytes bytes, const Take& take) {
  while (const auto attribute = head<nlattr>(bytes)) {
    const std::size_t length = attribute->nla_len;
    if (length < NLA_HDRLEN || length > bytes.size()) return;
    take(attribute->nla_type & NLA_TYPE_MASK, bytes.subspan(NLA_HDRLEN, length - NLA_HDRLEN));
    bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), NLA_ALIGN(length)));
  }
}

void take_pfc(Dcb& into, Bytes contents) {
  const auto pfc = head<ieee_pfc>(contents);
  if (!pfc) return;
  into.pfc = pfc->pfc_en;
  for (const __u64 count : pfc->requests) into.pauses_sent += count;
  for (const __u64 count : pfc->indications) into.pauses_received += count;
}

void take_applications(Dcb& into, Bytes contents) {
  each_attribute(contents, [&](int type, Bytes one) {
    const auto entry = head<dcb_app>(one);
    if (type != DCB_ATTR_IEEE_APP || !entry) return;
    into.dscp |= entry->selector == IEEE_8021QAZ_APP_SEL_DSCP;
  });
}

struct Question {
  nlmsghdr header{};
  dcbmsg message{};
  nlattr attribute{};
  std::array<char, IFNAMSIZ> name{};
};

struct Closer {
  int fd;
  ~Closer() { close(fd); }
};

}  // namespace

Result<Dcb> parse_dcb(Bytes answer) {
  const auto header = head<nlmsghdr>(answer);
  if (!header || header->nlmsg_len < NLMSG_HDRLEN || header->nlmsg_len > answer.size()) {
    return fail(Errc::protocol, "dcbnl: the kernel's answer is cut off");
  }
  const Bytes body = answer.subspan(NLMSG_HDRLEN, header->nlmsg_len - NLMSG_HDRLEN);
  if (header->nlmsg_type == NLMSG_ERROR) {
    const auto error = head<nlmsgerr>(body);
    return fail(Errc::unsupported, "dcbnl IEEE_GET", error ? -error->error : EPROTO);
  }
  const auto message = head<dcbmsg>(body);
  if (header->nlmsg_type != RTM_GETDCB || !message || message->cmd != DCB_CMD_IEEE_GET) {
    return fail(Errc::protocol, "dcbnl: the kernel answers something else");
  }
  std::optional<Dcb> found;
  each_attribute(body.subspan(NLMSG_ALIGN(sizeof(dcbmsg))), [&](int type, Bytes contents) {
    if (type != DCB_ATTR_IEEE) return;
    each_attribute(contents, [&](int kind, Bytes one) {
      if (kind != DCB_ATTR_IEEE_PFC && kind != DCB_ATTR_IEEE_APP_TABLE) return;
      if (!found) found.emplace();
      kind == DCB_ATTR_IEEE_PFC ? take_pfc(*found, one) : take_applications(*found, one);
    });
  });
  if (found) return *found;
  return fail(Errc::unsupported, "dcbnl IEEE_GET: the driver tells no PFC", EOPNOTSUPP);
}

Result<Dcb> probe_dcb(const std::string& interface) {
  Question question;
  if (interface.size() >= question.name.size()) {
    return fail(Errc::invalid_argument, "an interface's name is too long");
  }
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = RTM_GETDCB;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.header.nlmsg_seq = kSequence;
  question.message.dcb_family = AF_UNSPEC;
  question.message.cmd = DCB_CMD_IEEE_GET;
  question.attribute.nla_type = DCB_ATTR_IFNAME;
  question.attribute.nla_len = static_cast<__u16>(NLA_HDRLEN + interface.size() + 1);
  std::memcpy(question.name.data(), interface.data(), interface.size());
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return fail(Errc::system, "netlink socket", errno);
  const Closer closer{fd};
  const timeval patience{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (send(fd, &question, sizeof question, 0) < 0) {
    return fail(Errc::system, "dcbnl: send", errno);
  }
  std::array<std::byte, 16384> answer{};
  const ssize_t size = recv(fd, answer.data(), answer.size(), 0);
  if (size < 0) return fail(Errc::system, "dcbnl: receive", errno);
  return parse_dcb(Bytes(answer).first(static_cast<std::size_t>(size)));
}

}  // namespace gdrx::doctor
