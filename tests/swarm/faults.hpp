// SPDX-License-Identifier: Apache-2.0
// Calls of gdrx's own code to the system, to the allocator and to CUDA that fail when they are told
// to: the program that this is linked into defines them, and its libraries find those first.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gdrx::swarm {

enum class Kind : std::uint8_t {
  allocate,  // operator new
  thread,    // pthread_create
  fork,
  socket,
  connect,
  listen,  // and bind
  accept,
  poll,
  send,
  receive,
  option,  // getsockname, getsockopt, setsockopt, fcntl
  open,
  map,
  memory_file,    // memfd_create, ftruncate
  event,          // eventfd
  random,         // getrandom
  interfaces,     // getifaddrs, gethostname
  other_process,  // process_vm_readv, process_vm_writev
  cuda,           // memory, streams and events of a GPU
};
inline constexpr std::size_t kKinds = 19;
std::string_view name_of(Kind kind);

struct Fault {
  std::uint32_t kinds = 0;   // a bit each
  std::uint64_t first = 1;   // which of these calls fails, from 1 on
  std::uint64_t times = 1;   // it and so many after it
  std::uint32_t choice = 0;  // of its errors
};

/// Until disarm(). Faults count calls of all threads but those that are exempt.
void arm(std::span<const Fault> faults);
/// Without objects of its own, which would count as leaks.
struct Fired {
  struct One {
    Kind kind{};
    std::uint64_t call = 0;
    int error = 0;  // 0: a short count
  };
  std::array<std::uint32_t, kKinds> of{};
  std::array<One, 8> first{};
  std::size_t told = 0;      // of them
  std::string text() const;  // "send 3 (ECONNRESET)", the first few
};
Fired disarm();
/// A call of the test itself that gdrx never makes.
bool fails(Kind kind);

/// While it lives, nothing of this thread fails.
class Exempt {
 public:
  Exempt();
  ~Exempt();
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;
};

/// Objects of operator new that were not deleted.
std::int64_t live_objects();
/// From here on it is known where each comes from, and a fault says from where it was asked.
void trace();
/// Looks at those that live; says where each comes from at the third look.
void print_live();

}  // namespace gdrx::swarm
