// SPDX-License-Identifier: Apache-2.0
// Memory without atomics, in words of eight bytes: who reads or writes it has to know of whoever
// wrote it before, and who writes it of whoever read it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "tests/memory_order/model.hpp"

namespace gdrx::model {

class PlainMemory {
 public:
  void begin() { words_.clear(); }
  void read(const void* at, std::size_t bytes) {
    each(at, bytes, [](Word& word) {
      require(!word.written || knows(*word.written), "what is read is not written, or anew");
      const Event event = happen();
      word.read[event.thread] = event;
    });
  }
  void write(const void* at, std::size_t bytes) {
    each(at, bytes, [](Word& word) {
      require(!word.written || knows(*word.written), "two write at once");
      for (const auto& reader : word.read) {
        require(!reader || knows(*reader), "what is written over is read");
      }
      word.written = happen();
    });
  }

 private:
  struct Word {
    std::optional<Event> written;
    std::array<std::optional<Event>, kThreads> read;  // the last of each thread
  };
  template <class Visit>
  void each(const void* at, std::size_t bytes, const Visit& visit) {
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    for (std::uintptr_t word = begin / 8; word < (begin + bytes + 7) / 8; ++word) {
      visit(words_[word]);
    }
  }
  std::map<std::uintptr_t, Word> words_;
};

}  // namespace gdrx::model
