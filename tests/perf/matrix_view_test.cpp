// SPDX-License-Identifier: Apache-2.0
// A matrix as text, as JSON, and read back from files that anybody may have written.
#include "tools/perf/matrix_view.hpp"

#include <gtest/gtest.h>

namespace gdrx::perf {
namespace {

MatrixReport report_of(std::size_t hosts) {
  MatrixReport report;
  report.nics = {""};
  report.bytes = 1 << 20;
  for (std::size_t i = 0; i < hosts; ++i) report.hosts.push_back("n" + std::to_string(i));
  for (std::size_t a = 0; a < hosts; ++a) {
    for (std::size_t b = 0; b < hosts; ++b) {
      if (a != b) report.pairs.push_back({a, b, "", 97.5, 2.25, ""});
    }
  }
  return report;
}

std::string file_with(const std::string& hosts, const std::string& pairs) {
  return R"({"schema":1,"matrix":"write_bw","hosts":[)" + hosts + R"(],"pairs":[)" + pairs + "]}";
}

TEST(MatrixJson, ComesBack) {
  MatrixReport report = report_of(3);
  report.pairs[1].problem = "no way";
  const auto read = read_matrix(matrix_json(report), "f");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->hosts, report.hosts);
  EXPECT_DOUBLE_EQ(*read->of(0, 1), 97.5);
  EXPECT_DOUBLE_EQ(*read->of(0, 2), 0);
  EXPECT_FALSE(read->of(1, 1));
}

TEST(MatrixJson, OfSeveralNicsHasTheSlowest) {
  MatrixReport report = report_of(2);
  report.nics = {"", "mlx5_1"};
  report.pairs.push_back({0, 1, "mlx5_1", 40, 2, ""});
  EXPECT_DOUBLE_EQ(*read_matrix(matrix_json(report), "f")->of(0, 1), 40);
  const std::string second = "mlx5_1";
  EXPECT_FALSE(host_matrix(report, &second).of(1, 0));
}

TEST(MatrixJson, ThatIsNoneIsOneLineOfError) {
  const std::string two = R"("a","b")";
  const std::string way = R"({"from":"a","to":"b","gigabits":1})";
  const std::string deep(100000, '[');
  for (const auto& [bad, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "no JSON"},
           {"x", "no JSON"},
           {"[]", "none of gdrx perf"},
           {"{}", "none of gdrx perf"},
           {deep, "none of gdrx perf"},
           {R"({"schema":2,"matrix":"write_bw"})", "schema is not 1"},
           {file_with("", ""), "no hosts"},
           {file_with(R"("a","a")", ""), "a is there twice"},
           {file_with(R"("a\nb")", ""), "'a b' is no host"},
           {file_with(R"("-oProxy")", ""), "'-oProxy' is no host"},
           {file_with(R"("a;b")", ""), "'a;b' is no host"},
           {file_with(R"("a:")", ""), "'a:' is no host"},
           {file_with(R"("a:b")", ""), "'a:b' is no host"},
           {file_with(R"(":2")", ""), "':2' is no host"},
           {file_with(R"("")", ""), "'' is no host"},
           {file_with("1", ""), "'' is no host"},
           {file_with('"' + std::string(300, 'a') + '"', ""), "is no host's name"},
           {file_with(two, "1"), "a pair is no object"},
           {file_with(two, R"({"from":"a","to":"c","gigabits":1})"), "a pair is of 'c'"},
           {file_with(two, R"({"from":"a","to":"a","gigabits":1})"), "a host to itself"},
           {file_with(two, R"({"from":"a","to":1,"gigabits":1})"), "a pair is of ''"},
           {file_with(two, way + "," + way), "a to b is there twice"},
           {file_with(two, R"({"from":"a","to":"b"})"), "no gigabits, and no problem"},
           {file_with(two, R"({"from":"a","to":"b","gigabits":"1"})"),
            "no gigabits, and no problem"},
           {file_with(two, R"({"from":"a","to":"b","gigabits":null})"),
            "no gigabits, and no problem"},
           {file_with(two, R"({"from":"a","to":"b","gigabits":NaN})"), "no JSON"},
           {file_with(two, R"({"from":"a","to":"b","gigabits":-1})"), "-1 Gb/s cannot be"},
           {file_with(two, R"({"from":"a","to":"b","gigabits":1e30})"), "Gb/s cannot be"},
           {file_with(two, R"({"from":"a","to":"b","gigabits":1e999})"), "no JSON"},
       }) {
    const auto read = read_matrix(bad, "the\nfile");
    ASSERT_FALSE(read) << bad.substr(0, 200);
    EXPECT_EQ(read.error().what.find('\n'), std::string::npos);
    EXPECT_NE(read.error().what.find(why), std::string::npos) << bad << read.error().what;
    EXPECT_TRUE(read.error().what.starts_with("the file: ")) << read.error().what;
  }
}

