// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/transports.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

namespace gdrx::ucx {
namespace {

std::vector<std::string> items_of(std::string_view tls) {
  std::vector<std::string> items;
  std::istringstream text{std::string(tls)};
  for (std::string item; std::getline(text, item, ',');) {
    std::erase(item, ' ');
    if (!item.empty()) items.push_back(item);
  }
  return items;
}

// "\\tcp" is UCX's word for that transport and none that it brings along.
bool is_tcp(const std::string& item) { return item == "tcp" || item == "\\tcp"; }

}  // namespace

bool names_tcp(std::string_view tls) {
  const std::vector<std::string> items = items_of(tls);
  return std::any_of(items.begin(), items.end(), is_tcp);
}

Result<std::string> without_tcp(std::string_view tls) {
  if (tls.starts_with('^')) return std::string(tls) + ",tcp";
  std::string kept;
  for (const std::string& item : items_of(tls)) {
    if (item == "all") return std::string("^tcp");
    if (!is_tcp(item)) kept += (kept.empty() ? "" : ",") + item;
  }
  if (kept.empty() && !items_of(tls).empty()) {
    return fail(Errc::unsupported,
                "UCX_TLS=" + std::string(tls) + " leaves UCX only TCP, which gdrx does not open");
  }
  return kept.empty() ? std::string("^tcp") : kept;
}

}  // namespace gdrx::ucx
