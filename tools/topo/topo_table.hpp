// SPDX-License-Identifier: Apache-2.0
// Columns of text, as wide as their widest cell.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace gdrx::tools {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// The first column is repeated in each block of a folded table. `columns` 0: not folded.
  std::string print(int columns) const {
    std::vector<std::size_t> width(rows_.front().size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    }
    const std::size_t limit = columns > 0 ? static_cast<std::size_t>(columns) : std::string::npos;
    std::string text;
    for (std::size_t from = 1; from < width.size() || from == 1;) {
      std::size_t to = from;
      std::size_t used = width[0];
      while (to < width.size() && (to == from || used + 2 + width[to] <= limit)) {
        used += 2 + width[to++];
      }
      if (from > 1) text += '\n';
      for (const auto& row : rows_) text += line(row, width, from, to);
      from = std::max(to, from + 1);
    }
    return text;
  }

 private:
  static std::string line(const std::vector<std::string>& row,
                          const std::vector<std::size_t>& width, std::size_t from, std::size_t to) {
    std::string text = row[0];
    std::size_t at = width[0];
    for (std::size_t i = from; i < to && i < row.size(); ++i) {
      text.resize(std::max(text.size(), at), ' ');
      text += "  " + row[i];
      at += 2 + width[i];
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text + '\n';
  }

  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gdrx::tools
