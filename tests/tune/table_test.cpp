// SPDX-License-Identifier: Apache-2.0
#include "collectives/tune/tune_table.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace gdrx::tune {
namespace {

using plan::Algorithm;

Table sample() {
  Table table;
  table.platform = {"AMD EPYC \"Zen\"", 2, "NVIDIA H200"};
  table.curves.push_back({"shm", Algorithm::one_shot, 2, 1, {{8, 1.25}, {4096, 3.5}, {65536, 30}}});
  table.curves.push_back({"ucx", Algorithm::halving_doubling, 4, 2, {{8, 0.1}}});
  return table;
}

TEST(TuningTable, ComesBackFromJsonAsItWas) {
  const auto back = from_json(to_json(sample()));
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(*back, sample());
  EXPECT_EQ(*from_json(to_json(Table{{"x", 1, ""}, {}})), (Table{{"x", 1, ""}, {}}));
}

TEST(TuningTable, TimesBetweenSizesLieOnALineAndThereAreNoneOutside) {
  const std::array<Point, 3> points{{{8, 1}, {16, 3}, {32, 4}}};
  EXPECT_EQ(time_of(points, 8), 1);
  EXPECT_EQ(time_of(points, 12), 2);
  EXPECT_EQ(time_of(points, 16), 3);
  EXPECT_EQ(time_of(points, 24), 3.5);
  EXPECT_EQ(time_of(points, 32), 4);
  EXPECT_FALSE(time_of(points, 7));
  EXPECT_FALSE(time_of(points, 33));
  EXPECT_FALSE(time_of({}, 8));
}

TEST(TuningTable, FindsTheCurveOfTheWayAndThePlaceAlone) {
  const auto here = curves_at(sample(), 2, 1);
  EXPECT_EQ(find(here, "shm", Algorithm::one_shot).size(), 3U);
  EXPECT_TRUE(find(here, "ucx", Algorithm::one_shot).empty());
  EXPECT_TRUE(find(here, "shm", Algorithm::two_shot).empty());
  EXPECT_TRUE(curves_at(sample(), 2, 2).empty());
  EXPECT_TRUE(curves_at(sample(), 3, 1).empty());
}

struct Corrupt {
  const char* from;
  const char* to;
  const char* says;
};

class CorruptTable : public testing::TestWithParam<Corrupt> {};

TEST_P(CorruptTable, IsRefusedWithOneLineThatSaysWhere) {
  std::string text = to_json(sample());
  const auto at = text.find(GetParam().from);
  ASSERT_NE(at, text.npos) << text;
  text.replace(at, std::string(GetParam().from).size(), GetParam().to);
  const auto read = from_json(text);
  ASSERT_FALSE(read) << text;
  EXPECT_EQ(read.error().what.find('\n'), std::string::npos);
  EXPECT_EQ(read.error().what.rfind("tuning table: ", 0), 0U) << read.error().what;
  EXPECT_NE(read.error().what.find(GetParam().says), std::string::npos) << read.error().what;
}

INSTANTIATE_TEST_SUITE_P(
    Of, CorruptTable,
    testing::Values(
        Corrupt{"{\"gdrx_tune\": 1", "{\"gdrx_tune\": 2", "'gdrx_tune' is not 1"},
        Corrupt{"\"gdrx_tune\": 1,", "", "the key 'gdrx_tune' is missing"},
        Corrupt{"\"gdrx_tune\": 1,", "\"gdrx_tune\": 1, \"x\\ny\": 1,", "unknown key 'x?y'"},
        Corrupt{"\"gdrx_tune\": 1,", "\"gdrx_tune\": 1, \"gdrx_tune\": 1,", "stands twice"},
        Corrupt{"\"cpus\":2", "\"cpus\":0", "'cpus' takes a whole number"},
        Corrupt{"\"cpus\":2", "\"cpus\":2.5", "'cpus' takes a whole number"},
        Corrupt{"\"gpu\":\"NVIDIA H200\"", "\"gpu\":7", "'gpu' takes printable text"},
        Corrupt{"NVIDIA H200", "\\u0007", "'gpu' takes printable text"},
        Corrupt{"one-shot", "one-shoot", "allreduce 0: there is no algorithm 'one-shoot'"},
        Corrupt{"\"ranks\": 4", "\"ranks\": -4", "allreduce 1: 'ranks'"},
        Corrupt{"\"ranks\": 4", "\"ranks\": 100000", "allreduce 1: 'ranks'"},
        Corrupt{"\"hosts\": 2", "\"hosts\": 5",
                "allreduce 1: 'hosts' takes a whole number from 1 to 4"},
        Corrupt{"[8,1.25]", "[8,-1.25]", "allreduce 0, point 0: -1.25 us is no time"},
        Corrupt{"[8,1.25]", "[8,0]", "is no time"}, Corrupt{"[8,1.25]", "[8,1e300]", "is no time"},
        Corrupt{"[8,1.25]", "[8,1e999]", "this is not JSON"},
        Corrupt{"[8,1.25]", "[8,null]", "point 0 is not [bytes, microseconds]"},
        Corrupt{"[8,1.25]", "[8]", "point 0 is not [bytes, microseconds]"},
        Corrupt{"[8,1.25]", "[18446744073709551615,1.25]", "point 0 is not [bytes"},
        Corrupt{"[4096,3.5]", "[8,3.5]", "point 1: 8 bytes do not follow 8"},
        Corrupt{"[[8,0.1]]", "[]", "'us' takes 1 to 128 points"},
        Corrupt{"[[8,0.1]]", "[[[[[[[[[8]]]]]]]]]", "nested too deeply"},
        Corrupt{"\"ucx\", \"algorithm\": \"halving-doubling\", \"ranks\": 4, \"hosts\": 2",
                "\"shm\", \"algorithm\": \"one-shot\", \"ranks\": 2, \"hosts\": 1",
                "allreduce 1 is there twice"},
        Corrupt{"]}\n", "]", "byte "}));

TEST(TuningTable, EveryShorterOneIsRefused) {
  const std::string whole = to_json(sample());
  const auto end = whole.find_last_of('}');
  for (std::size_t length = 0; length <= end; ++length) {
    EXPECT_FALSE(from_json(std::string_view(whole).substr(0, length))) << length;
  }
}

TEST(TuningTable, EveryByteMayBeAnotherWithoutHarm) {
  const std::string whole = to_json(sample());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char other : {'\0', '"', '[', '}', '9', '-', '\xff'}) {
      std::string text = whole;
      text[at] = other;
      const auto read = from_json(text);
      if (read) {
        EXPECT_EQ(*from_json(to_json(*read)), *read);
      } else {
        EXPECT_EQ(read.error().what.find('\n'), std::string::npos);
      }
    }
  }
}

