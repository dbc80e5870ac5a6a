// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/frame.hpp"

#include <gtest/gtest.h>

namespace gdrx {
namespace {

TEST(Frame, ComesTogetherFromSingleBytes) {
  const Blob payload(100, std::byte{7});
  const Blob wire = encode_frame(FrameKind::data, payload);
  FrameReader reader;
  for (std::size_t i = 0; i + 1 < wire.size(); ++i) {
    reader.feed(std::span(wire).subspan(i, 1));
    ASSERT_FALSE(reader.next()->has_value()) << i;
  }
  reader.feed(std::span(wire).last(1));
  const auto frame = reader.next();
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ((*frame)->payload, payload);
}

TEST(Frame, RefusesAStrangersBytesAndLengthsBeyondTheLimit) {
  FrameReader http;
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  http.feed(std::as_bytes(std::span(request)));
  EXPECT_EQ(http.next().error().code, Errc::protocol);
  FrameReader small(10);
  small.feed(encode_frame(FrameKind::data, Blob(11)));
  EXPECT_EQ(small.next().error().code, Errc::protocol);
}

TEST(Frame, NamesAnotherVersion) {
  Blob wire = encode_frame(FrameKind::goodbye, {});
  wire[4] = std::byte{9};
  FrameReader reader;
  reader.feed(wire);
  EXPECT_NE(reader.next().error().what.find("version 9"), std::string::npos);
}

TEST(Blobs, SplitOnlyIfTheyAddUp) {
  Blob packed;
  append_blob(packed, Blob(3, std::byte{1}));
  append_blob(packed, {});
  const auto blobs = split_blobs(packed, 2);
  ASSERT_TRUE(blobs);
  EXPECT_EQ((*blobs)[0].size(), 3u);
  EXPECT_FALSE(split_blobs(packed, 3));
  EXPECT_FALSE(split_blobs(packed, 1));
  packed[0] = std::byte{200};
  EXPECT_FALSE(split_blobs(packed, 2));
}

}  // namespace
}  // namespace gdrx
