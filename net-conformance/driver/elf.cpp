// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/driver/elf.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "net-conformance/driver/verdict.hpp"

namespace gdrx::conformance {

namespace {

/// The parts of the dynamic section that are of use; the loader has made addresses of them.
struct Dynamic {
  const char* strings = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  std::vector<std::size_t> needed;
};

Dynamic dynamic_of(const link_map& map) {
  Dynamic found;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) {
      found.strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    } else if (entry->d_tag == DT_SYMTAB) {
      found.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    } else if (entry->d_tag == DT_GNU_HASH) {
      found.gnu_hash = reinterpret_cast<const std::uint32_t*>(entry->d_un.d_ptr);
    } else if (entry->d_tag == DT_NEEDED) {
      found.needed.push_back(entry->d_un.d_val);
    }
  }
  return found;
}

/// One past the last symbol of a GNU hash table: {buckets, first, words of bloom, shift}, bloom,
/// buckets, chains; the low bit of a chain's word ends the chain.
std::size_t symbol_end(const std::uint32_t* table) {
  const std::uint32_t buckets = table[0];
  const std::uint32_t first = table[1];
  const std::uint32_t bloom = table[2];
  const std::uint32_t* bucket = table + 4 + bloom * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t last = *std::max_element(bucket, bucket + buckets);
  if (last < first) {
    return first;
  }
  while ((chain[last - first] & 1) == 0) {
    ++last;
  }
  return last + 1;
}

}  // namespace

Result<ElfFacts> read_elf(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) {
    return blocked("dlinfo failed");
  }
  const Dynamic dynamic = dynamic_of(*map);
  if (dynamic.strings == nullptr || dynamic.symbols == nullptr || dynamic.gnu_hash == nullptr) {
    return skipped("the library has no GNU hash table to read its symbols from");
  }
  ElfFacts facts;
  for (const std::size_t at : dynamic.needed) {
    facts.needed.emplace_back(dynamic.strings + at);
  }
  const std::size_t end = symbol_end(dynamic.gnu_hash);
  for (std::size_t i = dynamic.gnu_hash[1]; i < end; ++i) {
    const auto& symbol = dynamic.symbols[i];
    if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS) {
      facts.exported.emplace_back(dynamic.strings + symbol.st_name);
    }
  }
  facts.foreign = static_cast<std::size_t>(std::ranges::count_if(
      facts.exported, [](const std::string& name) { return !name.starts_with("nccl"); }));
  return facts;
}

}  // namespace gdrx::conformance