TEST(MatrixJson, HasAPairALineAndNamesOfNoHost) {
  MatrixReport report = report_of(3);
  report.hosts[2] = "n0:2";
  const std::string text = matrix_json(report);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6 + 2) << text;
  ASSERT_TRUE(read_matrix(text, "f"));
  EXPECT_EQ(read_matrix(text, "f")->hosts[2], "n0:2");
  EXPECT_NE(matrix_text(report).find("or a name that is no plain word: n0:2\n"), std::string::npos)
      << matrix_text(report);
}

TEST(MatrixJson, TakesAZeroForAFailureAndWhatLacksForNotMeasured) {
  const auto read =
      read_matrix(file_with(R"("a","b","c")", R"({"from":"a","to":"b","gigabits":0})"), "f");
  ASSERT_TRUE(read);
  EXPECT_DOUBLE_EQ(*read->of(0, 1), 0);
  EXPECT_FALSE(read->of(0, 2));
}

TEST(MatrixText, MarksWhatIsSlowAndNamesWhatFailed) {
  MatrixReport report = report_of(4);
  report.pairs[1].gigabits = 41;
  report.pairs[5].problem = "no\x1b[1m way";
  const std::string text = matrix_text(report);
  EXPECT_NE(text.find("41*"), std::string::npos) << text;
  EXPECT_NE(text.find("n0 to n2: 41 of 97.5 Gb/s"), std::string::npos) << text;
  EXPECT_NE(text.find("n1 to n3: no [1m way"), std::string::npos) << text;
  EXPECT_NE(matrix_text(report_of(2)).find("no link is slow"), std::string::npos);
}

TEST(MatrixText, SaysWhichNicsWereOpenedAndWhatLatencyIs) {
  MatrixReport report = report_of(4);
  for (MatrixPair& pair : report.pairs) pair.from_nic = pair.to_nic = "mlx5_0";
  EXPECT_NE(matrix_text(report).find("by mlx5_0 of each host\n"), std::string::npos);
  EXPECT_NE(matrix_text(report).find("half of there and back"), std::string::npos);
  for (MatrixPair& pair : report.pairs) {
    if (pair.from == 2) pair.from_nic = "mlx5_4";
    if (pair.to == 2) pair.to_nic = "mlx5_4";
  }
  report.of_gpus = true;
  const std::string text = matrix_text(report);
  EXPECT_NE(text.find("by mlx5_0 of hosts 0-1,3\nby mlx5_4 of host 2\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("until its completion"), std::string::npos) << text;
  EXPECT_NE(matrix_json(report).find(R"("to_nic":"mlx5_4")"), std::string::npos);
}

TEST(MatrixText, OfManyHostsIsARowAHost) {
  MatrixReport report = report_of(40);
  report.pairs[0].gigabits = 5;
  const std::string text = matrix_text(report);
  EXPECT_NE(text.find("slow links"), std::string::npos);
  EXPECT_NE(text.find("2.25"), std::string::npos) << text;  // of latency
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 80u) << text.substr(at, end - at);
    at = end + 1;
  }
}

}  // namespace
}  // namespace gdrx::perf
