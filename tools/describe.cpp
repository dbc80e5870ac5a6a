// SPDX-License-Identifier: Apache-2.0
#include "tools/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/help.hpp"

namespace gdrx::tools {
namespace {

using Json = nlohmann::ordered_json;

// "{text,json}", as CLI::IsMember describes itself and takes_words() names its validator.
std::vector<std::string> fixed_words(const std::string& set) {
  if (set.size() < 2 || set.front() != '{' || set.back() != '}') return {};
  return CLI::detail::split(set.substr(1, set.size() - 2), ',');
}

std::vector<std::string> fixed_words(CLI::Option& option) {
  for (int at = 0;; ++at) {
    try {
      const CLI::Validator& validator = *option.get_validator(at);
      for (const std::string& set : {validator.get_name(), validator.get_description()}) {
        if (auto words = fixed_words(set); !words.empty()) return words;
      }
    } catch (const CLI::OptionNotFound&) {  // the only way to learn how many there are
      return {};
    }
  }
}

Json described(CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return {{"names", names},
          {"positional", option.get_positional() ? option.get_name(true) : ""},
          {"takes_value", option.get_type_size_max() > 0 && option.get_expected_max() > 0},
          {"values", fixed_words(option)},
          {"default", option.get_default_str()},
          {"required", option.get_required()},
          {"text", option.get_description()}};
}

Json described(const CLI::App& app) {
  Json options = Json::array();
  for (const CLI::Option* option : app.get_options()) {
    // CLI11 has no validators of a constant option; none is changed here.
    if (!option->get_group().empty())
      options.push_back(described(const_cast<CLI::Option&>(*option)));
  }
  Json commands = Json::array();
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.push_back(described(*command));
  }
  return {{"name", app.get_name()},
          {"text", app.get_description()},
          {"footer", help_footer(app.get_footer())},
          {"other_words", app.get_prefix_command()},
          {"options", options},
          {"commands", commands}};
}

}  // namespace

void takes_words(CLI::Option* option, const std::vector<std::string>& words) {
  const auto accepts = [](std::string&) { return std::string(); };
  option->check(CLI::Validator(accepts, "", fmt::format("{{{}}}", fmt::join(words, ","))));
}

std::string options_of(const CLI::App& app) { return described(app).dump(2) + "\n"; }

}  // namespace gdrx::tools
