// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "net-conformance/mutants/track.hpp"

namespace gdrx::mutants {

namespace {

template <auto before>
NetResult init(void** context, std::uint64_t id, nccl::CommConfig* config, nccl::LogFunction log,
               nccl::ProfilerFunction profiler) {
  return before() ? good().init(context, id, config, log, profiler) : NetResult::internal_error;
}

template <auto before>
void at_init(NetV12& table) {
  table.init = init<before>;
}

std::atomic<bool> g_finalized{false};
std::atomic<bool> g_here{false};  // gone with the library; the environment stays

constexpr Mutant kMutants[] = {
    {"takes-interrupts", at_init<[] {
       signal(SIGINT, [](int) {});
       return true;
     }>},
    {"leaves-a-thread", at_init<[] {
       std::thread([] {
         while (true) pause();
       }).detach();
       return true;
     }>},
    {"loads-once", at_init<[] {
       const bool first = std::getenv("NET_MUTANT_WAS_HERE") == nullptr || g_here;
       g_here = true;
       return setenv("NET_MUTANT_WAS_HERE", "1", 1) == 0 && first;
     }>},
    {"greets", at_init<[] {
       std::puts("welcome to this network");
       return true;
     }>},
    {"child-of-fork-dies", at_init<[] {
       static const int once = pthread_atfork(nullptr, nullptr, [] { std::abort(); });
       return once == 0;
     }>},
    {"one-finalize-for-all",
     [](NetV12& table) {
       table.finalize = [](void* context) {
         g_finalized = true;
         return good().finalize(context);
       };
       table.listen = [](void* context, int device, void* handle, void** comm) {
         return g_finalized ? NetResult::internal_error
                            : good().listen(context, device, handle, comm);
       };
     }},
};

}  // namespace

std::span<const Mutant> life_mutants() { return kMutants; }

}  // namespace gdrx::mutants
