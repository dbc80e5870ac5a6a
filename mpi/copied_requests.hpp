// SPDX-License-Identifier: Apache-2.0
// Requests whose buffers are copies. They are known by their handles, which MPI uses again: what a
// call asks for is looked up before MPI has the call.
#pragma once

#include <memory>
#include <vector>

#include "mpi/copies.hpp"

namespace gdrx::mpi {

/// Of a request that has just been made: its copies are written when it is done. May throw
/// std::bad_alloc.
void adopt(MPI_Request request, Copies&& copies, bool persistent);
/// Whether any request of this process has copies.
bool any_copied() noexcept;
/// Before a request is started.
void read_copies(MPI_Request request) noexcept;
/// Of a request that the program frees. True: it is not done, and we free it when it is.
bool keep_freed(MPI_Request* request) noexcept;
/// Of those: writes the copies of what is done by now.
void look_at_freed() noexcept;
/// Behind MPI_Finalize: the copies of requests that nobody has freed.
void end_copied() noexcept;

struct Copied;

/// Around a call that asks for requests: those of them that are done then have their copies
/// written. `keeps`: the call leaves requests that are done as they are.
class Completion {
 public:
  Completion(const MPI_Request* list, int count, bool keeps) noexcept;
  ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;
  int look(int result) noexcept;

 private:
  struct Asked {
    int at = 0;
    MPI_Request handle{};
    std::shared_ptr<Copied> copied;
  };
  const MPI_Request* list_;
  bool keeps_;
  std::vector<Asked> asked_;
};

}  // namespace gdrx::mpi
