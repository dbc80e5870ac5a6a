// SPDX-License-Identifier: Apache-2.0
// Another process's page, read and written out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrx/result.hpp"
#include "plugin/stats/page.hpp"

namespace gdrx::stats {

/// A copy. Errc::unsupported if the process has no page, one of another version, or one that a user
/// other than the reader and root owns.
Result<std::shared_ptr<const Page>> open_page(const std::string& path);

/// Prometheus' text format, version 0.0.4.
std::string prometheus(const Page& page);

/// True while the process that made the page does.
bool lives(const std::string& path);

/// Processes that have a page, as "1234", and "1234.1" for another PID namespace's. `folder` is
/// /dev/shm but in tests.
std::vector<std::string> processes(const std::string& folder);
/// The numbers in such a name.
std::optional<std::pair<int, int>> process_of(std::string_view text);

}  // namespace gdrx::stats
