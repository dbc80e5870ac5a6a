// SPDX-License-Identifier: Apache-2.0
// GPU memory to GPU memory over simulated RDMA NICs: the plugin and the verbs fabric as they are,
// with a fake CUDA driver, whose memory no processor may touch, or linked once more with the real
// one.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "plugin/stats/prometheus.hpp"
#include "tests/plugin/pair.hpp"
#include "transport/memory/cuda_memory.hpp"
#include "transport/memory/gpu_calls.hpp"

namespace gdrx::test {
namespace {

using Bytes = std::vector<std::byte>;

std::string why_no_gpu() {
  if (!cuda::missing().empty()) return cuda::missing();
  auto tried = cuda::DeviceBuffer::create(64, 0);
  return tried ? std::string() : describe(tried.error());
}

/// Memory of the GPU, known to the plugin by a handle.
struct Buffer {
  cuda::DeviceBuffer memory;
  std::size_t size;
  void* mr = nullptr;
  std::byte* at(std::size_t offset) const { return memory.data() + offset; }
  void put(const Bytes& data, std::size_t offset) const {
    ASSERT_TRUE(cuda::copy_to_device(at(offset), data.data(), data.size()));
  }
  Bytes get(std::size_t offset, std::size_t bytes) const {
    Bytes data(bytes);
    EXPECT_TRUE(cuda::copy_to_host(data.data(), at(offset), bytes));
    return data;
  }
};

/// A function that the simulated NICs' module has for tests.
template <class Function>
Function* of_nics(const char* name) {
  return reinterpret_cast<Function*>(dlsym(dlopen(GDRX_SIM_MODULE, RTLD_NOW | RTLD_NOLOAD), name));
}

class RdmaGpu : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 4 << 20;

  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    // NCCL's threads have the GPU's context current.
    context_of_gpu = std::make_unique<cuda::PrimaryContext>(*cuda::PrimaryContext::retain(0));
    current = std::make_unique<cuda::Current>(context_of_gpu->raw());
    std::string why;
    net = AnyNet::open(GDRX_PLUGIN, 12, &why);
    ASSERT_NE(net, nullptr) << why;
    ASSERT_EQ(net->init(&sender, nccl_logger), NetResult::success);
    ASSERT_EQ(net->init(&receiver, nccl_logger), NetResult::success);
    heard().clear();
    pair = std::make_unique<Pair>(*net);
    pair->connect(sender, receiver);
    ASSERT_EQ(net->properties(0, &properties), NetResult::success);
  }
  void TearDown() override {
    if (net == nullptr) return;
    for (auto [comm, mr] : registered) EXPECT_EQ(net->dereg_mr(comm, mr), NetResult::success);
    pair.reset();
    EXPECT_EQ(net->finalize(sender), NetResult::success);
    EXPECT_EQ(net->finalize(receiver), NetResult::success);
    EXPECT_EQ(heard(), "");
  }
  static cuda::DeviceBuffer allocate() { return *cuda::DeviceBuffer::create(kBytes, 0); }
  Buffer buffer(void* comm) {
    Buffer made{allocate(), kBytes};
    EXPECT_EQ(net->reg_mr(comm, made.at(0), kBytes, nccl::kPtrCuda, &made.mr), NetResult::success);
    registered.emplace_back(comm, made.mr);
    return made;
  }
  /// As NCCL does it: export, register, close.
  Buffer exported_buffer(void* comm) {
    Buffer made{allocate(), kBytes};
    const cuda::DmaBuf dma_buf = *cuda::gpu_calls().export_dma_buf({made.at(0), kBytes});
    EXPECT_EQ(
        net->reg_mr_dma_buf(comm, made.at(0), kBytes, dma_buf.offset(), dma_buf.fd(), &made.mr),
        NetResult::success);
    registered.emplace_back(comm, made.mr);
    return made;
  }
  void send(void* data, std::size_t bytes, int tag, void* mr) {
    void* request = nullptr;
    pair->post(request, [&] { return net->isend(pair->send, data, bytes, tag, mr, &request); });
  }
  std::size_t receive(std::vector<void*> data, std::vector<std::size_t> sizes,
                      std::vector<int> tags, std::vector<void*> mrs) {
    void* request = nullptr;
    return pair->post(request,
                      [&] { return net->irecv(pair->recv, data, sizes, tags, mrs, &request); });
  }
  void flush(const Buffer& of, std::size_t offset, std::size_t bytes) {
    void* request = nullptr;
    ASSERT_EQ(net->iflush(pair->recv, of.at(offset), static_cast<int>(bytes), of.mr, &request),
              NetResult::success);
    if (request == nullptr) return;
    pair->track(request);
    ASSERT_TRUE(pair->finish());
  }
  /// One message from `from` to `to`, at offsets of their own, and nothing beside it.
  void carry(const Buffer& from, const Buffer& to, std::size_t bytes) {
    constexpr std::size_t kFrom = 128, kTo = 4096;
    pair->forget();
    const Bytes data = pattern(bytes, static_cast<unsigned>(bytes));
    const Bytes before(bytes + 2, std::byte{0x11});
    from.put(data, kFrom);
    to.put(before, kTo - 1);
    const std::size_t recv = receive({to.at(kTo)}, {bytes}, {3}, {to.mr});
    send(from.at(kFrom), bytes, 3, from.mr);
    ASSERT_TRUE(pair->finish()) << bytes;
    EXPECT_EQ(pair->size(recv), static_cast<int>(bytes));
    flush(to, kTo, bytes);
    const Bytes after = to.get(kTo - 1, bytes + 2);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), after.begin() + 1)) << bytes;
    EXPECT_EQ(after.front(), std::byte{0x11}) << bytes;
    EXPECT_EQ(after.back(), std::byte{0x11}) << bytes;
  }

  std::unique_ptr<cuda::PrimaryContext> context_of_gpu;
  std::unique_ptr<cuda::Current> current;
  std::unique_ptr<AnyNet> net;
  void *sender = nullptr, *receiver = nullptr;
  std::unique_ptr<Pair> pair;
  Properties properties;
  std::vector<std::pair<void*, void*>> registered;
};

