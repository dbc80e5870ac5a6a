// SPDX-License-Identifier: Apache-2.0
// MPI for a command that links none, from a module: texts of every rank at every rank.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::tools {

/// Whether a launcher of MPI started this process.
bool under_mpi();

/// Begun once, ended with the object.
class Mpi {
 public:
  /// `otherwise`: what to do where the module cannot be loaded.
  static Result<std::unique_ptr<Mpi>> begin(const std::string& otherwise);
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  std::size_t rank() const { return static_cast<std::size_t>(rank_); }
  /// By rank. Every rank calls it equally often.
  Result<std::vector<std::string>> all_gather(const std::string& mine) const;

 private:
  using Take = void (*)(int, const char*, int, void*);
  Mpi() = default;
  int (*begin_)(int*) = nullptr;
  int (*gather_)(const char*, int, Take, void*) = nullptr;
  void (*end_)() = nullptr;
  int rank_ = 0;
  bool begun_ = false;
};

/// This host's name; ranks of one machine may believe to be on several, by GDRX_HOST_ID, as for
/// the library.
std::string host_name();
std::filesystem::path own_program();

}  // namespace gdrx::tools
