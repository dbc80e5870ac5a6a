// SPDX-License-Identifier: Apache-2.0
// What the parts of the fake driver share: memory files, mapped where no processor may touch them.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace fake_cuda {

using Pointer = unsigned long long;
inline constexpr int kInvalid = 1;
inline constexpr int kInvalidContext = 201;

struct Memory {
  int fd = -1;
  std::size_t size = 0;
  char* shadow = nullptr;  // where the "copy engine" sees it
};

extern std::mutex mutex;                  // of all below
extern std::map<Pointer, Memory> mapped;  // by address

/// The context in which the application's threads are.
void* application();
/// How often that context has been made anew: it ends with its last owner, its streams with it.
int context_life();
/// Whether a stream's context has ended.
bool ended(void* stream);
/// Whether the calling thread is in that context while the application waits for its GPU.
bool blocked();
/// New memory, mapped; null if there is none.
void* allocate(std::size_t size);
/// Where a copy finds it: of a GPU's memory its shadow.
char* visible(Pointer at);
/// The entry of `mapped` that an address lies in, or its end.
std::map<Pointer, Memory>::iterator find(Pointer at);

}  // namespace fake_cuda
