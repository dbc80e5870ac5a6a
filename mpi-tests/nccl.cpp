// SPDX-License-Identifier: Apache-2.0
// NCCL's C functions by dlopen, with prototypes of our own from its documented ABI, so that this
// program needs no NCCL to build.
#include <fmt/format.h>
#include <mpi.h>

#include <array>

#include "base/system_library.hpp"
#include "mpi-tests/gpu_bench.hpp"

namespace gdrx::bench {
namespace {

using Status = int;
struct Id {
  std::array<char, 128> bytes;
};

struct Functions {
  Status (*version)(int*) = nullptr;
  Status (*unique_id)(Id*) = nullptr;
  Status (*init)(void**, int, Id, int) = nullptr;
  Status (*destroy)(void*) = nullptr;
  Status (*all_reduce)(const void*, void*, std::size_t, int, int, void*, void*) = nullptr;
  Status (*reduce_scatter)(const void*, void*, std::size_t, int, int, void*, void*) = nullptr;
  Status (*reduce)(const void*, void*, std::size_t, int, int, int, void*, void*) = nullptr;
  Status (*all_gather)(const void*, void*, std::size_t, int, void*, void*) = nullptr;
  Status (*broadcast)(const void*, void*, std::size_t, int, int, void*, void*) = nullptr;
  Status (*send)(const void*, std::size_t, int, int, void*, void*) = nullptr;
  Status (*receive)(void*, std::size_t, int, int, void*, void*) = nullptr;
  Status (*group_start)() = nullptr;
  Status (*group_end)() = nullptr;
  const char* (*error)(Status) = nullptr;
  Status (*allocate)(void**, std::size_t) = nullptr;  // 2.19
  Status (*free)(void*) = nullptr;
  Status (*add_window)(void*, void*, std::size_t, void**, int) = nullptr;  // 2.27
  Status (*drop_window)(void*, void*) = nullptr;
};

constexpr int kSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC

int nccl_type(DataType type) {
  constexpr std::array<int, kGpuTypeCount> kTypes{0, 1, 2, 3, 4, 5, 6, 9, 7, 8, 10, 11};
  return kTypes[static_cast<std::size_t>(type)];
}

int nccl_op(ReduceOp op) {
  constexpr std::array<int, kGpuOpCount> kOps{0, 1, 3, 2, 4};  // NCCL has max before min
  return kOps[static_cast<std::size_t>(op)];
}

class OpenedNccl final : public Nccl {
 public:
  ~OpenedNccl() override {
    drop();
    if (comm_ != nullptr) call_.destroy(comm_);
  }

  Result<void> open(int rank, int ranks) {
    // The library does not use NVLink's multicast either.
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    SystemLibrary library =
        SystemLibrary::open({"libnccl.so.2"}, "install NCCL or set LD_LIBRARY_PATH to where it is");
    library.keep();
    constexpr auto kNewer = Symbol::Need::newer;
    const bool whole = library.take({
        {call_.version, "ncclGetVersion"},
        {call_.unique_id, "ncclGetUniqueId"},
        {call_.init, "ncclCommInitRank"},
        {call_.destroy, "ncclCommDestroy"},
        {call_.all_reduce, "ncclAllReduce"},
        {call_.reduce_scatter, "ncclReduceScatter"},
        {call_.reduce, "ncclReduce"},
        {call_.all_gather, "ncclAllGather"},
        {call_.broadcast, "ncclBroadcast"},
        {call_.send, "ncclSend"},
        {call_.receive, "ncclRecv"},
        {call_.group_start, "ncclGroupStart"},
        {call_.group_end, "ncclGroupEnd"},
        {call_.error, "ncclGetErrorString"},
        {call_.allocate, "ncclMemAlloc", kNewer},
        {call_.free, "ncclMemFree", kNewer},
        {call_.add_window, "ncclCommWindowRegister", kNewer},
        {call_.drop_window, "ncclCommWindowDeregister", kNewer},
    });
    if (!whole) return tl::unexpected(library.error());
    windows_exist_ = call_.allocate != nullptr && call_.free != nullptr &&
                     call_.add_window != nullptr && call_.drop_window != nullptr;
    Id id{};
    if (rank == 0) GDRX_TRY(check(call_.unique_id(&id), "ncclGetUniqueId"));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    return check(call_.init(&comm_, ranks, id, rank), "ncclCommInitRank");
  }

  std::string version() const override {
    int number = 0;
    call_.version(&number);
    return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
  }

