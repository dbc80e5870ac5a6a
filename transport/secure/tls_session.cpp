// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/tls_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "transport/secure/byte_window.hpp"
#include "transport/secure/copy_apart.hpp"
#include "transport/secure/short_handshake.hpp"
#include "transport/secure/tls_handshake.hpp"
#include "transport/secure/tls_records.hpp"

namespace gdrx {
namespace {

// Beyond Options::buffer: one whole record, and what TLS says of its own accord.
constexpr std::size_t kReserve = TlsRecords::kMostPlain + 4096;
constexpr std::size_t kMostRecord = TlsRecords::kHeader + TlsRecords::kMostSealed;
constexpr std::size_t kParts = 66;  // of one record
constexpr std::size_t kLongPart = 4 * TlsRecords::kMostPlain;

// RFC 8446, 4.6.3 and 6.
constexpr std::array<std::byte, 5> kKeyUpdate{std::byte{24}, {}, {}, std::byte{1}, {}};
constexpr std::array<std::byte, 2> kCloseNotify{std::byte{1}, std::byte{0}};

iovec part_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

struct TlsSession::Impl {
  Impl(const Options& chosen, bool is_server)
      : options(chosen),
        server(is_server),
        in(std::max(chosen.received, kMostRecord)),
        out(chosen.buffer + kReserve) {}

  Options options;
  bool server;
  ByteWindow in;
  ByteWindow out;
  std::unique_ptr<Handshake> shaking;  // until it is done
  std::string identity;
  std::optional<TlsRecords> seals;
  std::optional<TlsRecords> opens;
  std::size_t opened = 0;    // bytes of plaintext at the front of `in`
  std::size_t behind = 0;    // bytes of their record after them
  bool renew_asked = false;  // the peer wants our next key
  std::optional<Error> failed;

