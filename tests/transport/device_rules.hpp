// SPDX-License-Identifier: Apache-2.0
// What every fabric's device keeps to.
#pragma once

#include <string>

#include "tests/transport/device_pair.hpp"

namespace gdrx::test {

/// A write is there when its immediate is, with its header before it, and nothing around it.
inline void expect_writes_where_they_belong(DevicePair& pair, std::size_t length) {
  const RemoteRegionId remote = pair.import();
  const std::size_t offset = 4096 + 3;
  const std::array<std::byte, 16> header{std::byte{0x11}, std::byte{0x22}};
  for (int round = 0; round < 4; ++round) {
    const Blob payload = pattern(length, round);
    WriteOp op = write_of(payload, remote, offset);
    op.header = header;
    ASSERT_EQ(pair.endpoint->post(op).value(), Progress::done);
    const auto got = pair.receive();
    ASSERT_TRUE(got && *got) << (got ? (*got).error().what : "nothing came");
    EXPECT_EQ((*got)->immediate, 7u);
    EXPECT_EQ((*got)->peer, Rank{0});
    const std::span<std::byte> memory = pair.region->bytes();
    EXPECT_EQ(std::memcmp(memory.data() + offset, header.data(), header.size()), 0);
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(),
                           memory.begin() + static_cast<std::ptrdiff_t>(offset + header.size())));
    EXPECT_EQ(memory[offset - 1], DevicePair::kCanary);
    EXPECT_EQ(memory[offset + header.size() + length], DevicePair::kCanary);
  }
}

/// What is registered and ended for weeks takes no more room than what there is at once. `Key` as
/// in Lie.
template <class Key>
void expect_places_to_be_used_again(Device& device) {
  for (int i = 0; i < 100; ++i) {
    const auto region = device.allocate_memory(4096);
    ASSERT_TRUE(region) << region.error().what;
    Key head;
    std::memcpy(&head, (*region)->export_key().data(), sizeof head);
    ASSERT_LT(head.region, 8U);
  }
}

/// A peer that lies about where it may write. `Key`: how the fabric's exported keys begin.
template <class Key>
struct Lie {
  const char* name;
  void (*tell)(Key&);
  Bytes offset;
  const char* refusal;
};

template <class Key>
auto lies() {
  return testing::Values(
      Lie<Key>{"Nonce", [](Key& key) { key.nonce ^= 1; }, 0, "not there"},
      Lie<Key>{"Region", [](Key& key) { key.region = 12345; }, 0, "not there"},
      Lie<Key>{"Length", [](Key& key) { key.length = ~0ull; }, DevicePair::kBytes - 63,
               "of a region"},
      Lie<Key>{"Offset", [](Key& key) { key.length = ~0ull; }, ~0ull - 64, "of a region"});
}

/// Refused by the side whose memory it is.
template <class Key>
void expect_refusal(DevicePair& pair, const Lie<Key>& lie) {
  Blob key = pair.region->export_key();
  Key head;
  std::memcpy(&head, key.data(), sizeof head);
  lie.tell(head);
  std::memcpy(key.data(), &head, sizeof head);
  const Blob payload(64, std::byte{0x77});
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, pair.import(key), lie.offset)));
  const auto got = pair.receive();
  ASSERT_TRUE(got) << "neither a message nor an error";
  ASSERT_FALSE(*got) << "the write was taken";
  EXPECT_EQ((*got).error().code, Errc::protocol);
  EXPECT_NE((*got).error().what.find(lie.refusal), std::string::npos) << (*got).error().what;
  EXPECT_TRUE(pair.untouched());
}

}  // namespace gdrx::test
