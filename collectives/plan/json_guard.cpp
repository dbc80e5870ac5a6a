// SPDX-License-Identifier: Apache-2.0
// The parser of nlohmann_json, compiled here once for all who read a stranger's JSON.
#include "collectives/plan/json_guard.hpp"

#include <functional>
#include <set>
#include <vector>

namespace gdrx::plan {
namespace {

class Guard {
 public:
  using Json = nlohmann::json;
  explicit Guard(const GuardLimits& limits) : left_(limits.events), deepest_(limits.depth) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (left_-- == 0) throw Refused{"text", "more values than it may have"};
    switch (event) {
      case Json::parse_event_t::object_start:
        keys_.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (depth >= deepest_) throw Refused{"text", "nested too deeply"};
        break;
      case Json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second) {
          throw Refused{"text", "the key " + shown(key) + " stands twice"};
        }
        break;
      }
      case Json::parse_event_t::array_end:
      case Json::parse_event_t::value:
        break;
    }
    return true;
  }

 private:
  std::size_t left_;
  int deepest_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 32;
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kLongest ? "...'" : "'");
}

tl::expected<nlohmann::json, Refused> parse_guarded(std::string_view text,
                                                    const GuardLimits& limits) {
  Guard guard(limits);
  try {
    return nlohmann::json::parse(text, std::ref(guard));
  } catch (const nlohmann::json::parse_error& error) {
    return tl::unexpected(Refused{"byte " + std::to_string(error.byte), "this is not JSON"});
  } catch (const Refused& refused) {
    return tl::unexpected(refused);
  } catch (const nlohmann::json::exception&) {  // a number beyond any type
    return tl::unexpected(Refused{"text", "this is not JSON"});
  }
}

}  // namespace gdrx::plan
