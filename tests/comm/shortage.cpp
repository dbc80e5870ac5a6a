// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/shortage.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

thread_local long fails_at = 0;   // which allocation of this thread from now on; 0: none
thread_local bool lasts = false;  // all behind it fail, too
thread_local bool has_come = false;

thread_local int thread_refused = 0;

void* allocate(std::size_t bytes, std::size_t alignment = 0) {
  if (lasts && has_come) throw std::bad_alloc();
  if (fails_at > 0 && --fails_at == 0) {
    has_come = true;
    throw std::bad_alloc();
  }
  const std::size_t whole = alignment == 0 ? 0 : (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment == 0 ? std::malloc(bytes) : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace gdrx::test {

bool Shortage::came() { return fails_at == 0; }
void Shortage::begin(long allocation, bool for_good) {
  fails_at = allocation;
  lasts = for_good;
  has_come = false;
}
void refuse_thread(int nth) { thread_refused = nth; }

}  // namespace gdrx::test

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* of) {
  static const auto real =
      reinterpret_cast<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          dlsym(RTLD_NEXT, "pthread_create"));
  if (thread_refused > 0 && --thread_refused == 0) return EAGAIN;
  return real(thread, attributes, run, of);
}

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
