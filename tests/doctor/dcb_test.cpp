// SPDX-License-Identifier: Apache-2.0
// The kernel's answers about data centre bridging, as bytes.
#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "doctor/probes/probes.hpp"

namespace gdrx::doctor {
namespace {

template <class T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string attribute(int type, const std::string& contents) {
  const nlattr head{static_cast<__u16>(NLA_HDRLEN + contents.size()), static_cast<__u16>(type)};
  std::string text = raw(head) + contents;
  text.resize(NLA_ALIGN(text.size()));
  return text;
}

std::string answer(int type, const std::string& body) {
  nlmsghdr head{};
  head.nlmsg_len = static_cast<__u32>(NLMSG_HDRLEN + body.size());
  head.nlmsg_type = static_cast<__u16>(type);
  return raw(head) + body;
}

std::string answer_of(std::uint8_t enabled, std::uint8_t selector) {
  ieee_pfc pfc{};
  pfc.pfc_cap = 8;
  pfc.pfc_en = enabled;
  pfc.requests[3] = 5;
  pfc.requests[4] = 6;
  pfc.indications[3] = 7;
  const dcb_app application{selector, 3, 26};
  const std::string table = attribute(DCB_ATTR_IEEE_APP, raw(application));
  dcbmsg message{};
  message.cmd = DCB_CMD_IEEE_GET;
  return answer(RTM_GETDCB,
                raw(message) + attribute(DCB_ATTR_IFNAME, std::string("eth1\0", 5)) +
                    attribute(DCB_ATTR_IEEE | NLA_F_NESTED,
                              attribute(DCB_ATTR_IEEE_ETS, std::string(77, 'x')) +
                                  attribute(DCB_ATTR_IEEE_PFC, raw(pfc)) +
                                  attribute(DCB_ATTR_IEEE_APP_TABLE | NLA_F_NESTED, table)));
}

Result<Dcb> parse(const std::string& bytes) { return parse_dcb(std::as_bytes(std::span(bytes))); }

TEST(Dcb, IsReadFromTheKernelsAnswer) {
  const auto dcb = parse(answer_of(0x18, IEEE_8021QAZ_APP_SEL_DSCP));
  ASSERT_TRUE(dcb) << dcb.error().what;
  EXPECT_EQ(dcb->pfc, 0x18u);
  EXPECT_EQ(dcb->pauses_sent, 11u);
  EXPECT_EQ(dcb->pauses_received, 7u);
  EXPECT_TRUE(dcb->dscp);
  EXPECT_FALSE(parse(answer_of(0x18, IEEE_8021QAZ_APP_SEL_ETHERTYPE))->dscp);
}

TEST(Dcb, ADriverWithoutItIsAnErrorWithItsErrno) {
  nlmsgerr error{};
  error.error = -EOPNOTSUPP;
  const auto dcb = parse(answer(NLMSG_ERROR, raw(error)));
  ASSERT_FALSE(dcb);
  EXPECT_EQ(dcb.error().native, EOPNOTSUPP);
}

TEST(Dcb, AnythingElseIsRefused) {
  const std::string good = answer_of(8, IEEE_8021QAZ_APP_SEL_DSCP);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse(good.substr(0, size))) << size;
  }
  EXPECT_FALSE(parse(answer(RTM_GETLINK, good.substr(NLMSG_HDRLEN))));
  // Every length of an attribute: read in bounds, or left out.
  for (std::size_t at = NLMSG_HDRLEN + 4; at + 1 < good.size(); ++at) {
    for (const int value : {0, 3, 255}) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      const auto dcb = parse(bad);
      EXPECT_TRUE(dcb || !dcb.error().what.empty());
    }
  }
}

TEST(Dcb, ThisKernelAnswersOfTheLoopbackInterface) {
  const auto dcb = probe_dcb("lo");
  ASSERT_FALSE(dcb) << "lo has no pause frames";
  EXPECT_NE(dcb.error().native, 0) << dcb.error().what;
  EXPECT_FALSE(probe_dcb("an-interface-with-a-long-name"));
}

}  // namespace
}  // namespace gdrx::doctor
