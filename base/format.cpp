// SPDX-License-Identifier: Apache-2.0
// fmt, compiled here once: as headers alone it takes each file that formats a line 2.5 s longer to
// compile, and the distributions' library is a shared one, which a plugin inside somebody else's
// process must not need. For fmt 9; another version is used as headers
// (cmake/GdrxDependencies.cmake).
#include <fmt/format-inl.h>

namespace fmt::v9::detail {

template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal<float>(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal<double>(double) noexcept;

}  // namespace fmt::v9::detail
