// SPDX-License-Identifier: Apache-2.0
// The control verbs of the simulated HCA. As strict as the specification allows: a move of a QP
// needs exactly its attributes, an object that others use is not destroyed.
#include "tests/fabric/control_verbs.hpp"

#include <unistd.h>

#include <cerrno>

#include "tests/fabric/objects.hpp"
#include "tests/fabric/refusals.hpp"

namespace gdrx::sim {
namespace {

constexpr int kMaxCqe = 1 << 16;
constexpr std::uint32_t kMaxWr = 4096;

int required(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  const bool rc = type == IBV_QPT_RC;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) {
    return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
           (rc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY);
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    return !rc ? IBV_QP_STATE
               : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
    return !rc ? IBV_QP_STATE | IBV_QP_SQ_PSN
               : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return -1;
}

}  // namespace

struct Verbs {
  Network& network;
  int host;

  std::vector<std::unique_ptr<Nic>>& nics() const {
    return network.hosts_[static_cast<std::size_t>(host)];
  }
  void made() const { ++network.objects_; }
  void gone() const { --network.objects_; }
  auto lock() const { return std::lock_guard(network.mutex_); }

  ibv_device** get_device_list(int* count) const {
    const auto guard = lock();
    auto** list = new ibv_device*[nics().size() + 1];
    for (std::size_t i = 0; i < nics().size(); ++i) list[i] = &nics()[i]->device;
    list[nics().size()] = nullptr;
    if (count != nullptr) *count = static_cast<int>(nics().size());
    return list;
  }

  ibv_context* open_device(ibv_device* device) const {
    const auto guard = lock();
    for (auto& nic : nics()) {
      if (&nic->device != device) continue;
      made();
      return &nic->context;
    }
    errno = ENODEV;
    return nullptr;
  }

  static int query_device(ibv_context* context, ibv_device_attr* attributes) {
    *attributes = {};
    if (Nic::of(context).soft) attributes->vendor_id = 0xffffff;
    attributes->phys_port_cnt = 1;
    attributes->max_cqe = kMaxCqe;
    attributes->max_qp_wr = static_cast<int>(kMaxWr);
    attributes->max_sge = 4;
    return 0;
  }

  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) const {
    const auto guard = lock();
    if (port != 1) return EINVAL;
    const Nic& nic = Nic::of(context);
    *attributes = {};
    attributes->state = nic.up && !nic.dead ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attributes->max_mtu = attributes->active_mtu = IBV_MTU_4096;
    attributes->gid_tbl_len = 4;
    attributes->max_msg_sz = nic.max_message;
    attributes->lid = nic.infiniband ? nic.lid : std::uint16_t{0};
    attributes->active_width = 2;
    attributes->active_speed = 32;
    attributes->link_layer = nic.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    return 0;
  }

  // 0: link-local v1, 1: link-local v2, 2: unreadable as in a container, 3: the routable v2.
  static int query_gid(ibv_context* context, std::uint8_t port, std::uint32_t index,
                       ibv_gid_entry* entry) {
    if (port != 1 || index > 3 || index == 2) return EINVAL;
    const Nic& nic = Nic::of(context);
    *entry = {};
    entry->gid_index = index;
    entry->port_num = 1;
    entry->gid = nic.gid;
    entry->gid_type = index == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    if (nic.infiniband) entry->gid_type = IBV_GID_TYPE_IB;
    if (index < 2) {
      entry->gid.raw[0] = 0xfe;
      entry->gid.raw[1] = 0x80;
    }
    return 0;
  }

  ibv_pd* alloc_pd(ibv_context* context) const {
    const auto guard = lock();
    auto* pd = new Pd;
    pd->raw.context = context;
    made();
    return &pd->raw;
  }

