// SPDX-License-Identifier: Apache-2.0
// The launchers of MPI, and how each is told what its ranks have preloaded. Nothing here is
// started.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gdrx::tools {

/// MPIs whose programs and launchers are alike.
struct Family {
  std::string_view mpis;
  std::string_view object;                  // of gdrx, for its programs
  std::string_view package;                 // of Debian, that has the object
  std::vector<std::string_view> launchers;  // by what names
  std::vector<std::string_view> versions;   // any of these is in what `--version` prints; none:
                                            // its programs have another family's launcher
  std::vector<std::string_view>
      libraries;            // its programs are linked to one of them, some to Fortran's alone
  std::string_view option;  // before a variable for every rank
  bool value_apart;         // NAME VALUE, else NAME, or NAME=VALUE
};
const std::vector<Family>& families();

/// By what a launcher prints of its version. Null: nobody we know.
const Family* family_of_version(std::string_view printed);
/// By the library that a program names. Null: nobody that gdrx serves.
const Family* family_of_library(std::string_view library);

using Variables = std::vector<std::pair<std::string, std::string>>;

/// The launcher's words, with `object` preloaded before what they preload, and that before
/// `others`, if there are some; and the variables for every rank.
std::vector<std::string> words_for(const Family& family, std::vector<std::string> words,
                                   const std::string& object, const std::string& others,
                                   const Variables& variables);

}  // namespace gdrx::tools
