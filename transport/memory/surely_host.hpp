// SPDX-License-Identifier: Apache-2.0
// Where the small buffers of most programs are: the heap that grows by the program's break, and the
// stack of its first thread.
#pragma once

namespace gdrx {

/// Whether the address lies in one of them: then it is host memory, whatever drivers the process
/// has. Any thread; no lock of ours, and no system call but in the first call. (A library that
/// watches sbrk(), as UCX may, sees it asked for 0.)
bool is_on_heap_or_stack(const void* address) noexcept;

/// Whether nobody need ask CUDA whose they are: each is there or NULL, or the process has no
/// driver. Of what is elsewhere it asks the linker, which has a lock.
bool are_surely_host(const void* one, const void* other) noexcept;

}  // namespace gdrx
