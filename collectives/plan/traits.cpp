// SPDX-License-Identifier: Apache-2.0
#include "gdrx/traits.hpp"

#include <algorithm>
#include <array>

namespace gdrx::plan {
namespace {

// "gdrxAllReduce", and the name in it: "allReduce".
struct Names {
  constexpr explicit Names(std::string_view function) {
    for (const char letter : std::string_view("gdrx")) c_api[size++] = letter;
    for (const char letter : function) c_api[size++] = letter;
    for (std::size_t i = 0; i < function.size(); ++i) name[i] = function[i];
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
  }
  constexpr std::string_view of_function() const { return {c_api.data(), size}; }
  constexpr std::string_view of_collective() const { return {name.data(), size - 4}; }

  std::array<char, 32> c_api{};
  std::array<char, 32> name{};
  std::size_t size = 0;
};
constexpr std::array kNames{
#define GDRX_COLLECTIVE(value, Function, ...) Names(#Function),
#include "gdrx/collectives.def"
};

enum class Operator : std::uint8_t { no_op, sum, prefix };
enum class Root : std::uint8_t { no_root, at_root };

constexpr CollectiveTraits row(Collective value, Extent input, Extent output, Operator op,
                               Root root, Collective plans) {
  return {kNames[static_cast<std::size_t>(value)].of_collective(),
          input,
          output,
          op != Operator::no_op,
          root == Root::at_root,
          plans,
          op == Operator::prefix};
}
constexpr std::array kTraits{
#define GDRX_COLLECTIVE(value, Function, input, output, op, root, plans)          \
  row(Collective::value, Extent::input, Extent::output, Operator::op, Root::root, \
      Collective::plans),
#include "gdrx/collectives.def"
};
constexpr CollectiveTraits kNothing{"unknown collective"};

}  // namespace

const CollectiveTraits& traits_of(Collective collective) noexcept {
  const auto row = static_cast<std::size_t>(collective);  // a peer may have said it
  return row < kTraits.size() ? kTraits[row] : kNothing;
}

std::optional<Collective> collective_of(std::string_view name) noexcept {
  const auto small = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  for (std::size_t row = 0; row < kTraits.size(); ++row) {
    if (std::ranges::equal(kTraits[row].name, name, {}, small, small)) {
      return static_cast<Collective>(row);
    }
  }
  return std::nullopt;
}

std::string_view function_of(Collective collective) noexcept {
  const auto row = static_cast<std::size_t>(collective);
  return row < kNames.size() ? kNames[row].of_function() : kNothing.name;
}

}  // namespace gdrx::plan

namespace gdrx {

std::string_view to_string(Collective collective) noexcept {
  return plan::traits_of(collective).name;
}

}  // namespace gdrx
