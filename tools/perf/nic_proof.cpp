// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/nic_proof.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tools/perf/nic_buffer.hpp"

namespace gdrx::perf {
namespace {

constexpr std::chrono::seconds kProofDeadline{5};

Result<void> wait(verbs::CompletionQueue& queue) {
  const auto end = std::chrono::steady_clock::now() + kProofDeadline;
  do {
    ibv_wc done{};
    const int count = queue.poll({&done, 1});
    if (count < 0) return fail(Errc::system, "ibv_poll_cq failed");
    if (count == 0) continue;
    if (done.status == IBV_WC_SUCCESS) return {};
    return fail(Errc::system, completion_problem(done));
  } while (std::chrono::steady_clock::now() < end);
  return fail(Errc::timeout, "no completion within 5 s");
}

/// One host buffer and one of the kind to be proven.
class Trial {
 public:
  static Result<Trial> create(const NicPort& port, const Buffer& target, Way way) {
    Trial trial(target);
    trial.host_ = GDRX_TRY(Buffer::host(target.size()));
    trial.host_mr_ = GDRX_TRY(trial.host_->register_with(port, Way::host));
    trial.target_mr_ = GDRX_TRY(target.register_with(port, way));
    PairOptions options;
    options.depth = 4;
    options.timeout = 14;  // 67 ms, eight times: a NIC's way to itself is short
    trial.pair_ = GDRX_TRY(QpPair::connect(port, port, options));
    return trial;
  }

  Result<void> run() {
    const std::vector<std::byte> sent = pattern(target_.size(), 1);
    std::vector<std::byte> seen(sent.size());
    GDRX_TRY(target_.write(0, seen));
    GDRX_TRY(host_->write(0, sent));
    GDRX_TRY(post(IBV_WR_RDMA_WRITE));
    GDRX_TRY(target_.read(0, seen));
    GDRX_TRY(same(sent, seen, "written"));
    // Other bytes the other way, so that what is left from before cannot pass.
    const std::vector<std::byte> other = pattern(target_.size(), 2);
    GDRX_TRY(target_.write(0, other));
    GDRX_TRY(post(IBV_WR_RDMA_READ));
    GDRX_TRY(host_->read(0, seen));
    return same(other, seen, "read");
  }

 private:
  explicit Trial(const Buffer& target) : target_(target) {}

  Result<void> post(ibv_wr_opcode opcode) {
    ibv_sge piece{host_->address(), static_cast<std::uint32_t>(host_->size()), host_mr_->lkey()};
    ibv_send_wr request{};
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = target_.address();
    request.wr.rdma.rkey = target_mr_->rkey();
    if (const int error = pair_->here.qp->post(request); error != 0) {
      return fail(Errc::system, "ibv_post_send", error);
    }
    return wait(*pair_->here.queue);
  }
  static Result<void> same(const std::vector<std::byte>& sent, const std::vector<std::byte>& seen,
                           const char* what) {
    const auto [at, _] = std::mismatch(sent.begin(), sent.end(), seen.begin());
    if (at == sent.end()) return {};
    return fail(Errc::mismatch, fmt::format("the bytes {} differ from {} on", what,
                                            std::distance(sent.begin(), at)));
  }

  const Buffer& target_;
  std::unique_ptr<Buffer> host_;
  std::unique_ptr<verbs::Registration> host_mr_;
  std::unique_ptr<verbs::Registration> target_mr_;
  std::unique_ptr<QpPair> pair_;
};

doctor::Proof attempt(const NicPort& port, const Result<std::unique_ptr<Buffer>>& target, Way way,
                      const std::string& gpu) {
  doctor::Proof proof{port.name(), port.port(), gpu, std::string(to_string(way)), {}, 0};
  const auto failed = [&](const Error& error) {
    proof.problem = describe(error);
    proof.native = error.native;
    return proof;
  };
  if (!target) return failed(target.error());
  auto trial = Trial::create(port, **target, way);
  if (!trial) return failed(trial.error());
  const auto done = trial->run();
  return done ? proof : failed(done.error());
}

}  // namespace

std::vector<doctor::Proof> prove(const std::shared_ptr<const verbs::VerbsTable>& table,
                                 const std::vector<std::shared_ptr<cuda::Device>>& gpus) {
  std::vector<doctor::Proof> proofs;
  for (const PortChoice& choice : ports_up(table)) {
    const auto port = NicPort::open(table, choice);
    if (!port) {
      proofs.push_back({choice.device,
                        choice.port,
                        {},
                        std::string(to_string(Way::host)),
                        describe(port.error()),
                        port.error().native});
      continue;
    }
    proofs.push_back(attempt(**port, Buffer::host(kProofBytes), Way::host, {}));
    for (const auto& gpu : gpus) {
      const auto memory = Buffer::gpu(gpu, kProofBytes);
      for (const Way way : {Way::dmabuf, Way::peermem}) {
        proofs.push_back(attempt(**port, memory, way, gpu->bus()));
      }
    }
  }
  return proofs;
}

Result<std::vector<doctor::Proof>> prove_here() {
  const auto table = GDRX_TRY(verbs::load_verbs());
  auto gpus = cuda::open_all();
  return prove(table, gpus ? *gpus : std::vector<std::shared_ptr<cuda::Device>>());
}

}  // namespace gdrx::perf