TEST_F(RdmaGpu, ArrivesAtEverySizeAndNothingBesideIt) {
  const Buffer from = buffer(pair->send), to = buffer(pair->recv);
  for (const std::size_t bytes : {1UL, 64UL, 1000UL, 16'384UL, 200'001UL, 3'000'000UL}) {
    carry(from, to, bytes);
  }
  const std::string counters = stats::prometheus(**stats::open_page(stats::page_path(getpid())));
  EXPECT_NE(counters.find("way=\"receive\",peer="), std::string::npos);
  std::size_t direct = 0;  // all of them, on both sides
  for (std::size_t at = 0; (at = counters.find("direct_messages_total{", at)) != std::string::npos;
       ++at) {
    const std::size_t number = counters.find("} ", at);
    direct += std::stoul(counters.substr(number + 2));
  }
  EXPECT_EQ(direct, 12U) << counters;
}

std::uint64_t process_counter(const std::string& name) {
  const std::string all = stats::prometheus(**stats::open_page(stats::page_path(getpid())));
  const std::size_t at = all.find("\ngdrx_net_" + name + "{");
  return at == std::string::npos ? 0 : std::stoull(all.substr(all.find("} ", at) + 2));
}

TEST_F(RdmaGpu, ArrivesWhileARailFailsWhichIsCounted) {
  const Buffer from = buffer(pair->send), to = buffer(pair->recv);
  carry(from, to, 2'000'000);
  const std::uint64_t before = process_counter("rails_down_total");
  of_nics<void(int, int)>("gdrx_sim_set_rail")(1, 0);
  for (int i = 0; i < 20; ++i) carry(from, to, 1'000'000);
  of_nics<void(int, int)>("gdrx_sim_set_rail")(1, 1);
  for (auto [comm, mr] : registered) EXPECT_EQ(net->dereg_mr(comm, mr), NetResult::success);
  registered.clear();
  pair->close();
  EXPECT_GT(process_counter("rails_down_total"), before);
  heard().clear();  // the rail that went down is told as a warning
}