  int dealloc_pd(ibv_pd* raw) const {
    const auto guard = lock();
    auto* pd = reinterpret_cast<Pd*>(raw);
    if (pd->users != 0) return EBUSY;
    delete pd;
    gone();
    return 0;
  }

  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) const {
    const auto guard = lock();
    const bool gpu = network.gpu_->kind_of(address) == MemoryKind::cuda;
    if (gpu && !Nic::of(pd->context).peermem) {
      errno = EFAULT;  // to the kernel these are no pages of the process
      return nullptr;
    }
    return add_mr(pd, address, length, access, gpu);
  }

  // Of a descriptor that seeks to its end, as dma-bufs do: what is beyond is not exported.
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                        int fd, int access) const {
    const auto guard = lock();
    const off_t end = lseek(fd, 0, SEEK_END);
    errno = !Nic::of(pd->context).dma_buf ? EOPNOTSUPP : end < 0 ? EBADF : EINVAL;
    if (!Nic::of(pd->context).dma_buf || end < 0 || offset > static_cast<std::uint64_t>(end) ||
        length > static_cast<std::uint64_t>(end) - offset || (iova - offset) % 4096 != 0) {
      return nullptr;
    }
    return add_mr(pd, reinterpret_cast<void*>(iova), length, access, true);
  }

  ibv_mr* add_mr(ibv_pd* pd, void* address, std::size_t length, int access, bool gpu) const {
    if ((access & IBV_ACCESS_REMOTE_WRITE) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
      errno = EINVAL;
      return nullptr;
    }
    auto* mr = new Mr;
    mr->raw.context = pd->context;
    mr->raw.pd = pd;
    mr->raw.addr = address;
    mr->raw.length = length;
    mr->raw.lkey = network.next_key_++;
    mr->raw.rkey = mr->raw.lkey ^ 0x5a000000U;  // a mix-up of the two is found
    mr->access = access;
    mr->gpu = gpu;
    Nic& nic = Nic::of(pd->context);
    nic.by_lkey[mr->raw.lkey] = mr;
    nic.by_rkey[mr->raw.rkey] = mr;
    ++reinterpret_cast<Pd*>(pd)->users;
    made();
    return &mr->raw;
  }

  int dereg_mr(ibv_mr* raw) const {
    const auto guard = lock();
    auto* mr = reinterpret_cast<Mr*>(raw);
    Nic& nic = Nic::of(raw->context);
    Transport::push_held(nic);  // what was accepted lands before the memory is given back
    nic.by_lkey.erase(raw->lkey);
    nic.by_rkey.erase(raw->rkey);
    --reinterpret_cast<Pd*>(raw->pd)->users;
    delete mr;
    gone();
    return 0;
  }

  ibv_cq* create_cq(ibv_context* context, int entries) const {
    const auto guard = lock();
    if (entries < 1 || entries > kMaxCqe) {
      errno = EINVAL;
      return nullptr;
    }
    auto* cq = new Cq;
    cq->raw.context = context;
    cq->raw.cqe = entries;
    made();
    return &cq->raw;
  }

  int destroy_cq(ibv_cq* raw) const {
    const auto guard = lock();
    auto* cq = reinterpret_cast<Cq*>(raw);
    if (cq->users != 0) return EBUSY;
    delete cq;
    gone();
    return 0;
  }

  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) const {
    const auto guard = lock();
    Nic& nic = Nic::of(pd->context);
    const ibv_qp_cap& cap = attributes->cap;
    errno = EINVAL;
    if (attributes->qp_type != IBV_QPT_RC && attributes->qp_type != IBV_QPT_UD) return nullptr;
    if (cap.max_send_wr > kMaxWr || cap.max_recv_wr > kMaxWr || cap.max_send_sge > 4 ||
        cap.max_recv_sge > 1 || cap.max_inline_data > static_cast<std::uint32_t>(nic.max_inline)) {
      return nullptr;
    }
    errno = nic.reliable ? ENOMEM : EOPNOTSUPP;
    const bool rc = attributes->qp_type == IBV_QPT_RC;
    if (rc && (!nic.reliable || network.draw(Fault::create_qp_fails))) return nullptr;
    auto* qp = new Qp;
    qp->raw.context = pd->context;
    qp->raw.pd = pd;
    qp->raw.send_cq = attributes->send_cq;
    qp->raw.recv_cq = attributes->recv_cq;
    qp->raw.qp_num = network.next_qp_++;
    qp->raw.qp_type = attributes->qp_type;
    qp->raw.state = IBV_QPS_RESET;
    qp->cap = cap;
    qp->ece = nic.ece;
    qp->signal_all = attributes->sq_sig_all != 0;
    network.qps_[qp->raw.qp_num] = qp;
    ++reinterpret_cast<Pd*>(pd)->users;
    ++qp->send_cq().users;
    ++qp->recv_cq().users;
    made();
    network.trace(3, qp->raw.qp_num);
    return &qp->raw;
  }

  int modify_qp(ibv_qp* raw, ibv_qp_attr* a, int mask) const {
    const auto guard = lock();
    auto& qp = *reinterpret_cast<Qp*>(raw);
    if ((mask & IBV_QP_STATE) == 0) return EINVAL;
    if (a->qp_state == IBV_QPS_ERR) {
      Transport::to_error(qp);
      return 0;
    }
    if (a->qp_state == IBV_QPS_RESET) return EINVAL;  // nobody here goes back
    if (required(raw->qp_type, raw->state, a->qp_state) != mask) return EINVAL;
    if ((mask & IBV_QP_PORT) != 0 && a->port_num != 1) return EINVAL;
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0) qp.access = static_cast<int>(a->qp_access_flags);
    if ((mask & IBV_QP_QKEY) != 0) qp.qkey = a->qkey;
    if ((mask & IBV_QP_AV) != 0) {
      const bool elsewhere = network.bridge_ != nullptr && a->ah_attr.is_global != 0;
      if (!elsewhere && Transport::find(network, a->ah_attr) == nullptr) return EINVAL;
      qp.route = a->ah_attr;
    }
    if ((mask & IBV_QP_DEST_QPN) != 0) qp.peer = a->dest_qp_num;
    if ((mask & IBV_QP_RQ_PSN) != 0) qp.expected_psn = a->rq_psn;
    if ((mask & IBV_QP_SQ_PSN) != 0) qp.next_psn = a->sq_psn;
    if ((mask & IBV_QP_TIMEOUT) != 0) network.first_psns_.push_back(a->sq_psn);
    if ((mask & IBV_QP_TIMEOUT) != 0) qp.timeout = a->timeout;
    if ((mask & IBV_QP_RETRY_CNT) != 0) qp.retries = a->retry_cnt;
    if ((mask & IBV_QP_RNR_RETRY) != 0) qp.rnr_retries = a->rnr_retry;
    raw->state = a->qp_state;
    network.trace(4, raw->qp_num, raw->state);
    return 0;
  }

  static constexpr std::uint32_t kVendor = 0x5157;

  int query_ece(ibv_qp* raw, ibv_ece* ece) const {
    const auto guard = lock();
    const auto& qp = *reinterpret_cast<Qp*>(raw);
    if (qp.nic().ece == 0) return EOPNOTSUPP;
    *ece = {kVendor, qp.ece, 0};
    return 0;
  }

  // Before the QP can receive, as its provider sets its hardware up then.
  int set_ece(ibv_qp* raw, ibv_ece* ece) const {
    const auto guard = lock();
    auto& qp = *reinterpret_cast<Qp*>(raw);
    if (qp.nic().ece == 0) return EOPNOTSUPP;
    if (ece->vendor_id != kVendor || ece->comp_mask != 0) return EINVAL;
    if (raw->state != IBV_QPS_RESET && raw->state != IBV_QPS_INIT) return EINVAL;
    qp.ece = ece->options & qp.nic().ece;
    return 0;
  }

  int destroy_qp(ibv_qp* raw) const {
    const auto guard = lock();
    auto* qp = reinterpret_cast<Qp*>(raw);
    network.qps_.erase(raw->qp_num);
    network.trace(5, raw->qp_num);
    for (Cq* cq : {&qp->send_cq(), &qp->recv_cq()}) {
      std::erase_if(cq->entries, [&](const Cq::Entry& e) { return e.wc.qp_num == raw->qp_num; });
      --cq->users;
    }
    --reinterpret_cast<Pd*>(raw->pd)->users;
    std::erase_if(qp->nic().events, [&](const ibv_async_event& event) {
      return event.event_type != IBV_EVENT_PORT_ACTIVE && event.event_type != IBV_EVENT_PORT_ERR &&
             event.element.qp == raw;
    });
    delete qp;
    gone();
    return 0;
  }

  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes) const {
    const auto guard = lock();
    errno = EINVAL;
    if (attributes->port_num != 1) return nullptr;
    auto* ah = new Ah;
    ah->raw.context = pd->context;
    ah->raw.pd = pd;
    ah->attributes = *attributes;
    ++reinterpret_cast<Pd*>(pd)->users;
    made();
    return &ah->raw;
  }

  int destroy_ah(ibv_ah* raw) const {
    const auto guard = lock();
    --reinterpret_cast<Pd*>(raw->pd)->users;
    delete reinterpret_cast<Ah*>(raw);
    gone();
    return 0;
  }

  int get_async_event(ibv_context* context, ibv_async_event* event) const {
    const auto guard = lock();
    Nic& nic = Nic::of(context);
    if (nic.events.empty()) {
      errno = EAGAIN;
      return -1;
    }
    *event = nic.events.front();
    nic.events.pop_front();
    return 0;
  }
};

