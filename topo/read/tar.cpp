// SPDX-License-Identifier: Apache-2.0
#include "topo/read/tar.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <charconv>

#include "base/printable.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::topo {
namespace {

constexpr std::size_t kBlock = 512;  // of an archive, whose last one is zeros

tl::unexpected<Error> bad(std::string why) { return fail(Errc::invalid_argument, std::move(why)); }

struct CloseRead {
  void operator()(archive* of) const noexcept { archive_read_free(of); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const noexcept { archive_entry_free(entry); }
};

std::string words_of(archive* from) {
  const char* said = archive_error_string(from);
  return printable(said != nullptr ? said : "no reason");
}

tl::unexpected<Error> broken(archive* from, const FileTree& tree) {
  const std::string said = words_of(from);
  if (said.find("runcated") != said.npos) return bad("the archive is cut off");
  if (tree.size() == 0) return bad(fmt::format("no archive, or a damaged one ({})", said));
  return bad(fmt::format("the archive is damaged ({})", said));
}

Result<std::string> contents(archive* from, std::size_t size, const FileTree& tree) {
  std::string text(size, '\0');
  std::size_t at = 0;
  while (at < size) {
    const la_ssize_t got = archive_read_data(from, text.data() + at, size - at);
    if (got < 0) return broken(from, tree);
    if (got == 0) return bad("the archive is cut off");
    at += static_cast<std::size_t>(got);
  }
  return text;
}

Result<void> take_entry(FileTree& tree, archive* from, archive_entry* entry) {
  const char* path = archive_entry_pathname(entry);
  if (path == nullptr) return bad("it has a file whose name is no text");
  const bool hard =
      archive_entry_hardlink(entry) != nullptr || archive_entry_hardlink_utf8(entry) != nullptr;
  if (hard) return bad("it has a hard link, which no snapshot has");
  switch (archive_entry_filetype(entry)) {
    case AE_IFDIR:
      return tree.add(path, FileTree::Kind::folder, {});
    case AE_IFLNK: {
      const char* to = archive_entry_symlink(entry);
      if (to == nullptr) return bad("it has a link to what is no text");
      return tree.add(path, FileTree::Kind::link, to);
    }
    case AE_IFREG: {
      const auto size = archive_entry_size(entry);
      if (size < 0 || static_cast<std::size_t>(size) > kMostSnapshotBytes) {
        return bad("it unpacks to more than 64 MiB");
      }
      return tree.add(path, FileTree::Kind::file,
                      GDRX_TRY(contents(from, static_cast<std::size_t>(size), tree)));
    }
    default:
      return bad("it has an entry that is no file, folder or symbolic link");
  }
}

// The sizes in its headers, before libarchive has them: what is sparse takes more memory than the
// archive has bytes.
Result<void> look_at_headers(std::string_view bytes) {
  constexpr std::size_t kSizeAt = 124;
  constexpr std::size_t kSizeLength = 12;
  constexpr std::size_t kTypeAt = 156;
  std::size_t headers = 0;
  for (std::size_t at = 0; at + kBlock <= bytes.size(); ++headers) {
    const std::string_view header = bytes.substr(at, kBlock);
    if (header.find_first_not_of('\0') == header.npos) return {};
    if (headers > 3 * kMostSnapshotEntries) return bad("too many files for a snapshot");
    const std::string_view field = header.substr(kSizeAt, kSizeLength);
    const std::string_view digits = trim(field.substr(0, field.find('\0')));
    std::size_t size = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), size, 8);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
      return bad("no archive, or a damaged one (a size is no number)");
    }
    if (size > bytes.size() - at - kBlock) return bad("the archive is cut off");
    const std::string_view body = bytes.substr(at + kBlock, size);
    const char type = header[kTypeAt];
    const bool extended = type == 'x' || type == 'g';
    if (type == 'S' || (extended && body.find("GNU.sparse") != body.npos)) {
      return bad("it has a sparse file, which no snapshot has");
    }
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return bad("the archive is cut off");
}

la_ssize_t append(archive*, void* to, const void* bytes, std::size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
  return static_cast<la_ssize_t>(size);
}

}  // namespace

Result<FileTree> parse_tar(std::string_view bytes) {
  if (bytes.empty()) return bad("empty");
  GDRX_TRY(look_at_headers(bytes));
  const std::unique_ptr<archive, CloseRead> from(archive_read_new());
  if (!from || archive_read_support_format_tar(from.get()) != ARCHIVE_OK) {
    return fail(Errc::system, "libarchive reads no tar archive");
  }
  FileTree tree;
  if (archive_read_open_memory(from.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) {
    return broken(from.get(), tree);
  }
  while (true) {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(from.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return broken(from.get(), tree);
    GDRX_TRY(take_entry(tree, from.get(), entry));
    if (tree.size() > kMostSnapshotEntries) return bad("too many files for a snapshot");
  }
  if (tree.size() == 0) return bad("an archive without any file");
  return tree;
}

void TarWriter::Close::operator()(archive* of) const noexcept { archive_write_free(of); }

TarWriter::TarWriter(Packing packing)
    : bytes_(std::make_unique<std::string>()), archive_(archive_write_new()) {
  archive* const to = archive_.get();
  check(archive_write_set_format_gnutar(to));
  if (packing == Packing::gzip) {
    check(archive_write_add_filter_gzip(to));
    check(archive_write_set_filter_option(to, "gzip", "compression-level", "9"));
    check(archive_write_set_filter_option(to, "gzip", "timestamp", nullptr));
  }
  check(archive_write_set_bytes_per_block(to, static_cast<int>(2 * kBlock)));
  check(archive_write_set_bytes_in_last_block(to, 1));  // nothing stands behind what is packed
  check(archive_write_open(to, bytes_.get(), nullptr, append, nullptr));
}

void TarWriter::check(int status) {
  if (status != ARCHIVE_OK && failed_.empty()) failed_ = words_of(archive_.get());
}

void TarWriter::add(std::string_view path, FileTree::Kind kind, std::string_view text) {
  const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
  if (!entry) {
    failed_ = "no memory";
    return;
  }
  archive_entry_set_pathname(entry.get(), std::string(path).c_str());
  archive_entry_set_perm(entry.get(), kind == FileTree::Kind::folder ? 0755 : 0644);
  archive_entry_set_mtime(entry.get(), 0, 0);
  archive_entry_set_filetype(entry.get(), kind == FileTree::Kind::folder ? AE_IFDIR
                                          : kind == FileTree::Kind::link ? AE_IFLNK
                                                                         : AE_IFREG);
  if (kind == FileTree::Kind::link) {
    archive_entry_set_symlink(entry.get(), std::string(text).c_str());
  }
  const bool file = kind == FileTree::Kind::file;
  archive_entry_set_size(entry.get(), file ? static_cast<la_int64_t>(text.size()) : 0);
  check(archive_write_header(archive_.get(), entry.get()));
  if (file && archive_write_data(archive_.get(), text.data(), text.size()) !=
                  static_cast<la_ssize_t>(text.size())) {
    check(ARCHIVE_FATAL);
  }
}

Result<std::string> TarWriter::finish() {
  check(archive_write_close(archive_.get()));
  if (!failed_.empty()) return fail(Errc::system, fmt::format("a tar archive: {}", failed_));
  return std::move(*bytes_);
}

}  // namespace gdrx::topo
