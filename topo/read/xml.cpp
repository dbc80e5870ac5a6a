// SPDX-License-Identifier: Apache-2.0
#include "topo/read/xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace gdrx::topo {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':';
}

class XmlReader {
 public:
  XmlReader(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Result<XmlDocument> read() {
    while (true) {
      GDRX_TRY(skip_text());
      if (at_ == text_.size()) break;
      if (starts("<?")) {
        GDRX_TRY(skip_instruction());
      } else if (starts("<!--")) {
        GDRX_TRY(skip_past("-->", "a comment"));
      } else if (starts("<!DOCTYPE")) {
        GDRX_TRY(skip_doctype());
      } else if (starts("<!")) {
        return wrong("a declaration is not taken");
      } else if (starts("</")) {
        GDRX_TRY(close());
      } else {
        GDRX_TRY(open());
      }
    }
    if (!open_.empty()) return wrong(fmt::format("<{}> is never closed", top().name));
    if (document_.elements.empty()) return wrong("there is no element in it");
    return std::move(document_);
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  XmlElement& top() { return document_.elements[open_.back()]; }

  tl::unexpected<Error> wrong(std::string_view why) const {
    const auto line =
        1 + std::count(text_.begin(),
                       text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())),
                       '\n');
    return fail(Errc::invalid_argument, fmt::format("{}: line {}: {}", source_, line, why));
  }

