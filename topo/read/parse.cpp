// SPDX-License-Identifier: Apache-2.0
// What a text is.
#include <fmt/format.h>

#include <algorithm>

#include "topo/read/field_text.hpp"
#include "topo/read/xml.hpp"

namespace gdrx::topo {

Result<Topology> parse(std::string_view text, std::string source) {
  const std::string_view begin = trim(text.substr(0, 4096));
  if (!begin.empty() && begin.front() != '<') {
    const bool binary = std::any_of(begin.begin(), begin.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
    });
    if (binary) {
      return fail(Errc::invalid_argument,
                  source + ": neither text nor a snapshot (a tar archive, plain or by gzip)");
    }
    const auto cluster = parse_cluster(trim(text));
    if (cluster) return cluster->host;
    return fail(cluster.error().code, fmt::format("{}: {}", source, cluster.error().what));
  }
  const XmlDocument document = GDRX_TRY(parse_xml(text, source));
  const std::string& root = document.root().name;
  if (root == "topology") return parse_hwloc_xml(text, std::move(source));
  if (root == "system") return parse_nccl_xml(text, std::move(source));
  return fail(
      Errc::invalid_argument,
      fmt::format("{}: <{}> is neither hwloc's <topology> nor NCCL's <system>", source, root));
}

}  // namespace gdrx::topo