std::shared_ptr<const verbs::VerbsTable> make_control_verbs(Network& network, int host) {
  const Verbs v{network, host};
  auto t = std::make_shared<verbs::VerbsTable>();
  t->get_device_list = [v](int* count) { return v.get_device_list(count); };
  t->free_device_list = [](ibv_device** list) { delete[] list; };
  t->open_device = [v](ibv_device* device) { return v.open_device(device); };
  t->close_device = [v](ibv_context*) {
    const auto guard = v.lock();
    v.gone();
    return 0;
  };
  t->query_device = &Verbs::query_device;
  t->query_port = [v](ibv_context* c, std::uint8_t port, ibv_port_attr* a) {
    return v.query_port(c, port, a);
  };
  t->query_gid = &Verbs::query_gid;
  t->query_pkey = [](ibv_context*, std::uint8_t, int index, __be16* pkey) {
    *pkey = 0xffff;
    return index == 0 ? 0 : EINVAL;
  };
  t->alloc_pd = [v](ibv_context* c) { return v.alloc_pd(c); };
  t->dealloc_pd = [v](ibv_pd* pd) { return v.dealloc_pd(pd); };
  t->reg_mr = [v](ibv_pd* pd, void* address, std::size_t length, int access) {
    return v.reg_mr(pd, address, length, access);
  };
  t->reg_dmabuf_mr = [v](ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                         int fd, int access) {
    return v.reg_dmabuf_mr(pd, offset, length, iova, fd, access);
  };
  t->dereg_mr = [v](ibv_mr* mr) { return v.dereg_mr(mr); };
  t->create_cq = [v](ibv_context* c, int entries) { return v.create_cq(c, entries); };
  t->destroy_cq = [v](ibv_cq* cq) { return v.destroy_cq(cq); };
  t->create_qp = [v](ibv_pd* pd, ibv_qp_init_attr* a) { return v.create_qp(pd, a); };
  t->modify_qp = [v](ibv_qp* qp, ibv_qp_attr* a, int mask) { return v.modify_qp(qp, a, mask); };
  t->destroy_qp = [v](ibv_qp* qp) { return v.destroy_qp(qp); };
  t->query_ece = [v](ibv_qp* qp, ibv_ece* ece) { return v.query_ece(qp, ece); };
  t->set_ece = [v](ibv_qp* qp, ibv_ece* ece) { return v.set_ece(qp, ece); };
  t->create_ah = [v](ibv_pd* pd, ibv_ah_attr* a) { return v.create_ah(pd, a); };
  t->destroy_ah = [v](ibv_ah* ah) { return v.destroy_ah(ah); };
  t->set_nonblocking = [](ibv_context*) { return 0; };
  t->get_async_event = [v](ibv_context* c, ibv_async_event* event) {
    return v.get_async_event(c, event);
  };
  t->ack_async_event = [](ibv_async_event*) {};
  t->pci_folder = [](const ibv_device* device) { return Nic::of(device).pci_folder; };
  t->subnet_bits = [](const ibv_gid&) { return 112; };  // 10.<subnet>.0.0/16
  t->relaxed_ordering = true;
  refuse(*t, network, host);
  return t;
}

}  // namespace gdrx::sim