  tl::unexpected<Error> broken(Error error) {
    failed = std::move(error);
    return tl::unexpected(*failed);
  }
  Result<void> take_over();
  Result<void> seal(TlsContent type, std::span<const iovec> parts);
  Result<void> renew_key();
  /// The bytes of the record at the front of `in`; 0 while it is not whole. Nothing: it is none.
  std::optional<std::size_t> whole_record() const noexcept;
  Result<Progress> open_next();
  /// Plaintext that went straight to `to`; nothing where what is next does not fit there.
  Result<std::size_t> open_next(std::span<std::byte> to);
  void take(std::size_t bytes) noexcept;
  Result<void> obey(TlsContent type, std::span<const std::byte> said);
};

Result<void> TlsSession::Impl::take_over() {
  const Handshake::Outcome made = GDRX_TRY(shaking->outcome());
  const Key& mine = server ? made.of_server : made.of_client;
  const Key& theirs = server ? made.of_client : made.of_server;
  seals = GDRX_TRY(TlsRecords::to_seal(made.suite, mine));
  opens = GDRX_TRY(TlsRecords::to_open(made.suite, theirs));
  identity = shaking->identity();
  shaking.reset();
  return {};
}

Result<void> TlsSession::Impl::seal(TlsContent type, std::span<const iovec> parts) {
  const auto to = out.space_for(kMostRecord);
  const auto sealed = seals->seal(type, parts, to.data());
  if (!sealed) return broken(sealed.error());
  out.put(*sealed);
  return {};
}

Result<void> TlsSession::Impl::renew_key() {
  const iovec part = part_of(kKeyUpdate);
  GDRX_TRY(seal(TlsContent::handshake, std::span(&part, 1)));
  renew_asked = false;
  if (auto renewed = seals->renew(); !renewed) return broken(renewed.error());
  return {};
}

Result<void> TlsSession::Impl::obey(TlsContent type, std::span<const std::byte> said) {
  if (type == TlsContent::alert && std::ranges::equal(said, kCloseNotify)) {
    return broken({Errc::peer_lost, "the peer has closed the connection", 0});
  }
  if (type == TlsContent::alert && said.size() == 2) {
    return broken({Errc::protocol,
                   fmt::format("the peer ends TLS by alert {}", std::to_integer<int>(said[1])), 0});
  }
  const bool update = type == TlsContent::handshake && said.size() == kKeyUpdate.size() &&
                      std::ranges::equal(said.first(4), std::span(kKeyUpdate).first(4)) &&
                      said[4] <= std::byte{1};
  if (!update) return broken({Errc::protocol, "the peer says over TLS what has no place here", 0});
  renew_asked |= said[4] == std::byte{1};
  if (auto renewed = opens->renew(); !renewed) return broken(renewed.error());
  return {};
}

std::optional<std::size_t> TlsSession::Impl::whole_record() const noexcept {
  const auto size = TlsRecords::size_of(in.full());
  return size && *size > in.size() ? 0 : size;
}

// Pending: no whole record has come.
Result<Progress> TlsSession::Impl::open_next() {
  const auto size = whole_record();
  if (!size) return broken({Errc::protocol, "what came is no TLS record", 0});
  if (*size == 0) return Progress::pending;
  const auto record = in.full().first(*size);
  const auto content = opens->open(record);
  if (!content) return broken(content.error());
  if (content->type == TlsContent::data) {
    in.take(TlsRecords::kHeader);
    opened = content->size;
    behind = *size - TlsRecords::kHeader - opened;
    if (opened == 0) in.take(std::exchange(behind, 0));
    return Progress::done;
  }
  GDRX_TRY(obey(content->type, record.subspan(TlsRecords::kHeader, content->size)));
  in.take(*size);
  return Progress::done;
}

Result<std::size_t> TlsSession::Impl::open_next(std::span<std::byte> to) {
  const auto size = whole_record();
  if (!size || *size == 0) return 0;
  const auto record = in.full().first(*size);
  if (TlsRecords::most_of(record) > to.size()) return 0;
  const auto content = opens->open(record, to);
  if (!content) return broken(content.error());
  if (content->type != TlsContent::data) GDRX_TRY(obey(content->type, to.first(content->size)));
  in.take(*size);
  return content->type == TlsContent::data ? content->size : 0;
}

void TlsSession::Impl::take(std::size_t bytes) noexcept {
  in.take(bytes);
  opened -= bytes;
  if (opened == 0) in.take(std::exchange(behind, 0));
}

TlsSession::TlsSession(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
TlsSession::TlsSession(TlsSession&&) noexcept = default;
TlsSession& TlsSession::operator=(TlsSession&&) noexcept = default;
TlsSession::~TlsSession() = default;

Result<TlsSession> TlsSession::client(std::string identity, const Key& key,
                                      const Options& options) {
  if (identity.empty() || identity.size() > TlsHandshake::kMostIdentity) {
    return fail(Errc::invalid_argument, "a TLS identity has 1 to 256 bytes");
  }
  auto impl = std::make_unique<Impl>(options, false);
  impl->shaking =
      GDRX_TRY(TlsHandshake::of_client({impl->in, impl->out}, {std::move(identity), key}));
  return TlsSession(std::move(impl));
}

Result<TlsSession> TlsSession::server(FindKey find, const Options& options) {
  auto impl = std::make_unique<Impl>(options, true);
  impl->shaking = GDRX_TRY(TlsHandshake::of_server({impl->in, impl->out}, std::move(find)));
  return TlsSession(std::move(impl));
}

Result<TlsSession> TlsSession::client(std::string identity, const Key& key) {
  return client(std::move(identity), key, Options());
}
Result<TlsSession> TlsSession::server(FindKey find) { return server(std::move(find), Options()); }

TlsSession TlsSession::client_here(std::string identity, const Key& key) {
  auto impl = std::make_unique<Impl>(Options(), false);
  impl->shaking = std::make_unique<ShortHandshake>(
      Handshake::Wire{impl->in, impl->out}, ShortHandshake::End::client, std::move(identity), key);
  return TlsSession(std::move(impl));
}

TlsSession TlsSession::server_here(std::string identity, const Key& key) {
  auto impl = std::make_unique<Impl>(Options(), true);
  impl->shaking = std::make_unique<ShortHandshake>(
      Handshake::Wire{impl->in, impl->out}, ShortHandshake::End::server, std::move(identity), key);
  return TlsSession(std::move(impl));
}

Result<Progress> TlsSession::handshake() {
  Impl& self = *impl_;
  if (self.failed) return tl::unexpected(*self.failed);
  if (established()) return Progress::done;
  const auto stepped = self.shaking->step();
  if (!stepped) return self.broken(stepped.error());
  if (*stepped == Progress::pending) return Progress::pending;
  if (auto taken = self.take_over(); !taken) return self.broken(taken.error());
  return Progress::done;
}

bool TlsSession::established() const noexcept { return !impl_->shaking; }
const std::string& TlsSession::identity() const noexcept {
  return established() ? impl_->identity : impl_->shaking->identity();
}

std::span<std::byte> TlsSession::space() noexcept { return impl_->in.space(); }
void TlsSession::received(std::size_t bytes) noexcept { impl_->in.put(bytes); }
std::size_t TlsSession::feed(std::span<const std::byte> ciphertext) noexcept {
  return impl_->in.append(ciphertext);
}
std::span<const std::byte> TlsSession::unsent() const noexcept {
  return std::as_const(impl_->out).full();
}
void TlsSession::sent(std::size_t bytes) noexcept { impl_->out.take(bytes); }

Result<std::size_t> TlsSession::write(std::span<const std::byte> plaintext) {
  const iovec part = part_of(plaintext);
  return write(std::span(&part, 1));
}

Result<std::size_t> TlsSession::write(std::span<const iovec> parts) {
  Impl& self = *impl_;
  if (GDRX_TRY(handshake()) == Progress::pending) return 0;
  std::size_t written = 0;
  std::size_t skip = 0;  // of parts[0]
  while (!parts.empty() && self.out.size() < self.options.buffer) {
    std::array<iovec, kParts> record;
    std::size_t count = 0;
    std::size_t size = 0;
    bool long_part_ends = false;
    while (!parts.empty() && count < kParts && size < TlsRecords::kMostPlain && !long_part_ends) {
      const std::size_t left = parts[0].iov_len - skip;
      const std::size_t some = std::min(left, TlsRecords::kMostPlain - size);
      if (some > 0) record[count++] = {static_cast<std::byte*>(parts[0].iov_base) + skip, some};
      size += some;
      skip = some == left ? 0 : skip + some;
      long_part_ends = some == left && parts[0].iov_len >= kLongPart;
      if (some == left) parts = parts.subspan(1);
    }
    if (size == 0) break;
    if (self.renew_asked || self.seals->count() >= self.options.records_a_key) {
      GDRX_TRY(self.renew_key());
    }
    GDRX_TRY(self.seal(TlsContent::data, std::span(record).first(count)));
    written += size;
  }
  return written;
}

Result<std::size_t> TlsSession::read(std::span<std::byte> plaintext) {
  Impl& self = *impl_;
  if (GDRX_TRY(handshake()) == Progress::pending) return 0;
  std::size_t got = 0;
  while (got < plaintext.size()) {
    if (self.opened > 0) {
      const std::size_t some = std::min(self.opened, plaintext.size() - got);
      copy_apart(plaintext.data() + got, self.in.full().data(), some);
      self.take(some);
      got += some;
      continue;
    }
    const auto straight = self.open_next(plaintext.subspan(got));
    if (straight && *straight > 0) {
      got += *straight;
      continue;
    }
    const auto next = straight ? self.open_next() : tl::unexpected(straight.error());
    // What came before the end is the caller's; the next call says why it ended.
    if (!next && got == 0) return tl::unexpected(next.error());
    if (!next || *next == Progress::pending) break;
  }
  return got;
}

Result<std::span<const std::byte>> TlsSession::peek() {
  Impl& self = *impl_;
  if ((self.shaking || self.failed) && GDRX_TRY(handshake()) == Progress::pending) {
    return std::span<const std::byte>();
  }
  while (self.opened == 0) {
    if (GDRX_TRY(self.open_next()) == Progress::pending) return std::span<const std::byte>();
  }
  return std::as_const(self.in).full().first(self.opened);
}

void TlsSession::take(std::size_t plaintext) noexcept {
  impl_->take(std::min(plaintext, impl_->opened));
}

bool TlsSession::pending() const noexcept {
  const Impl& self = *impl_;
  // Of a handshake only what comes is news: what is here was looked at.
  if (!established()) return false;
  if (self.failed) return true;
  if (self.opened > 0) return self.in.size() > 0;
  const auto size = self.whole_record();
  return !size || *size > 0;
}

void TlsSession::prepare() noexcept {
  if (!established() || impl_->failed) return;
  impl_->seals->prepare();
  impl_->opens->prepare();
}

void TlsSession::close() noexcept try {
  if (!established() || impl_->failed || impl_->out.room() < kMostRecord) return;
  const iovec part = part_of(kCloseNotify);
  (void)impl_->seal(TlsContent::alert, std::span(&part, 1));
} catch (const std::bad_alloc&) {
}

}  // namespace gdrx