TEST(TuningTable, OfTooManyPointsOrCurvesIsRefused) {
  Table many{{"x", 1, ""}, {}};
  many.curves.push_back({"shm", Algorithm::ring, 2, 1, {}});
  for (Bytes i = 1; i <= 129; ++i) many.curves[0].points.push_back({i, 1});
  EXPECT_FALSE(from_json(to_json(many)));
  many.curves[0].points.pop_back();
  EXPECT_TRUE(from_json(to_json(many)));
  EXPECT_FALSE(from_json(std::string(kMostText + 1, ' ')));
}

class TableFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = testing::TempDir() + "gdrx_tune_" + std::to_string(getpid());
};

TEST_F(TableFile, IsLoadedAndItsNumberFollowsItsText) {
  const std::string name = folder_ + "/t.json";
  std::ofstream(name) << to_json(sample());
  const auto first = load(name);
  ASSERT_TRUE(first) << first.error().what;
  EXPECT_EQ(first->table, sample());
  EXPECT_EQ(load(name)->fingerprint, first->fingerprint);
  std::ofstream(name, std::ios::app) << ' ';
  EXPECT_NE(load(name)->fingerprint, first->fingerprint);
}

TEST_F(TableFile, ThatIsNoneIsNamed) {
  const auto says = [](const std::string& file, const std::string& word) {
    const auto read = load(file);
    return !read && describe(read.error()).find(file) != std::string::npos &&
           describe(read.error()).find(word) != std::string::npos;
  };
  EXPECT_TRUE(says(folder_ + "/none", "open"));
  EXPECT_TRUE(says(folder_, "not a file"));
  EXPECT_TRUE(says("/dev/zero", "not a file"));
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_TRUE(says(folder_ + "/fifo", "not a file"));
  std::ofstream(folder_ + "/text") << "hello";
  EXPECT_TRUE(says(folder_ + "/text", "byte 1: this is not JSON"));
  std::ofstream(folder_ + "/large") << std::string(kMostText + 1, '1');
  EXPECT_TRUE(says(folder_ + "/large", "larger than"));
}

TEST(KnownTables, AreAllRightAndFoundByTheirPlatform) {
  for (const std::string_view text : known_texts()) {
    const auto table = from_json(text);
    ASSERT_TRUE(table) << table.error().what;
    EXPECT_FALSE(table->curves.empty());
    const Table* found = known(table->platform);
    ASSERT_NE(found, nullptr) << table->platform.cpu << table->platform.gpu;
    EXPECT_EQ(*found, *table);
  }
  EXPECT_EQ(known({"no such CPU", 3, "no such GPU"}), nullptr);
  EXPECT_EQ(known({}), nullptr);
}

}  // namespace
}  // namespace gdrx::tune