TEST_F(RdmaGpu, ThatNcclHasExportedArrivesToo) {
  if ((properties.ptr_support & nccl::kPtrDmaBuf) == 0) GTEST_SKIP() << "no dma-buf";
  const Buffer from = exported_buffer(pair->send), to = exported_buffer(pair->recv);
  for (const std::size_t bytes : {8UL, 500'000UL}) carry(from, to, bytes);
}

TEST_F(RdmaGpu, TalksToHostMemoryBothWaysAndInOneGroup) {
  const Buffer from = buffer(pair->send), to = buffer(pair->recv);
  Bytes host = pattern(300'000, 5), in(300'000), empty;
  from.put(pattern(300'000, 6), 0);
  for (const std::size_t bytes : {10UL, 300'000UL}) {
    pair->forget();
    receive({to.at(0), in.data(), to.at(1 << 20)}, {1000, in.size(), 300'000}, {1, 2, 3},
            {to.mr, nullptr, to.mr});
    send(host.data(), bytes, 3, nullptr);     // not registered, into the GPU
    send(from.at(0), bytes, 2, from.mr);      // out of the GPU
    send(from.at(0), 2 * bytes, 1, from.mr);  // cut, where it is longer
    ASSERT_TRUE(pair->finish());
    flush(to, 0, 1);
    EXPECT_EQ(pair->size(0, 0), static_cast<int>(std::min<std::size_t>(1000, 2 * bytes)));
    const Bytes landed = to.get(1 << 20, bytes);
    EXPECT_TRUE(std::equal(landed.begin(), landed.end(), host.begin())) << bytes;
    EXPECT_EQ(std::memcmp(in.data(), from.get(0, bytes).data(), bytes), 0) << bytes;
    EXPECT_EQ(to.get(0, 20), from.get(0, 20));
  }
  receive({to.at(0)}, {100}, {7}, {to.mr});
  send(empty.data(), 0, 7, nullptr);
  ASSERT_TRUE(pair->finish());
}

// GDRX_GPU_FLUSH=always: as on a GPU that does not order what NICs write.
TEST_F(RdmaGpu, IsThereAfterTheFlushThatNcclIsToldToDo) {
  EXPECT_EQ(properties.force_flush, 1);
  auto* hold = of_nics<void(int)>("gdrx_sim_hold_gpu_writes");
  const Buffer from = buffer(pair->send), to = buffer(pair->recv);
  const Bytes data = pattern(100'000, 1);
  from.put(data, 0);
  hold(1);
  receive({to.at(0)}, {data.size()}, {0}, {to.mr});
  send(from.at(0), data.size(), 0, from.mr);
  ASSERT_TRUE(pair->finish());
  EXPECT_NE(to.get(0, data.size()), data) << "nothing was held back: this shows nothing";
  flush(to, 0, data.size());
  hold(0);
  EXPECT_EQ(to.get(0, data.size()), data);
}

TEST_F(RdmaGpu, IsRegisteredOnceForAllWhoRegisterIt) {
  const Buffer to = buffer(pair->recv);
  auto* objects = of_nics<std::size_t()>("gdrx_sim_objects");
  const std::size_t before = objects();
  const std::uint64_t hits = process_counter("registration_hits_total");
  std::vector<void*> again(200);
  for (void*& mr : again) {
    ASSERT_EQ(net->reg_mr(pair->recv, to.at(4096), 100'000, nccl::kPtrCuda, &mr),
              NetResult::success);
  }
  EXPECT_EQ(objects(), before);
  EXPECT_EQ(process_counter("registration_hits_total"), hits + 200);
  EXPECT_EQ(properties.reg_is_global, 1);
  const Buffer from = buffer(pair->send);
  const Bytes data = pattern(50'000, 2);
  from.put(data, 0);
  for (void* mr : again) {
    receive({to.at(5000)}, {data.size()}, {0}, {mr});
    send(from.at(0), data.size(), 0, from.mr);
    ASSERT_TRUE(pair->finish());
    pair->forget();
    ASSERT_EQ(net->dereg_mr(pair->recv, mr), NetResult::success);
  }
  flush(to, 5000, data.size());
  EXPECT_EQ(to.get(5000, data.size()), data);
  carry(from, to, 70'000);  // it is still registered
}

// What the simulated NICs can is said to them by SIM_NIC_GPU: see tests/fabric/sim_module.cpp.
TEST_F(RdmaGpu, IsAnnouncedExactlyAsTheNicsReachIt) {
  const char* word = std::getenv("SIM_NIC_GPU");
  const std::string nics = word == nullptr ? "dma-buf" : word;
  int expected = nccl::kPtrHost;
  if (nics != "none") expected |= nccl::kPtrCuda;
  if (nics == "dma-buf") expected |= nccl::kPtrDmaBuf;
  EXPECT_EQ(properties.ptr_support, expected);
  if (nics == "dma-buf") return;
  const auto memory = allocate();
  const cuda::DmaBuf dma_buf = *cuda::gpu_calls().export_dma_buf({memory.data(), kBytes});
  void* mr = nullptr;
  EXPECT_NE(
      net->reg_mr_dma_buf(pair->recv, memory.data(), kBytes, dma_buf.offset(), dma_buf.fd(), &mr),
      NetResult::success);
  const bool taken =
      net->reg_mr(pair->recv, memory.data(), kBytes, nccl::kPtrCuda, &mr) == NetResult::success;
  EXPECT_EQ(taken, nics != "none");
  if (taken) {
    EXPECT_EQ(net->dereg_mr(pair->recv, mr), NetResult::success);
  }
  heard().clear();
}

}  // namespace
}  // namespace gdrx::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("GDRX_TRANSPORT", "verbs", 1);
  setenv("GDRX_MODULE_PATH", GDRX_SIM_FOLDER, 1);
  setenv("GDRX_GPU_FLUSH", "always", 1);
  setenv("NCCL_IB_TIMEOUT", "10", 1);
#ifdef GDRX_FAKE_CUDA
  // Under the real one's name: whoever asks for the driver gets it.
  if (dlopen(GDRX_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL) == nullptr) return 1;
#endif
  return RUN_ALL_TESTS();
}
