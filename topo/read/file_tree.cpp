// SPDX-License-Identifier: Apache-2.0
#include "topo/read/file_tree.hpp"
#include "base/printable.hpp"

#include <fmt/format.h>

namespace gdrx::topo {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kLongestLink = 4096;
constexpr int kMostLinks = 40;  // Linux's own limit

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
  }
  return parts;
}

// For messages: what an archive says is not printed as it is.
std::string shown(std::string_view path) { return printable_ascii(path.substr(0, 120)); }

}  // namespace

Result<void> FileTree::add(std::string_view path, Kind kind, std::string text) {
  const auto bad = [&](const char* why) {
    return fail(Errc::invalid_argument, fmt::format("'{}' {}", shown(path), why));
  };
  if (path.find('\0') != path.npos) return bad("has a zero byte in its name");
  if (path.starts_with('/')) return bad("is an absolute path");
  const auto parts = components(path);
  if (parts.size() > kDeepest) return bad("is too deep");
  if (kind == Kind::link && text.size() > kLongestLink) return bad("leads nowhere: too long");
  for (const auto part : parts) {
    if (part == "..") return bad("leads out of the archive");
  }
  if (parts.empty()) return kind == Kind::folder ? Result<void>() : bad("is no name of a file");
  std::size_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (nodes_[at].kind != Kind::folder) return bad("goes through a file or a link");
    const auto known = nodes_[at].children.find(parts[i]);
    if (known != nodes_[at].children.end()) {
      at = known->second;
      const bool again = kind == Kind::folder && nodes_[at].kind == Kind::folder;
      if (last && !again) return bad("is there twice");
      continue;
    }
    nodes_[at].children.emplace(std::string(parts[i]), nodes_.size());
    at = nodes_.size();
    nodes_.emplace_back();
    if (last) {
      nodes_[at].kind = kind;
      nodes_[at].text = std::move(text);
    }
  }
  return {};
}

std::optional<std::size_t> FileTree::find(std::string_view path, bool follow_last) const {
  std::vector<std::size_t> way{0};  // folders from the root to where we are
  std::vector<std::string> todo;    // reversed
  const auto push = [&](std::string_view text) {
    const auto parts = components(text);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) todo.emplace_back(*part);
  };
  push(path);
  int links = 0;
  while (!todo.empty()) {
    const std::string part = std::move(todo.back());
    todo.pop_back();
    if (part == "..") {
      if (way.size() > 1) way.pop_back();  // as the kernel does at its root
      continue;
    }
    const auto& children = nodes_[way.back()].children;
    const auto child = children.find(part);
    if (child == children.end()) return std::nullopt;
    const Node& node = nodes_[child->second];
    if (node.kind == Kind::link && (follow_last || !todo.empty())) {
      if (++links > kMostLinks || todo.size() > 4096) return std::nullopt;
      if (node.text.starts_with('/')) way.resize(1);
      push(node.text);
      continue;
    }
    way.push_back(child->second);
  }
  return way.back();
}

std::string FileTree::read(std::string_view path) const {
  const auto at = find(path, true);
  return at && nodes_[*at].kind == Kind::file ? nodes_[*at].text : std::string();
}

std::vector<std::string> FileTree::list(std::string_view path) const {
  std::vector<std::string> names;
  if (const auto at = find(path, true)) {
    for (const auto& [name, child] : nodes_[*at].children) names.push_back(name);
  }
  return names;
}

std::string FileTree::link(std::string_view path) const {
  const auto at = find(path, false);
  return at && nodes_[*at].kind == Kind::link ? nodes_[*at].text : std::string();
}

bool FileTree::exists(std::string_view path) const { return find(path, true).has_value(); }

}  // namespace gdrx::topo
