// SPDX-License-Identifier: Apache-2.0
#include "tools/mpirun/linkage.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>

#include "tools/mpirun/mpirun_launcher.hpp"

namespace gdrx::tools {
namespace {

constexpr std::size_t kMostEntries = 4096;  // of a header or a section: more is no program
constexpr std::size_t kLongestName = 255;

/// Nothing: the file ends before.
template <class T>
std::optional<T> read_at(std::ifstream& file, std::uint64_t offset) {
  T value;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(reinterpret_cast<char*>(&value), sizeof value)) return std::nullopt;
  return value;
}

std::vector<Elf64_Phdr> segments_of(std::ifstream& file) {
  std::vector<Elf64_Phdr> segments;
  const auto head = read_at<Elf64_Ehdr>(file, 0);
  const bool is_elf = head && std::memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
                      head->e_ident[EI_CLASS] == ELFCLASS64;
  if (!is_elf || head->e_phnum > kMostEntries) return segments;
  for (std::size_t i = 0; i < head->e_phnum; ++i) {
    const auto one = read_at<Elf64_Phdr>(file, head->e_phoff + i * sizeof(Elf64_Phdr));
    if (!one) break;
    segments.push_back(*one);
  }
  return segments;
}

/// Where in the file an address of the program is.
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& segments,
                                       std::uint64_t address) {
  for (const Elf64_Phdr& one : segments) {
    if (one.p_type == PT_LOAD && address >= one.p_vaddr && address - one.p_vaddr < one.p_filesz) {
      return one.p_offset + (address - one.p_vaddr);
    }
  }
  return std::nullopt;
}

std::string name_at(std::ifstream& file, std::uint64_t offset) {
  std::string name(kLongestName, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(name.data(), static_cast<std::streamsize>(name.size()));
  name.resize(std::strlen(name.c_str()));
  return name;
}

}  // namespace

std::vector<std::string> needed_by(const std::filesystem::path& program) {
  std::ifstream file(program, std::ios::binary);
  const std::vector<Elf64_Phdr> segments = segments_of(file);
  std::vector<std::uint64_t> names;
  std::optional<std::uint64_t> strings;
  for (const Elf64_Phdr& one : segments) {
    if (one.p_type != PT_DYNAMIC) continue;
    for (std::size_t i = 0; i < kMostEntries; ++i) {
      const auto entry = read_at<Elf64_Dyn>(file, one.p_offset + i * sizeof(Elf64_Dyn));
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) strings = offset_of(segments, entry->d_un.d_ptr);
    }
  }
  std::vector<std::string> needed;
  if (!strings) return needed;
  for (const std::uint64_t name : names) needed.push_back(name_at(file, *strings + name));
  return needed;
}

std::optional<std::string> mpi_of(const std::filesystem::path& program) {
  for (const std::string& library : needed_by(program)) {
    if (family_of_library(library) != nullptr) return library;
    for (const char* const start : {"libmpi.so.", "libmpich.so.", "libmpi_abi.so."}) {
      if (library.starts_with(start)) return library;
    }
  }
  return std::nullopt;
}

}  // namespace gdrx::tools
