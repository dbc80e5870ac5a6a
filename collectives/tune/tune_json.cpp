// SPDX-License-Identifier: Apache-2.0
// The table's form on disk. What a file says is checked before it is used.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <sstream>

#include "collectives/plan/json_guard.hpp"
#include "collectives/tune/tune_table.hpp"

namespace gdrx::tune {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostCurves = 4096;
constexpr std::size_t kMostPoints = 128;
constexpr std::size_t kMostName = 128;
constexpr int kMostRanks = 4096;
constexpr int kMostDepth = 6;  // file > allreduce > curve > us > point
constexpr Bytes kMostBytes = Bytes{1} << 48;
constexpr double kMostUs = 1e9;
constexpr int kVersion = 1;

tl::unexpected<Error> wrong(const std::string& what) {
  return fail(Errc::invalid_argument, "tuning table: " + what);
}

Result<void> only(const Json& object, const std::string& where,
                  std::initializer_list<std::string_view> keys) {
  if (!object.is_object()) return wrong(where + " is not an object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return wrong(fmt::format("{}: unknown key {}", where, plan::shown(key)));
    }
  }
  for (const std::string_view key : keys) {
    if (!object.contains(key)) return wrong(fmt::format("{}: the key '{}' is missing", where, key));
  }
  return {};
}

Result<std::string> name_of(const Json& object, const char* key, const std::string& where) {
  const Json& value = object[key];
  const auto plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() <= kMostName && std::all_of(text.begin(), text.end(), plain)) return text;
  }
  return wrong(
      fmt::format("{}: '{}' takes printable text of up to {} characters", where, key, kMostName));
}

Result<int> count_of(const Json& object, const char* key, int most, const std::string& where) {
  const Json& value = object[key];
  if (value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)) {
    return value.get<int>();
  }
  return wrong(fmt::format("{}: '{}' takes a whole number from 1 to {}", where, key, most));
}

Result<Point> point_of(const Json& value, const std::string& where) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
      !value[1].is_number() || value[0].get<Bytes>() > kMostBytes) {
    return wrong(where + " is not [bytes, microseconds]");
  }
  const Point point{value[0].get<Bytes>(), value[1].get<double>()};
  if (!std::isfinite(point.us) || point.us <= 0 || point.us > kMostUs) {
    return wrong(fmt::format("{}: {:g} us is no time", where, point.us));
  }
  return point;
}

Result<Curve> curve_of(const Json& value, const std::string& where) {
  GDRX_TRY(only(value, where, {"transport", "algorithm", "ranks", "hosts", "us"}));
  Curve curve;
  curve.transport = GDRX_TRY(name_of(value, "transport", where));
  const std::string algorithm = GDRX_TRY(name_of(value, "algorithm", where));
  const auto parsed = plan::parse_algorithm(algorithm);
  if (!parsed)
    return wrong(fmt::format("{}: there is no algorithm {}", where, plan::shown(algorithm)));
  curve.algorithm = *parsed;
  curve.ranks = GDRX_TRY(count_of(value, "ranks", kMostRanks, where));
  curve.hosts = GDRX_TRY(count_of(value, "hosts", curve.ranks, where));
  const Json& points = value["us"];
  if (!points.is_array() || points.empty() || points.size() > kMostPoints) {
    return wrong(fmt::format("{}: 'us' takes 1 to {} points", where, kMostPoints));
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point point = GDRX_TRY(point_of(points[i], fmt::format("{}, point {}", where, i)));
    if (!curve.points.empty() && point.bytes <= curve.points.back().bytes) {
      return wrong(fmt::format("{}, point {}: {} bytes do not follow {}", where, i, point.bytes,
                               curve.points.back().bytes));
    }
    curve.points.push_back(point);
  }
  return curve;
}

Result<Json> parse(std::string_view text) {
  if (text.size() > kMostText) return wrong(fmt::format("larger than {} bytes", kMostText));
  auto parsed = plan::parse_guarded(text, {kMostText, kMostDepth});
  if (!parsed) return wrong(parsed.error().where + ": " + parsed.error().why);
  return *std::move(parsed);
}

}  // namespace

std::string to_json(const Table& table) {
  std::string text = fmt::format(
      "{{\"gdrx_tune\": {},\n \"platform\": {},\n \"allreduce\": [", kVersion,
      Json{{"cpu", table.platform.cpu}, {"cpus", table.platform.cpus}, {"gpu", table.platform.gpu}}
          .dump());
  for (std::size_t i = 0; i < table.curves.size(); ++i) {
    const Curve& curve = table.curves[i];
    Json points = Json::array();
    for (const Point& point : curve.points) points.push_back({point.bytes, point.us});
    text += fmt::format(
        "{}\n  {{\"transport\": {}, \"algorithm\": \"{}\", \"ranks\": {}, \"hosts\": {},\n"
        "   \"us\": {}}}",
        i == 0 ? "" : ",", Json(curve.transport).dump(), plan::to_string(curve.algorithm),
        curve.ranks, curve.hosts, points.dump());
  }
  return text + "\n ]}\n";
}

Result<Table> from_json(std::string_view text) {
  const Json json = GDRX_TRY(parse(text));
  GDRX_TRY(only(json, "the file", {"gdrx_tune", "platform", "allreduce"}));
  if (json["gdrx_tune"] != kVersion) {
    return wrong(fmt::format("'gdrx_tune' is not {}: of another version of gdrx?", kVersion));
  }
  Table table;
  const Json& platform = json["platform"];
  GDRX_TRY(only(platform, "platform", {"cpu", "cpus", "gpu"}));
  table.platform.cpu = GDRX_TRY(name_of(platform, "cpu", "platform"));
  table.platform.cpus = GDRX_TRY(count_of(platform, "cpus", 1 << 20, "platform"));
  table.platform.gpu = GDRX_TRY(name_of(platform, "gpu", "platform"));
  const Json& curves = json["allreduce"];
  if (!curves.is_array() || curves.size() > kMostCurves) {
    return wrong(fmt::format("'allreduce' takes a list of up to {}", kMostCurves));
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::string where = fmt::format("allreduce {}", i);
    Curve curve = GDRX_TRY(curve_of(curves[i], where));
    for (const Curve& other : table.curves) {
      if (other.transport == curve.transport && other.algorithm == curve.algorithm &&
          other.ranks == curve.ranks && other.hosts == curve.hosts) {
        return wrong(where + " is there twice");
      }
    }
    table.curves.push_back(std::move(curve));
  }
  return table;
}

Result<Loaded> load(const std::string& file) {
  // A FIFO would be waited for, a device might never end.
  struct stat about {};
  if (stat(file.c_str(), &about) != 0) return fail(Errc::system, "open " + file, errno);
  if (!S_ISREG(about.st_mode)) return fail(Errc::invalid_argument, file + " is not a file");
  if (about.st_size > static_cast<off_t>(kMostText)) {
    return fail(Errc::invalid_argument,
                fmt::format("{}: tuning table: larger than {} bytes", file, kMostText));
  }
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return fail(Errc::system, "read " + file, errno);
  const std::string whole = text.str();
  auto table = from_json(whole);
  if (!table) return fail(Errc::invalid_argument, file + ": " + table.error().what);
  std::uint64_t fingerprint = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : whole) {
    fingerprint = (fingerprint ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return Loaded{*std::move(table), fingerprint};
}

}  // namespace gdrx::tune
