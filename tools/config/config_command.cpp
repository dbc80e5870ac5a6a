// SPDX-License-Identifier: Apache-2.0
// gdrx config: the one table of variables, what is in effect here, and where it came from.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/thread_cpus.hpp"
#include "gdrx/config.hpp"
#include "tools/commands.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kConfigExamples =
    "Examples:\n"
    "  gdrx config                            every variable, its value here and where it is from\n"
    "  GDRX_SLICE=1M gdrx config              as a program started so would see it\n"
    "  gdrx config --format json              the same for scripts\n"
    "Exit status: 0, or 2 if a variable has a value that is not allowed.\n";

bool set_in(const Environment& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(), [&](std::string_view entry) {
    return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
  });
}

struct Row {
  const Variable* variable;
  std::string standard;  // the default
  std::string value;     // in effect
  bool from_environment;
};

std::vector<Row> rows_of(const Config& config, const Environment& environment) {
  std::vector<Row> rows;
  for (const Variable& variable : config_table()) {
    rows.push_back({&variable, variable.print(Config{}), variable.print(config),
                    set_in(environment, variable.env)});
  }
  return rows;
}

std::string shown(const std::string& value) { return value.empty() ? "(empty)" : value; }

void print_text(const std::vector<Row>& rows) {
  std::size_t name = 0;
  std::size_t standard = 7;
  std::size_t value = 5;
  for (const Row& row : rows) {
    name = std::max(name, row.variable->env.size());
    standard = std::max(standard, shown(row.standard).size());
    value = std::max(value, shown(row.value).size());
  }
  const auto line = [&](auto&&... cells) {
    fmt::print("{:<{}}  {:<{}}  {:<{}}  {:<11}  {}\n", cells...);
  };
  line("NAME", name, "DEFAULT", standard, "VALUE", value, "FROM", "MEANING");
  for (const Row& row : rows) {
    const std::string unit =
        row.variable->unit.empty() ? "" : fmt::format(" [{}]", row.variable->unit);
    line(row.variable->env, name, shown(row.standard), standard, shown(row.value), value,
         row.from_environment ? "environment" : "default", std::string(row.variable->help) + unit);
  }
}

void print_rows_as_json(const std::vector<Row>& rows, const std::vector<std::string>& warnings) {
  auto variables = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    variables.push_back({{"name", row.variable->env},
                         {"default", row.standard},
                         {"value", row.value},
                         {"from", row.from_environment ? "environment" : "default"},
                         {"unit", row.variable->unit},
                         {"help", row.variable->help}});
  }
  const nlohmann::ordered_json all{{"variables", variables}, {"warnings", warnings}};
  // What the environment holds need not be UTF-8.
  const std::string text =
      all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  fmt::print("{}\n", text);
}

void run(const std::string& format) {
  const Environment environment = process_environment();
  const LoadedConfig loaded = value_or_fail(load_config(environment));
  const auto may = check_thread_cpus(loaded.config.thread_cpus);  // of this host: others have more
  for (const std::string& warning : loaded.warnings) {
    fmt::print(stderr, "gdrx: warning: {}\n", warning);
  }
  const std::vector<Row> rows = rows_of(loaded.config, environment);
  format == "json" ? print_rows_as_json(rows, loaded.warnings) : print_text(rows);
  if (!may) throw Failure{kBadUsage, std::string(may.error().what)};
}

}  // namespace

void add_config(CLI::App& app) {
  auto* command = app.add_subcommand("config", "every GDRX_* variable: default, value, where from");
  auto format = std::make_shared<std::string>("text");
  command->add_option("--format", *format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(kConfigExamples);
  command->callback([format] { run(*format); });
}

}  // namespace gdrx::tools
