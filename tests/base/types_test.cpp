// SPDX-License-Identifier: Apache-2.0
#include "gdrx/types.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <fstream>
#include <sstream>

namespace gdrx {
namespace {

template <class T>
struct Pair {
  T value;
  int index;
};

TEST(Types, HaveTheSizeOfTheLanguages) {
  EXPECT_EQ(size_of(DataType::uint16), 2u);
  EXPECT_EQ(size_of(DataType::boolean), sizeof(bool));
  EXPECT_EQ(size_of(DataType::complex64), sizeof(std::complex<float>));
  EXPECT_EQ(size_of(DataType::complex128), sizeof(std::complex<double>));
  EXPECT_EQ(size_of(DataType::long_double), sizeof(long double));
  EXPECT_EQ(size_of(DataType::float_int), sizeof(Pair<float>));
  EXPECT_EQ(size_of(DataType::double_int), sizeof(Pair<double>));
  EXPECT_EQ(size_of(DataType::long_int), sizeof(Pair<long>));
  EXPECT_EQ(size_of(DataType::int_int), sizeof(Pair<int>));
  EXPECT_EQ(size_of(DataType::short_int), sizeof(Pair<short>));
  EXPECT_EQ(size_of(DataType::long_double_int), sizeof(Pair<long double>));
}

TEST(Types, AndOperatorsAreFoundByTheirNames) {
  for (std::size_t i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(parse_data_type(to_string(type)), type);
  }
  for (std::size_t i = 0; i < kReduceOpCount; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    EXPECT_EQ(parse_reduce_op(to_string(op)).has_value(), i < kNamedOpCount) << to_string(op);
  }
}

// A row a class: "complex   sum prod avg premulsum user".
TEST(Types, TakeTheOperatorsThatTheHeaderSays) {
  std::ifstream header(GDRX_HEADER);
  std::stringstream text;
  text << header.rdbuf();
  for (const auto& [name, type] :
       {std::pair("integers (int8 to uint64)", DataType::int16),
        std::pair("floats (half to longdouble)", DataType::float32),
        std::pair("complex", DataType::complex64), std::pair("bool", DataType::boolean),
        std::pair("byte", DataType::byte), std::pair("pairs", DataType::short_int)}) {
    std::string operators = operators_of(type);
    std::erase(operators, ',');
    std::string row = std::string(" *   ") + name;
    row.resize(33, ' ');
    EXPECT_NE(text.str().find(row + operators + "\n"), std::string::npos) << row << operators;
  }
}

}  // namespace
}  // namespace gdrx
