// SPDX-License-Identifier: Apache-2.0
#include "topo/read/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace gdrx::topo {
namespace {

constexpr std::size_t kBlock = 512;
// Of a header: offset and length.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kSize{124, 12};
constexpr Field kSum{148, 8};
constexpr Field kType{156, 1};
constexpr Field kLink{157, 100};
constexpr Field kMagic{257, 8};
constexpr Field kPrefix{345, 155};

tl::unexpected<Error> bad(std::string why) { return fail(Errc::invalid_argument, std::move(why)); }

std::string_view text_of(std::string_view block, Field field) {
  const std::string_view text = block.substr(field.at, field.size);
  return text.substr(0, text.find('\0'));
}

// Octal digits, blanks around them. Base 256 is for sizes that no snapshot has.
std::optional<std::size_t> number_of(std::string_view block, Field field) {
  std::size_t value = 0;
  bool any = false;
  for (const char c : block.substr(field.at, field.size)) {
    if (c == ' ' && !any) continue;
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::size_t>(c - '0');
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

std::size_t sum_of(std::string_view block) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kSum.at && i < kSum.at + kSum.size;  // counts as blanks
    sum += own ? std::size_t{' '} : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

struct Long {
  std::string path;
  std::string link;
};

// POSIX's "27 path=some/name\n" records; others than names are of no interest.
Result<void> take_pax(std::string_view text, Long& names) {
  while (!text.empty()) {
    std::size_t length = 0;
    std::size_t digits = 0;
    while (digits < text.size() && digits < 8 && text[digits] >= '0' && text[digits] <= '9') {
      length = length * 10 + static_cast<std::size_t>(text[digits++] - '0');
    }
    if (digits == 0 || length <= digits + 1 || length > text.size() || text[digits] != ' ') {
      return bad("an extended header is broken");
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    if (record.starts_with("path=")) names.path = record.substr(5);
    if (record.starts_with("linkpath=")) names.link = record.substr(9);
    text.remove_prefix(length);
  }
  return {};
}

Result<void> take_entry(FileTree& tree, char type, const Long& names, std::string_view body) {
  switch (type) {
    case '0':
    case '\0':
      return tree.add(names.path, FileTree::Kind::file, std::string(body));
    case '5':
      return tree.add(names.path, FileTree::Kind::folder, {});
    case '2':
      return tree.add(names.path, FileTree::Kind::link, names.link);
    case '1':
      return bad("it has a hard link, which no snapshot has");
    default:
      return bad("it has an entry that is no file, folder or symbolic link");
  }
}

}  // namespace

Result<FileTree> parse_tar(std::string_view bytes) {
  FileTree tree;
  Long longer;
  std::size_t at = 0;
  while (at + kBlock <= bytes.size()) {
    const std::string_view block = bytes.substr(at, kBlock);
    at += kBlock;
    if (block.find_first_not_of('\0') == block.npos) {
      if (tree.size() == 0) return bad("an archive without any file");
      return tree;
    }
    const auto sum = number_of(block, kSum);
    const auto size = number_of(block, kSize);
    if (!sum || *sum != sum_of(block)) return bad("no archive, or a damaged one");
    if (!size || *size > bytes.size() - at) return bad("the archive ends in the middle of a file");
    const std::string_view body = bytes.substr(at, *size);
    at += (*size + kBlock - 1) / kBlock * kBlock;
    const char type = block[kType.at];
    if (type == 'L') longer.path = std::string(body.substr(0, body.find('\0')));
    if (type == 'K') longer.link = std::string(body.substr(0, body.find('\0')));
    if (type == 'x') GDRX_TRY(take_pax(body, longer));
    if (type == 'L' || type == 'K' || type == 'x' || type == 'g') continue;
    Long names = std::move(longer);
    longer = {};
    const std::string_view prefix = text_of(block, kPrefix);
    const bool posix = block.substr(kMagic.at, 6) == std::string_view("ustar\0", 6);
    if (names.path.empty()) {
      names.path = fmt::format("{}{}{}", posix ? prefix : "", posix && !prefix.empty() ? "/" : "",
                               text_of(block, kName));
    }
    if (names.link.empty()) names.link = text_of(block, kLink);
    GDRX_TRY(take_entry(tree, type, names, body));
    if (tree.size() > kMostSnapshotEntries) return bad("too many files for a snapshot");
  }
  return bad(bytes.empty() ? "empty" : "the archive is cut off");
}

void TarWriter::header(std::string_view path, char type, std::size_t size, std::string_view link) {
  std::array<char, kBlock> block{};
  const auto put = [&](Field field, std::string_view text) {
    std::copy_n(text.begin(), std::min(text.size(), field.size), block.begin() + field.at);
  };
  put(kName, path);
  put(kMode, type == '5' ? "0000755" : "0000644");
  put({108, 8}, "0000000");
  put({116, 8}, "0000000");
  put(kSize, fmt::format("{:011o}", size));
  put({136, 12}, "00000000000");
  block[kType.at] = type;
  put(kLink, link);
  put(kMagic, "ustar  ");  // GNU's, whose long names are used below
  const std::size_t sum = sum_of({block.data(), block.size()});
  put(kSum, fmt::format("{:06o}", sum));
  block[kSum.at + 7] = ' ';
  bytes_.append(block.data(), block.size());
}

void TarWriter::body(std::string_view text) {
  bytes_ += text;
  bytes_.append((kBlock - text.size() % kBlock) % kBlock, '\0');
}

void TarWriter::add(std::string_view path, FileTree::Kind kind, std::string_view text) {
  const auto longer = [&](std::string_view name, char type) {
    if (name.size() <= kName.size) return;
    const std::string zero = std::string(name) + '\0';
    header("././@LongLink", type, zero.size(), {});
    body(zero);
  };
  const bool link = kind == FileTree::Kind::link;
  if (link) longer(text, 'K');
  longer(path, 'L');
  const char type = link ? '2' : kind == FileTree::Kind::folder ? '5' : '0';
  header(path, type, type == '0' ? text.size() : 0, link ? text : std::string_view());
  if (type == '0') body(text);
}

std::string TarWriter::finish() {
  bytes_.append(2 * kBlock, '\0');
  return std::move(bytes_);
}

}  // namespace gdrx::topo
