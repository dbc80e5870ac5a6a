// SPDX-License-Identifier: Apache-2.0
#include "mpi/pack.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <stdexcept>

namespace gdrx::mpi {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;  // of a piece: MPI_Pack's int counts it

void check(int result) {
  if (result == MPI_SUCCESS) return;
  throw std::runtime_error("MPI does not pack or unpack a type of the program's");
}

/// A communicator of this rank that no message of the program's is in.
MPI_Comm own_comm() {
  static const MPI_Comm kOwn = [] {
    MPI_Comm made{};
    check(real::Comm_split(MPI_COMM_SELF, 0, 0,
                           &made));  // unlike a duplicate: no attribute is copied
    return made;
  }();
  return kOwn;
}

/// One element of the type that has so many bytes.
class ManyBytes {
 public:
  explicit ManyBytes(std::size_t bytes) {
    const int lengths[2] = {static_cast<int>(bytes / kMost), static_cast<int>(bytes % kMost)};
    const MPI_Aint places[2] = {0, static_cast<MPI_Aint>(bytes / kMost * kMost)};
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    check(real::Type_contiguous(static_cast<int>(kMost), MPI_BYTE, &parts[0]));
    const int made = real::Type_create_struct(2, lengths, places, parts, &type_);
    real::Type_free(&parts[0]);
    check(made);
    check(real::Type_commit(&type_));
  }
  ~ManyBytes() { real::Type_free(&type_); }
  ManyBytes(const ManyBytes&) = delete;
  ManyBytes& operator=(const ManyBytes&) = delete;
  MPI_Datatype type() const noexcept { return type_; }

 private:
  MPI_Datatype type_{};
};

/// An element of over 2 GiB, which MPI_Pack cannot count, as a message to this rank itself.
void send_to_self(const void* from, MPI_Datatype sent, void* to, MPI_Datatype received) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  check(real::Sendrecv(from, 1, sent, 0, 0, to, 1, received, 0, 0, own_comm(), MPI_STATUS_IGNORE));
}

/// body(where, elements, packed bytes, how many) of each piece of a block.
template <class Byte, class Body>
void each_piece(const Side& side, int block, Byte* packed, Body&& body) {
  if (side.type.size == 0) return;
  const std::size_t most = std::max<std::size_t>(1, kMost / side.type.size);
  std::byte* at = side.at + side.place(block);
  for (std::size_t left = side.elements(block); left > 0;) {
    const std::size_t count = std::min(left, most);
    const std::size_t bytes = count * side.type.size;
    body(at, count, packed, bytes);
    at += static_cast<std::ptrdiff_t>(count) * side.type.extent;
    packed += bytes;
    left -= count;
  }
}

bool is_countable(std::size_t bytes) {
  return bytes <= std::size_t{std::numeric_limits<int>::max()};
}

void check_used(int used, std::size_t bytes) {
  if (static_cast<std::size_t>(used) == bytes) return;
  throw std::runtime_error("MPI packs a type to another size than it says");
}

}  // namespace

void pack_block(const Side& side, int block, std::byte* packed) {
  each_piece(side, block, packed,
             [&](const std::byte* from, std::size_t count, std::byte* to, std::size_t bytes) {
               if (!is_countable(bytes)) {
                 return send_to_self(from, side.handle, to, ManyBytes(bytes).type());
               }
               int used = 0;
               check(real::Pack(from, static_cast<int>(count), side.handle, to,
                                static_cast<int>(bytes), &used, MPI_COMM_SELF));
               check_used(used, bytes);
             });
}

void unpack_block(const Side& side, int block, const std::byte* packed) {
  each_piece(side, block, packed,
             [&](std::byte* to, std::size_t count, const std::byte* from, std::size_t bytes) {
               if (!is_countable(bytes)) {
                 return send_to_self(from, ManyBytes(bytes).type(), to, side.handle);
               }
               int used = 0;
               check(real::Unpack(from, static_cast<int>(bytes), &used, to, static_cast<int>(count),
                                  side.handle, MPI_COMM_SELF));
               check_used(used, bytes);
             });
}

}  // namespace gdrx::mpi
