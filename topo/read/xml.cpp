// SPDX-License-Identifier: Apache-2.0
#include "topo/read/xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <pugixml.hpp>

namespace gdrx::topo {
namespace {

// What it would skip is kept, so that it can be refused; a fragment may have several roots, and
// text beside them.
constexpr unsigned kFlags =
    pugi::parse_default | pugi::parse_fragment | pugi::parse_declaration | pugi::parse_doctype;
// Each begins with '<' and costs pugixml 64 bytes; an attribute has a '=' and costs 40.
constexpr std::size_t kMostMarks = 4 * kMaxXmlElements;

struct Writer : pugi::xml_writer {
  std::string text;
  void write(const void* data, std::size_t size) override {
    text.append(static_cast<const char*>(data), size);
  }
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class XmlReader {
 public:
  XmlReader(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Result<XmlDocument> read() {
    pugi::xml_document parsed;
    // Bytes are taken as they stand, whatever the file's first ones say.
    const auto result = parsed.load_buffer(text_.data(), text_.size(), kFlags, pugi::encoding_utf8);
    if (!result) return wrong(result.offset, why(result));
    GDRX_TRY(look_at_top(parsed));
    GDRX_TRY(look_at_entities());
    GDRX_TRY(take(parsed.document_element(), 0));
    Writer writer;
    parsed.document_element().print(writer, "", pugi::format_raw, pugi::encoding_utf8);
    document_.text = std::move(writer.text);
    return std::move(document_);
  }

 private:
  tl::unexpected<Error> wrong(std::ptrdiff_t offset, std::string_view why) const {
    const std::size_t before = std::min(static_cast<std::size_t>(offset), text_.size());
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(before);
    return fail(Errc::invalid_argument, fmt::format("{}: line {}: {}", source_,
                                                    1 + std::count(text_.begin(), end, '\n'), why));
  }

  static std::string_view why(const pugi::xml_parse_result& result) {
    constexpr std::pair<pugi::xml_parse_status, std::string_view> kReasons[] = {
        {pugi::status_end_element_mismatch,
         "an element is never closed, or closes what is not open"},
        {pugi::status_bad_comment, "a comment does not end"},
        {pugi::status_bad_pi, "a processing instruction does not end"},
        {pugi::status_bad_doctype, "the document type does not end"},
        {pugi::status_bad_cdata, "a declaration does not end"},
        {pugi::status_bad_attribute, "an attribute is broken: name=\"value\" is taken"},
        {pugi::status_bad_start_element, "a tag is broken or does not end"},
        {pugi::status_bad_end_element, "a tag is broken or does not end"},
        {pugi::status_out_of_memory, "no memory"}};
    for (const auto& [status, reason] : kReasons) {
      if (result.status == status) return reason;
    }
    return "this is not XML";
  }

  // pugixml leaves an entity that it does not know as text: a file that wants one means another
  // thing.
  Result<void> look_at_entities() const {
    constexpr std::string_view kKnown[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#"};
    for (std::size_t at = 0; (at = text_.find_first_of("&<", at)) != text_.npos; ++at) {
      const std::string_view rest = text_.substr(at);
      if (rest.starts_with("<!--")) {
        at = text_.find("-->", at);
        if (at == text_.npos) return {};  // of an attribute's value
      } else if (rest.front() == '&' &&
                 std::none_of(std::begin(kKnown), std::end(kKnown),
                              [&](std::string_view known) { return rest.starts_with(known); })) {
        return wrong(static_cast<std::ptrdiff_t>(at),
                     "an entity that is not one of the five is not taken");
      }
    }
    return {};
  }

  // What stands beside the root. One document type of hwloc's files names their DTD; one with a
  // body could define entities. hwloc's own parser loses memory over an encoding that it does not
  // know.
  Result<void> look_at_top(const pugi::xml_document& parsed) const {
    const pugi::xml_node root = parsed.document_element();
    bool after = false;
    for (const pugi::xml_node node : parsed.children()) {
      const auto refuse = [&](std::string_view why) { return wrong(node.offset_debug(), why); };
      const std::string_view value = node.value();
      if (node.type() == pugi::node_declaration && !known(node.attribute("encoding"))) {
        return refuse("an encoding other than UTF-8 is not read");
      }
      if (node.type() == pugi::node_doctype && after) {
        return refuse("a document type after the first element");
      }
      if (node.type() == pugi::node_doctype && value.find('[') != value.npos) {
        return refuse("a document type with declarations is not taken");
      }
      if (node.type() == pugi::node_pcdata) return refuse("this is not XML");
      if (node.type() == pugi::node_cdata) return refuse("CDATA is not taken");
      if (node.type() == pugi::node_element && after) return refuse("a second root element");
      after |= node == root;
    }
    if (!after) return wrong(0, "there is no element in it");
    return {};
  }

  // What is written anew says no encoding: it is UTF-8, of which ASCII is a part.
  bool known(const pugi::xml_attribute& encoding) const {
    std::string name = encoding.value();
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (name.empty() || name == "UTF-8") return true;
    const bool ascii = std::all_of(text_.begin(), text_.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    return ascii && (name == "US-ASCII" || name == "ISO-8859-1");
  }

  Result<void> take(const pugi::xml_node& node, std::size_t depth) {
    const auto refuse = [&](std::string_view why) { return wrong(node.offset_debug(), why); };
    if (depth == kMaxXmlDepth) return refuse("elements nest too deep");
    if (document_.elements.size() == kMaxXmlElements) return refuse("too many elements");
    XmlElement element;
    element.name = node.name();
    element.line = line_at(node.offset_debug());
    for (const pugi::xml_attribute attribute : node.attributes()) {
      if (element.attributes.size() == kMaxXmlAttributes) return refuse("too many attributes");
      const std::string_view key = attribute.name();
      const auto same = [&](const auto& other) { return other.first == key; };
      if (std::any_of(element.attributes.begin(), element.attributes.end(), same)) {
        return refuse(fmt::format("attribute {} is there twice", key));
      }
      element.attributes.emplace_back(key, attribute.value());
    }
    const std::size_t index = document_.elements.size();
    document_.elements.push_back(std::move(element));
    for (const pugi::xml_node child : node.children()) {
      if (child.type() == pugi::node_cdata) return refuse("CDATA is not taken");
      if (child.type() == pugi::node_doctype) return refuse("a document type within an element");
      if (child.type() != pugi::node_element) continue;
      document_.elements[index].children.push_back(document_.elements.size());
      GDRX_TRY(take(child, depth + 1));
    }
    return {};
  }

  // Elements come in the order of the text: counted on from the last one.
  std::size_t line_at(std::ptrdiff_t offset) {
    const auto end = std::max(counted_, std::min(static_cast<std::size_t>(offset), text_.size()));
    line_ += static_cast<std::size_t>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                   text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    counted_ = end;
    return line_;
  }

  std::string_view text_;
  std::string_view source_;
  std::size_t counted_ = 0;  // up to here line_ is known
  std::size_t line_ = 1;
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
  const auto refuse = [&](std::string_view why) {
    return fail(Errc::invalid_argument, fmt::format("{}: {}", source, why));
  };
  if (text.size() > kMaxXmlBytes)
    return refuse(fmt::format("larger than {} MiB", kMaxXmlBytes >> 20));
  if (std::all_of(text.begin(), text.end(), is_space)) return refuse("the file is empty");
  if (text.find('\0') != text.npos) return refuse("not a text file");
  for (const char mark : {'<', '='}) {
    if (static_cast<std::size_t>(std::count(text.begin(), text.end(), mark)) > kMostMarks) {
      return refuse("too many elements or attributes");
    }
  }
  return XmlReader(text, source).read();
}

}  // namespace gdrx::topo
