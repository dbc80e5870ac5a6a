// SPDX-License-Identifier: Apache-2.0
// A libibverbs.so.1 that does next to nothing: it has the names that load_verbs() needs, tells
// whether the kernel copies registered pages on fork, and counts calls of ibv_fork_init().

#define FAKE extern "C" __attribute__((visibility("default")))
// Never called here.
#define NAME(symbol) \
  FAKE void symbol() {}

NAME(ibv_get_device_list)
NAME(ibv_free_device_list)
NAME(ibv_query_device)
NAME(ibv_query_port)
NAME(ibv_query_gid)
NAME(ibv_query_pkey)
NAME(ibv_get_async_event)
NAME(ibv_ack_async_event)
NAME(ibv_alloc_pd)
NAME(ibv_dealloc_pd)
NAME(ibv_create_cq)
NAME(ibv_destroy_cq)
NAME(ibv_create_qp)
NAME(ibv_modify_qp)
NAME(ibv_destroy_qp)
NAME(ibv_create_ah)
NAME(ibv_destroy_ah)
NAME(ibv_reg_mr)
NAME(ibv_dereg_mr)

FAKE int fake_fork_status;
FAKE int fake_fork_inits;
int fake_fork_status = 0;
int fake_fork_inits = 0;

FAKE int ibv_fork_init() { return ++fake_fork_inits, 0; }
FAKE int ibv_is_fork_initialized() { return fake_fork_status; }
