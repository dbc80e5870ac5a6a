// SPDX-License-Identifier: Apache-2.0
// The reference plugin's calls, as its tables of all versions use them.
#pragma once

#include <cstddef>

#include "plugin/abi/net.hpp"

namespace gdrx::reference {

using nccl::NetResult;

NetResult devices(int* count);
NetResult properties(int device, nccl::NetPropertiesV12* out);
NetResult listen(void* context, int device, void* handle, void** comm);
NetResult connect(void* context, int device, void* handle, void** comm);
NetResult accept(void* listener, void** comm);
NetResult close_comm(void* comm);
NetResult close_listener(void* comm);
NetResult reg_mr(void* comm, void* data, std::size_t size, int type, void** mhandle);
NetResult dereg_mr(void* comm, void* mhandle);
NetResult isend(void* comm, void* data, std::size_t size, int tag, void** request);
NetResult irecv(void* comm, int n, void** data, const std::size_t* sizes, const int* tags,
                void** request);
NetResult test(void* request, int* done, int* sizes);

}  // namespace gdrx::reference
