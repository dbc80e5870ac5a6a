// SPDX-License-Identifier: Apache-2.0
// What gdrx relies on in a NIC, clause by clause (InfiniBand Architecture Specification, volume 1).
#include <cstring>

#include "tests/fabric/verbs_pair.hpp"

namespace gdrx::conformance {
namespace {

using std::chrono::milliseconds;

class States : public VerbsPair {};
class Writes : public VerbsPair {};
class Sends : public VerbsPair {};
class Errors : public VerbsPair {};
class Datagrams : public VerbsPair {};

// 10.3.1: the state machine of a queue pair.
TEST_F(States, ASendIsRefusedBeforeReadyToSend) {
  EXPECT_NE(post({.bytes = 8}), 0);
  ASSERT_TRUE(a_.qp->to_init(subject().port, 0, 0).has_value());
  EXPECT_NE(post({.bytes = 8}), 0);
}

TEST_F(States, AReceiveIsRefusedInResetAndTakenInInit) {
  ibv_sge piece = a_.piece(0, 64);
  ibv_recv_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  if (subject().device.empty()) {
    EXPECT_NE(a_.qp->post(request), 0);
  }
  ASSERT_TRUE(a_.qp->to_init(subject().port, 0, 0).has_value());
  EXPECT_EQ(a_.qp->post(request), 0);
}

TEST_F(States, AStateIsNotSkipped) {
  ibv_qp_init_attr wish{};
  wish.send_cq = wish.recv_cq = a_.queue->raw();
  wish.qp_type = IBV_QPT_RC;
  wish.cap = {4, 4, 1, 1, 0};
  ibv_qp* qp = subject().verbs->create_qp(domain_->raw(), &wish);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  EXPECT_NE(subject().verbs->modify_qp(qp, &attributes, IBV_QP_STATE), 0);
  attributes.qp_state = IBV_QPS_INIT;  // without port, key index and access
  EXPECT_NE(subject().verbs->modify_qp(qp, &attributes, IBV_QP_STATE), 0);
  EXPECT_EQ(subject().verbs->destroy_qp(qp), 0);
}

// 9.4.3: RDMA WRITE.
TEST_F(Writes, ItsBytesLandAndNoOthers) {
  connect();
  ASSERT_EQ(post({.from = 100, .to = 1000, .bytes = 5000, .id = 9}), 0);
  const ibv_wc done = wait(a_);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(done.wr_id, 9U);
  EXPECT_EQ(std::memcmp(&b_.memory[1000], &a_.memory[100], 5000), 0);
  EXPECT_EQ(b_.memory[999], std::byte{0});
  EXPECT_EQ(b_.memory[6000], std::byte{0});
  EXPECT_TRUE(quiet(b_, milliseconds(5)));
}

TEST_F(Writes, WithImmediateTakesAReceiveAndShowsAllBytesBefore) {
  connect();
  for (std::uint64_t i = 0; i < 8; ++i) receive(b_, 100 + i);
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(post({.from = i * 512, .to = 2 * i * 512, .bytes = 512, .flags = 0}), 0);
    ASSERT_EQ(post({.to = 0, .id = i, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .immediate = i + 7}),
              0);
    const ibv_wc done = wait(b_);
    ASSERT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_EQ(done.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(done.wr_id, 100U + i);
    EXPECT_NE(done.wc_flags & IBV_WC_WITH_IMM, 0U);
    EXPECT_EQ(be32toh(done.imm_data), i + 7);
    EXPECT_EQ(std::memcmp(&b_.memory[2 * i * 512], &a_.memory[i * 512], 512), 0);
    EXPECT_EQ(wait(a_).wr_id, i);
  }
}

TEST_F(Writes, OfNoBytesTakesNoReceiveAndCompletes) {
  connect();
  ASSERT_EQ(post({.id = 3}), 0);
  EXPECT_EQ(wait(a_).status, IBV_WC_SUCCESS);
}

TEST_F(Writes, InlineBytesMayBeOverwrittenAtOnce) {
  connect();
  const std::vector<std::byte> before(a_.memory.begin(), a_.memory.begin() + 64);
  ASSERT_GE(a_.qp->inline_bytes(), 32U);
  const std::size_t bytes = std::min<std::size_t>(64, a_.qp->inline_bytes());
  ASSERT_EQ(post({.bytes = bytes, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}), 0);
  std::memset(a_.memory.data(), 0, 64);
  EXPECT_EQ(wait(a_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(b_.memory.data(), before.data(), bytes), 0);
}

// 10.8.5: unsignalled requests complete with the next signalled one.
TEST_F(Writes, OnlySignalledOnesCompleteAndInOrder) {
  connect();
  for (std::uint64_t i = 0; i < 12; ++i) {
    const int flags = i % 4 == 3 ? IBV_SEND_SIGNALED : 0;
    ASSERT_EQ(post({.bytes = 64, .id = i, .flags = flags}), 0);
  }
  EXPECT_EQ(wait(a_).wr_id, 3U);
  EXPECT_EQ(wait(a_).wr_id, 7U);
  EXPECT_EQ(wait(a_).wr_id, 11U);
  EXPECT_TRUE(quiet(a_, milliseconds(5)));
}

TEST_F(Writes, AReadFetchesTheOtherSidesBytes) {
  connect();
  fill(b_, 5);
  ASSERT_EQ(post({.from = 0, .to = 300, .bytes = 3000, .opcode = IBV_WR_RDMA_READ}), 0);
  const ibv_wc done = wait(a_);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(std::memcmp(a_.memory.data(), &b_.memory[300], 3000), 0);
}

// 9.4.1: SEND.
TEST_F(Sends, ArriveInTheOrderOfReceives) {
  connect();
  receive(b_, 1, 0, 1024);
  receive(b_, 2, 1024, 1024);
  ASSERT_EQ(post({.from = 10, .bytes = 100, .flags = 0, .opcode = IBV_WR_SEND}), 0);
  ASSERT_EQ(post({.from = 500, .bytes = 1024, .opcode = IBV_WR_SEND}), 0);
  ibv_wc done = wait(b_);
  EXPECT_EQ(done.opcode, IBV_WC_RECV);
  EXPECT_EQ(done.wr_id, 1U);
  EXPECT_EQ(done.byte_len, 100U);
  EXPECT_EQ(wait(b_).wr_id, 2U);
  EXPECT_EQ(std::memcmp(&b_.memory[0], &a_.memory[10], 100), 0);
  EXPECT_EQ(std::memcmp(&b_.memory[1024], &a_.memory[500], 1024), 0);
}

// 9.7.5.2.8: receiver not ready.
TEST_F(Sends, WaitForAReceiveWhenRetriesAreUnlimited) {
  connect();
  ASSERT_EQ(post({.bytes = 64, .opcode = IBV_WR_SEND}), 0);
  EXPECT_TRUE(quiet(a_, milliseconds(10)));
  receive(b_, 5);
  EXPECT_EQ(wait(b_).wr_id, 5U);
  EXPECT_EQ(wait(a_).status, IBV_WC_SUCCESS);
}

TEST_F(Sends, FailWithoutAReceiveWhenRetriesAreFew) {
  rnr_retries_ = 1;
  connect();
  ASSERT_EQ(post({.bytes = 64, .opcode = IBV_WR_SEND}), 0);
  EXPECT_EQ(wait(a_).status, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(Sends, LongerThanTheReceiveFailOnBothSides) {
  connect();
  receive(b_, 5, 0, 32);
  ASSERT_EQ(post({.bytes = 64, .opcode = IBV_WR_SEND}), 0);
  EXPECT_TRUE(failed_as(wait(b_), IBV_WC_LOC_LEN_ERR));
  EXPECT_TRUE(failed_as(wait(a_), IBV_WC_REM_INV_REQ_ERR));
}

// 10.6.3: keys and bounds.
TEST_F(Errors, AWrongKeyIsRefusedAndTheRestFlushed) {
  connect();
  ASSERT_EQ(post({.bytes = 64, .id = 1, .rkey_change = 0x00f0ff00}), 0);
  (void)post({.bytes = 64, .id = 2});
  EXPECT_EQ(wait(a_).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(wait(a_).status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(b_.memory[0], std::byte{0});
}

TEST_F(Errors, AWriteBeyondTheRegionIsRefusedWhole) {
  connect();
  ASSERT_EQ(post({.to = kMemory - 32, .bytes = 64}), 0);
  EXPECT_EQ(wait(a_).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(b_.memory[kMemory - 32], std::byte{0});
}

TEST_F(Errors, AWriteToARegionThatForbidsItIsRefused) {
  make(b_, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
  connect();
  ASSERT_EQ(post({.bytes = 64}), 0);
  EXPECT_EQ(wait(a_).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(Errors, AWrongLocalKeyFailsHere) {
  connect();
  ibv_sge piece = a_.piece(0, 64);
  piece.lkey ^= 0x00f0ff00;
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  if (a_.qp->post(request) == 0) {
    EXPECT_TRUE(failed_as(wait(a_), IBV_WC_LOC_PROT_ERR));
  }
}

// 10.3.1.7 and 11.4: what the quiescing of a rail rests on.
TEST_F(Errors, AQpInErrorFlushesItsReceivesAndTakesNoMoreBytes) {
  connect();
  for (std::uint64_t i = 0; i < 4; ++i) receive(b_, i);
  ASSERT_TRUE(b_.qp->to_error().has_value());
  for (std::uint64_t i = 0; i < 4; ++i) {
    const ibv_wc done = wait(b_);
    EXPECT_EQ(done.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(done.wr_id, i);
  }
  ASSERT_EQ(post({.bytes = 64}), 0);
  EXPECT_EQ(wait(a_).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(b_.memory[0], std::byte{0});
}

TEST_F(Errors, WhatIsPostedOnAQpInErrorIsFlushed) {
  // rxe of Linux 6.1 takes it and completes nothing: quiescing ends by the clock then.
  if (!subject().device.empty()) GTEST_SKIP() << "a driver may never complete it";
  connect();
  ASSERT_TRUE(a_.qp->to_error().has_value());
  receive(a_, 4);
  EXPECT_EQ(wait(a_).status, IBV_WC_WR_FLUSH_ERR);
  if (post({.bytes = 8, .id = 6}) == 0) {
    EXPECT_EQ(wait(a_).status, IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_F(Errors, APeerThatIsNotThereExceedsTheRetries) {
  connect();
  b_.qp.reset();
  ASSERT_EQ(post({.bytes = 64}), 0);
  EXPECT_EQ(wait(a_).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(Errors, TheSendQueueHasAnEnd) {
  if (!subject().device.empty()) GTEST_SKIP() << "a NIC may give more than was asked for";
  connect();
  int posted = 0;
  while (posted < 100 && post({.bytes = 8, .opcode = IBV_WR_SEND}) == 0) ++posted;
  EXPECT_EQ(posted, 16);  // none completes: there is no receive
}

TEST_F(Errors, AnOverrunCompletionQueueIsToldAndBreaks) {
  if (!subject().device.empty()) GTEST_SKIP() << "a NIC may give more than was asked for";
  connect();
  for (int i = 0; i < 70; ++i) (void)post({.bytes = 8});
  std::array<ibv_wc, 4> done{};
  EXPECT_LT(a_.queue->poll(done), 0);
  const auto event = subject().context->next_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->event_type, IBV_EVENT_CQ_ERR);
  while (subject().context->next_event()) {
  }
}

TEST_F(Errors, AnObjectInUseIsNotDestroyed) {
  if (!subject().device.empty()) GTEST_SKIP() << "the kernel's answer differs by object";
  EXPECT_NE(subject().verbs->dealloc_pd(domain_->raw()), 0);
  EXPECT_NE(subject().verbs->destroy_cq(a_.queue->raw()), 0);
}

// 9.8.3: unreliable datagrams, and their 40 bytes in front.
TEST_F(Datagrams, ArriveBehindTheGlobalRouteHeader) {
  make(a_, IBV_QPT_UD);
  make(b_, IBV_QPT_UD);
  for (Side* side : {&a_, &b_}) {
    ASSERT_TRUE(side->qp->to_init(subject().port, 0, 0x1234).has_value());
    ASSERT_TRUE(side->qp->activate().has_value());
  }
  receive(b_, 8);
  auto handle = domain_->make_address(subject().loopback);
  ASSERT_TRUE(handle.has_value());
  ibv_sge piece = a_.piece(10, 200);
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.ud.ah = (*handle)->raw();
  request.wr.ud.remote_qpn = b_.qp->number();
  request.wr.ud.remote_qkey = 0x1234;
  ASSERT_EQ(a_.qp->post(request), 0);
  EXPECT_EQ(wait(a_).status, IBV_WC_SUCCESS);
  const ibv_wc done = wait(b_);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.byte_len, 240U);
  EXPECT_EQ(done.src_qp, a_.qp->number());
  EXPECT_EQ(std::memcmp(&b_.memory[40], &a_.memory[10], 200), 0);
}

TEST_F(Datagrams, OfAnotherKeyAreDropped) {
  make(a_, IBV_QPT_UD);
  make(b_, IBV_QPT_UD);
  ASSERT_TRUE(a_.qp->to_init(subject().port, 0, 1).has_value());
  ASSERT_TRUE(b_.qp->to_init(subject().port, 0, 2).has_value());
  ASSERT_TRUE(a_.qp->activate().has_value());
  ASSERT_TRUE(b_.qp->activate().has_value());
  receive(b_, 8);
  auto handle = domain_->make_address(subject().loopback);
  ibv_sge piece = a_.piece(0, 64);
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.ud.ah = (*handle)->raw();
  request.wr.ud.remote_qpn = b_.qp->number();
  request.wr.ud.remote_qkey = 1;
  ASSERT_EQ(a_.qp->post(request), 0);
  EXPECT_EQ(wait(a_).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(quiet(b_));
}

}  // namespace
}  // namespace gdrx::conformance

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--device") gdrx::conformance::subject().device = argv[i + 1];
  }
  if (auto opened = gdrx::conformance::open_subject(); !opened) {
    std::fprintf(stderr, "verbs_conformance: %s\n", gdrx::describe(opened.error()).c_str());
    return 2;
  }
  return RUN_ALL_TESTS();
}
