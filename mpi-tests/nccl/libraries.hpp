// SPDX-License-Identifier: Apache-2.0
// NCCL and the CUDA driver, found at run time: this program builds where neither is. Prototypes and
// values are ours, after their documented ABI.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "gdrx/result.hpp"

namespace gdrx::bench {

struct NcclId {
  std::array<char, 128> bytes;
};
using NcclComm = void*;
using Stream = void*;

/// ncclDataType_t and ncclRedOp_t.
enum class NcclType : int {
  int8 = 0,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  half,
  single,
  dual,
  bf16
};
inline constexpr int kNcclSum = 0;

struct Nccl {
  int (*version)(int*) = nullptr;
  int (*unique_id)(NcclId*) = nullptr;
  int (*init_rank)(NcclComm*, int, NcclId, int) = nullptr;
  int (*destroy)(NcclComm) = nullptr;
  int (*async_error)(NcclComm, int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, NcclType, int, NcclComm, Stream) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, NcclType, NcclComm, Stream) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, NcclType, int, NcclComm, Stream) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, NcclType, int, NcclComm, Stream) = nullptr;
  int (*reduce)(const void*, void*, std::size_t, NcclType, int, int, NcclComm, Stream) = nullptr;
  int (*send)(const void*, std::size_t, NcclType, int, NcclComm, Stream) = nullptr;
  int (*recv)(void*, std::size_t, NcclType, int, NcclComm, Stream) = nullptr;

  /// `path` empty: the loader's libnccl.so.2.
  static Result<Nccl> load(const std::string& path);
  Result<void> check(int status, const char* call) const;
};

/// One GPU of this process, made current in the calling thread, and a stream on it.
class Gpu {
 public:
  static Result<Gpu> open(int ordinal);            // modulo the number of GPUs
  Result<std::byte*> allocate(std::size_t bytes);  // until the process ends
  Result<void> write(std::byte* device, const void* host, std::size_t bytes);
  Result<void> read(void* host, const std::byte* device, std::size_t bytes);
  Result<bool> idle();  // whether the stream has done all
  Stream stream() const { return stream_; }
  int ordinal() const { return ordinal_; }

 private:
  Stream stream_ = nullptr;
  int ordinal_ = 0;
};

}  // namespace gdrx::bench