  Result<void> call(const Place& place, DataType data, ReduceOp reduce, const Ends& ends,
                    void* stream) override {
    const int type = nccl_type(data);
    const int op = nccl_op(reduce);
    const auto* const in = ends.input;
    auto* const out = ends.output;
    switch (place.kind) {
      case Kind::all_reduce:
        return check(call_.all_reduce(in, out, place.count, type, op, comm_, stream),
                     "ncclAllReduce");
      case Kind::reduce_scatter:
        return check(call_.reduce_scatter(in, out, place.part(), type, op, comm_, stream),
                     "ncclReduceScatter");
      case Kind::reduce:
        return check(call_.reduce(in, out, place.count, type, op, place.root, comm_, stream),
                     "ncclReduce");
      case Kind::all_gather:
        return check(call_.all_gather(in, out, place.part(), type, comm_, stream), "ncclAllGather");
      case Kind::broadcast:
        return check(call_.broadcast(in, out, place.count, type, place.root, comm_, stream),
                     "ncclBroadcast");
      case Kind::hypercube:
        return hypercube(place, size_of(data), type, ends, stream);
      case Kind::all_to_all:
      case Kind::all_to_all_v:
      case Kind::gather:
      case Kind::scatter:
      case Kind::send_recv:
        return by_messages(place, size_of(data), type, ends, stream);
    }
    return {};
  }

  Result<std::pair<std::byte*, std::byte*>> windows(std::uint64_t bytes) override {
    if (!windows_exist_) return fail(Errc::unsupported, "this NCCL has no windows");
    drop();
    for (Window& window : windows_) {
      GDRX_TRY(check(call_.allocate(&window.memory, bytes), "ncclMemAlloc"));
      GDRX_TRY(check(call_.add_window(comm_, window.memory, bytes, &window.handle, kSymmetric),
                     "ncclCommWindowRegister"));
    }
    return std::pair(static_cast<std::byte*>(windows_[0].memory),
                     static_cast<std::byte*>(windows_[1].memory));
  }

 private:
  struct Window {
    void* memory = nullptr;
    void* handle = nullptr;
  };

  struct Messages {
    int type;
    void* stream;
  };
  Result<void> send(const std::byte* from, std::uint64_t count, int peer, const Messages& how) {
    return check(call_.send(from, count, how.type, peer, comm_, how.stream), "ncclSend");
  }
  Result<void> receive(std::byte* to, std::uint64_t count, int peer, const Messages& how) {
    return check(call_.receive(to, count, how.type, peer, comm_, how.stream), "ncclRecv");
  }

  // As nccl-tests makes them, in one group.
  Result<void> by_messages(const Place& place, std::size_t element, int type, const Ends& ends,
                           void* stream) {
    const Messages how{type, stream};
    GDRX_TRY(check(call_.group_start(), "ncclGroupStart"));
    for (const Piece& piece : pieces_of(place)) {
      GDRX_TRY(receive(ends.output + piece.at * element, piece.count, piece.from, how));
    }
    for (int peer = 0; peer < place.ranks; ++peer) {
      Place there = place;
      there.rank = peer;
      for (const Piece& piece : pieces_of(there)) {
        if (piece.from != place.rank) continue;
        GDRX_TRY(send(ends.input + piece.begin * element, piece.count, peer, how));
      }
    }
    return check(call_.group_end(), "ncclGroupEnd");
  }

  Result<void> hypercube(const Place& place, std::size_t element, int type, const Ends& ends,
                         void* stream) {
    const Messages how{type, stream};
    const auto part_of = [&](int rank) { return ends.output + place.at(rank) * element; };
    if (!ends.in_place) {
      GDRX_TRY(check(call_.group_start(), "ncclGroupStart"));
      GDRX_TRY(send(ends.input, place.part(), place.rank, how));
      GDRX_TRY(receive(part_of(place.rank), place.part(), place.rank, how));
      GDRX_TRY(check(call_.group_end(), "ncclGroupEnd"));
    }
    for (int mask = 1; mask < place.ranks; mask *= 2) {
      const int from = place.rank & ~(mask - 1);
      const std::uint64_t count = place.part() * static_cast<std::uint64_t>(mask);
      GDRX_TRY(check(call_.group_start(), "ncclGroupStart"));
      GDRX_TRY(send(part_of(from), count, place.rank ^ mask, how));
      GDRX_TRY(receive(part_of(from ^ mask), count, place.rank ^ mask, how));
      GDRX_TRY(check(call_.group_end(), "ncclGroupEnd"));
    }
    return {};
  }

  Result<void> check(Status status, const char* what) const {
    if (status == 0) return {};
    return fail(Errc::system, fmt::format("{}: {}", what, call_.error(status)));
  }
  void drop() {
    for (Window& window : windows_) {
      if (window.handle != nullptr) call_.drop_window(comm_, window.handle);
      if (window.memory != nullptr) call_.free(window.memory);
      window = {};
    }
  }

  Functions call_;
  void* comm_ = nullptr;
  bool windows_exist_ = false;
  std::array<Window, 2> windows_;
};

}  // namespace

Result<std::unique_ptr<Nccl>> Nccl::create(int rank, int ranks) {
  auto nccl = std::make_unique<OpenedNccl>();
  GDRX_TRY(nccl->open(rank, ranks));
  return nccl;
}

}  // namespace gdrx::bench
