// SPDX-License-Identifier: Apache-2.0
// Lists of CPUs as the kernel writes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gdrx {

/// A CPU's number is below this.
inline constexpr int kMostCpus = 65536;

/// "0-3,8" in ascending order, each CPU once. What does not parse is left out, and so are numbers
/// from 65536 on, so that a broken file costs nothing.
/// Of a longer list than `most` the rest is left out.
std::vector<int> cpus_of_list(std::string_view text, std::size_t most = std::size_t{1} << 17);
/// Whether all of `text` is numbers and ascending ranges, below 65536.
bool is_cpu_list(std::string_view text);
/// More threads than a core of any processor has: what a file tells beyond them is not read.
inline constexpr std::size_t kMostOfCore = 128;
/// The list of CPUs in ascending order: "0-3,8".
std::string list_of_cpus(const std::vector<int>& cpus);

}  // namespace gdrx
