// SPDX-License-Identifier: Apache-2.0
// Elements and attributes of small XML files, read by pugixml. No document type with a body, no
// other alphabets, bounded in every direction: such files come from anywhere.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::topo {

inline constexpr std::size_t kMaxXmlBytes = 64u << 20;
inline constexpr std::size_t kMaxXmlElements = 1'000'000;
inline constexpr std::size_t kMaxXmlDepth = 256;
inline constexpr std::size_t kMaxXmlAttributes = 64;

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::size_t line = 0;
  std::vector<std::size_t> children;  // indices of XmlDocument::elements
  std::string_view operator[](std::string_view attribute) const;  // empty where there is none
};

struct XmlDocument {
  std::vector<XmlElement> elements;  // the root is first
  /// The same document written anew, without comments and declarations: what another parser is
  /// given, which then sees no more than what was looked at here.
  std::string text;
  const XmlElement& root() const { return elements.front(); }
};

/// The error says the line. `source` is the name to show.
Result<XmlDocument> parse_xml(std::string_view text, std::string_view source);

}  // namespace gdrx::topo
