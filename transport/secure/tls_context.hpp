// SPDX-License-Identifier: Apache-2.0
// OpenSSL, set up once a process.
#pragma once

#include <string>

#include "gdrx/result.hpp"

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace gdrx {

/// Before the first call of OpenSSL. It does not register itself with atexit(): threads of ours may
/// still talk when main() returns.
void start_openssl() noexcept;

/// "`what`: the oldest of this thread's errors". Empties their queue.
std::string openssl_error(const std::string& what);

/// TLS 1.3 with keys that both ends hold: no certificates, tickets, early data or older versions.
/// Lives as long as the process. `hear` is told each handshake's secrets, as a line of NSS's key
/// log format; all calls give the same.
Result<SSL_CTX*> tls_context(bool server, void (*hear)(const SSL*, const char* line));

}  // namespace gdrx
