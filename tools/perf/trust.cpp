// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/trust.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <charconv>

namespace gdrx::perf {
namespace {

constexpr std::string_view kHello = "gdrx-trust-1 ";
constexpr std::string_view kLeaderRole = "gdrx perf leads";
constexpr std::string_view kServerRole = "gdrx perf serves";

std::string hex(const Token& token) { return fmt::format("{:016x}{:016x}", token[0], token[1]); }

Result<Token> unhex(std::string_view text) {
  Token token{};
  bool good = text.size() == 32;
  for (std::size_t i = 0; good && i < 2; ++i) {
    const char* begin = text.data() + 16 * i;
    const auto [end, error] = std::from_chars(begin, begin + 16, token[i], 16);
    good = error == std::errc{} && end == begin + 16;
  }
  if (good) return token;
  return fail(Errc::protocol, "who is connected is no gdrx perf of this version");
}

Result<Token> fresh() {
  Token token{};
  if (getrandom(token.data(), sizeof token, 0) == sizeof token) return token;
  return fail(Errc::system, "getrandom", errno);
}

struct Hello {
  bool secret = false;
  Token number{};
};

std::string hello_words(const Hello& hello) {
  return fmt::format("{}{} {}", kHello, hello.secret ? "secret" : "open", hex(hello.number));
}

Result<Hello> read_hello(std::string_view text) {
  Hello hello;
  if (text.starts_with(kHello)) text.remove_prefix(kHello.size());
  const std::size_t space = text.find(' ');
  const std::string_view word = text.substr(0, space);
  hello.secret = word == "secret";
  text.remove_prefix(space == text.npos ? text.size() : space + 1);
  hello.number = GDRX_TRY(unhex(hello.secret || word == "open" ? text : ""));
  return hello;
}

Result<void> both_or_none(bool mine, bool theirs) {
  if (mine == theirs) return {};
  return fail(Errc::protocol, mine ? "GDRX_SECRET_FILE is set here and not on the other host"
                                   : "GDRX_SECRET_FILE is set on the other host and not here");
}

}  // namespace

Result<void> trust(const Channel& channel, const Secret& secret, bool leads, Deadline deadline) {
  const Hello mine{secret.given(), GDRX_TRY(fresh())};
  const Hello theirs = GDRX_TRY(read_hello(GDRX_TRY(channel.agree(hello_words(mine), deadline))));
  const auto no_words = [] { return std::string(); };
  GDRX_TRY(channel.agree(both_or_none(mine.secret, theirs.secret).map(no_words), deadline));
  if (!mine.secret) return {};
  const Token& leader = leads ? mine.number : theirs.number;
  const Token& server = leads ? theirs.number : mine.number;
  const std::uint64_t challenge[] = {leader[0], leader[1], server[0], server[1]};
  const Token answer = secret.answer(leads ? kLeaderRole : kServerRole, challenge);
  const Token right = secret.answer(leads ? kServerRole : kLeaderRole, challenge);
  const Token said = GDRX_TRY(unhex(GDRX_TRY(channel.agree(hex(answer), deadline))));
  const std::uint64_t heard[] = {said[0], said[1]};
  Result<void> known;
  if (!same(right, heard)) {
    known = fail(Errc::protocol, "the secret of GDRX_SECRET_FILE is another one on the other host");
  }
  GDRX_TRY(channel.agree(known.map(no_words), deadline));
  return {};
}

}  // namespace gdrx::perf
