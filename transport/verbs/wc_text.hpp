// SPDX-License-Identifier: Apache-2.0
// A completion's status in words. libibverbs has them too, but it is not linked.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace gdrx::verbs {

inline std::string text_of(ibv_wc_status status) {
  // The statuses that say something about a rail; the others are defects and told by number.
  if (status == IBV_WC_RETRY_EXC_ERR) return "retry exceeded";
  if (status == IBV_WC_RNR_RETRY_EXC_ERR) return "receiver-not-ready retry exceeded";
  if (status == IBV_WC_WR_FLUSH_ERR) return "work flushed";
  if (status == IBV_WC_REM_ACCESS_ERR) return "remote access refused";
  if (status == IBV_WC_REM_INV_REQ_ERR) return "remote end refused the request";
  if (status == IBV_WC_REM_OP_ERR) return "remote operation failed";
  if (status == IBV_WC_LOC_QP_OP_ERR) return "local QP operation failed";
  if (status == IBV_WC_LOC_LEN_ERR) return "local length error";
  if (status == IBV_WC_LOC_PROT_ERR) return "local protection error";
  if (status == IBV_WC_FATAL_ERR) return "fatal error of the NIC";
  return "completion status " + std::to_string(static_cast<int>(status));
}

/// To repeat it would fail in the same way: the request is wrong, or has no right to its memory.
constexpr bool is_final(ibv_wc_status status) noexcept {
  return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_PROT_ERR ||
         status == IBV_WC_LOC_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
         status == IBV_WC_REM_ACCESS_ERR;
}

}  // namespace gdrx::verbs
