// SPDX-License-Identifier: Apache-2.0
// Another process's page, read and written out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gdrx/result.hpp"
#include "plugin/stats/page.hpp"

namespace gdrx::stats {

/// A mapping, read only. Errc::unsupported if the process has no page or one of another version.
Result<std::shared_ptr<const Page>> open_page(const std::string& path);

/// Prometheus' text format, version 0.0.4.
std::string prometheus(const Page& page);

/// Processes that have a page. `folder` is /dev/shm but in tests.
std::vector<int> processes(const std::string& folder);

}  // namespace gdrx::stats