  // Of what is read now: counted on from where it was asked last.
  std::size_t line_at() {
    const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(counted_);
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<std::size_t>(std::count(begin, end, '\n'));
    counted_ = at_;
    return line_;
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  // Text between elements carries nothing here, but outside the root it is no XML.
  Result<void> skip_text() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find('<', at_), text_.size());
    const auto text = text_.substr(begin, at_ - begin);
    if (open_.empty() && !std::all_of(text.begin(), text.end(), is_space)) {
      at_ = begin;
      return wrong("this is not XML");
    }
    return {};
  }

  Result<void> skip_past(std::string_view end, std::string_view what) {
    const std::size_t found = text_.find(end, at_);
    if (found == text_.npos) return wrong(fmt::format("{} does not end", what));
    at_ = found + end.size();
    return {};
  }

  // Bytes are taken as they stand, so that other alphabets would be nonsense; hwloc's own parser
  // loses memory over an encoding that it does not know.
  Result<void> skip_instruction() {
    const std::size_t begin = at_;
    GDRX_TRY(skip_past("?>", "a processing instruction"));
    const std::string_view text = text_.substr(begin, at_ - begin);
    std::size_t at = text.find("encoding");
    if (at == text.npos) return {};
    at = text.find_first_not_of(" \t\r\n=", at + 8);
    std::string name;
    const char quote = at == text.npos ? '?' : text[at];
    for (++at; at < text.size() && text[at] != quote; ++at) {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(text[at])));
    }
    const bool quoted = quote == '"' || quote == '\'';
    if (quoted && (name == "UTF-8" || name == "US-ASCII" || name == "ISO-8859-1")) return {};
    at_ = begin;
    return wrong("an encoding other than UTF-8 is not read");
  }

  // hwloc's files name their DTD. One with a body could define entities: refused.
  Result<void> skip_doctype() {
    const std::size_t end = text_.find('>', at_);
    if (end == text_.npos) return wrong("the document type does not end");
    if (text_.substr(at_, end - at_).find('[') != text_.npos) {
      return wrong("a document type with declarations is not taken");
    }
    if (!document_.elements.empty()) return wrong("a document type after the first element");
    at_ = end + 1;
    return {};
  }

  Result<std::string> name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == begin) return wrong("a name is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<std::string> value() {
    if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
      return wrong("an attribute's value needs quotes");
    }
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == text_.npos) return wrong("an attribute's value does not end");
    std::string plain;
    while (at_ < end) {
      const char c = text_[at_];
      if (c == '<') return wrong("an attribute's value holds a '<'");
      if (c == '&') {
        plain += GDRX_TRY(entity(end));
      } else {
        plain += c;
        ++at_;
      }
    }
    at_ = end + 1;
    return plain;
  }

  Result<char> entity(std::size_t end) {
    const std::size_t stop = text_.find(';', at_);
    const std::string_view name =
        stop < end ? text_.substr(at_ + 1, stop - at_ - 1) : std::string_view();
    constexpr std::pair<std::string_view, char> kKnown[] = {
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, c] : kKnown) {
      if (name != known) continue;
      at_ = stop + 1;
      return c;
    }
    if (name.starts_with('#')) {
      const bool hex = name.starts_with("#x");
      const char* last = name.data() + name.size();
      unsigned code = 0;
      const auto [ptr, error] =
          std::from_chars(name.data() + (hex ? 2 : 1), last, code, hex ? 16 : 10);
      if (error == std::errc{} && ptr == last && code >= 9) {
        at_ = stop + 1;
        return code < 128 ? static_cast<char>(code) : '?';
      }
    }
    return wrong("an entity that is not one of the five is not taken");
  }

  Result<void> open() {
    ++at_;
    if (open_.empty() && !document_.elements.empty()) return wrong("a second root element");
    if (open_.size() == kMaxXmlDepth) return wrong("elements nest too deep");
    if (document_.elements.size() == kMaxXmlElements) return wrong("too many elements");
    XmlElement element;
    element.line = line_at();
    element.name = GDRX_TRY(name());
    while (true) {
      skip_space();
      if (at_ == text_.size()) return wrong(fmt::format("<{}> does not end", element.name));
      if (text_[at_] == '>' || starts("/>")) break;
      std::string key = GDRX_TRY(name());
      skip_space();
      if (at_ == text_.size() || text_[at_] != '=') return wrong("an attribute has no value");
      ++at_;
      skip_space();
      if (element.attributes.size() == kMaxXmlAttributes) return wrong("too many attributes");
      std::string plain = GDRX_TRY(value());
      if (!element[key].empty()) return wrong(fmt::format("attribute {} is there twice", key));
      element.attributes.emplace_back(std::move(key), std::move(plain));
    }
    const bool ends = text_[at_] == '/';
    at_ += ends ? 2 : 1;
    const std::size_t index = document_.elements.size();
    if (!open_.empty()) top().children.push_back(index);
    document_.elements.push_back(std::move(element));
    if (!ends) open_.push_back(index);
    return {};
  }

  Result<void> close() {
    at_ += 2;
    const std::string closed = GDRX_TRY(name());
    skip_space();
    if (at_ == text_.size() || text_[at_] != '>') return wrong("a closing tag does not end");
    if (open_.empty() || top().name != closed) {
      return wrong(fmt::format("</{}> closes what is not open", closed));
    }
    ++at_;
    open_.pop_back();
    return {};
  }

  std::string_view text_;
  std::string_view source_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;  // up to here line_ is known
  std::size_t line_ = 1;
  std::vector<std::size_t> open_;
  XmlDocument document_;
};

}  // namespace

std::string_view XmlElement::operator[](std::string_view attribute) const {
  for (const auto& [key, value] : attributes) {
    if (key == attribute) return value;
  }
  return {};
}

Result<XmlDocument> parse_xml(std::string_view text, std::string_view source) {
  if (text.size() > kMaxXmlBytes) {
    return fail(Errc::invalid_argument,
                fmt::format("{}: larger than {} MiB", source, kMaxXmlBytes >> 20));
  }
  if (std::all_of(text.begin(), text.end(), is_space)) {
    return fail(Errc::invalid_argument, fmt::format("{}: the file is empty", source));
  }
  if (text.find('\0') != text.npos) {
    return fail(Errc::invalid_argument, fmt::format("{}: not a text file", source));
  }
  return XmlReader(text, source).read();
}

}  // namespace gdrx::topo
