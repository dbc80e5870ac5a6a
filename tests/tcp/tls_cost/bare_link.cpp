// SPDX-License-Identifier: Apache-2.0
// What no transport over these calls and this cipher can do without: send, recv, seal, open. It
// knows all sizes ahead, checks nothing and writes no head, but sends as many bytes as the fabric.
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/tcp/tls_cost/connection.hpp"
#include "tests/tcp/tls_cost/link.hpp"

namespace gdrx::tls_cost {
namespace {

constexpr std::size_t kHead = 40;  // of the fabric's messages
constexpr std::size_t kRecord = 16384;
constexpr std::size_t kHeader = 5;
constexpr std::size_t kTag = 16;
constexpr std::size_t kSendBuffer = 256 << 10;  // as the fabric's
constexpr std::size_t kReceiveBuffer = 256 << 10;

// One direction's cipher. The number and the header of a record are set ahead, where there is time.
class Cipher {
 public:
  explicit Cipher(bool seals) : context_(EVP_CIPHER_CTX_new()) {
    const std::array<unsigned char, 16> key{1, 2, 3};
    require(EVP_CipherInit_ex(context_, EVP_aes_128_gcm(), nullptr, key.data(), nullptr,
                              seals ? 1 : 0) == 1,
            "AES-128-GCM");
  }
  ~Cipher() { EVP_CIPHER_CTX_free(context_); }
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;

  void prepare() {
    if (prepared_) return;
    std::array<unsigned char, 12> number{};
    std::memcpy(number.data(), &number_, sizeof number_);
    ++number_;
    const std::array<unsigned char, kHeader> header{23, 3, 3};
    require(EVP_CipherInit_ex(context_, nullptr, nullptr, nullptr, number.data(), -1) == 1 &&
                EVP_Cipher(context_, nullptr, header.data(), kHeader) >= 0,
            "a record's number");
    prepared_ = true;
  }
  /// Returns the record's bytes.
  std::size_t seal(const std::byte* from, std::size_t size, std::byte* to) {
    prepare();
    prepared_ = false;
    std::byte* const tag = to + kHeader + size;
    auto parameters = tag_at(tag);
    int done = 0;
    require(EVP_Cipher(context_, octets(to + kHeader), octets(from), static_cast<unsigned>(size)) >=
                    0 &&
                EVP_CipherFinal_ex(context_, octets(tag), &done) == 1 &&
                EVP_CIPHER_CTX_get_params(context_, parameters.data()) == 1,
            "to seal a record");
    return kHeader + size + kTag;
  }
  void open(std::byte* record, std::size_t size, std::byte* to) {
    prepare();
    prepared_ = false;
    std::byte* const tag = record + kHeader + size;
    auto parameters = tag_at(tag);
    int done = 0;
    require(EVP_Cipher(context_, octets(to), octets(record + kHeader),
                       static_cast<unsigned>(size)) >= 0 &&
                EVP_CIPHER_CTX_set_params(context_, parameters.data()) == 1 &&
                EVP_CipherFinal_ex(context_, octets(tag), &done) == 1,
            "to open a record");
  }

 private:
  static unsigned char* octets(std::byte* at) { return reinterpret_cast<unsigned char*>(at); }
  static const unsigned char* octets(const std::byte* at) {
    return reinterpret_cast<const unsigned char*>(at);
  }
  static std::array<OSSL_PARAM, 2> tag_at(std::byte* tag) {
    return {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, kTag),
            OSSL_PARAM_construct_end()};
  }
  EVP_CIPHER_CTX* context_;
  std::uint64_t number_ = 0;
  bool prepared_ = false;
};

class BareLink final : public Link {
 public:
  BareLink(int rank, bool plain, std::size_t area, int channel)
      : plain_(plain),
        socket_(connect_to_peer(rank, channel)),
        source_(area + kHead, std::byte{1}),
        target_(area + kHead, std::byte{1}),
        sealed_(kSendBuffer + kRecord + 64),
        received_(kReceiveBuffer) {}

  void set_sizes(std::size_t out, std::size_t in) override {
    out_ = out + kHead;
    in_ = in + kHead;
    came_ = 0;
  }

  bool send(std::size_t at) override {
    if (left_ > 0 || !flush()) return false;
    from_ = source_.data() + at;
    left_ = out_;
    push();
    return true;
  }

  std::size_t poll() override {
    push();
    if (plain_) {
      receive_plain();
    } else {
      receive_sealed();
    }
    const std::size_t whole = came_ / in_;
    came_ -= whole * in_;
    return whole;
  }

  bool busy() const override { return left_ > 0 || sealed_begin_ < sealed_end_; }

 private:
  // As much as the socket takes.
  void push() {
    if (plain_) {
      const std::size_t sent = put(from_, left_);
      from_ += sent;
      left_ -= sent;
      return;
    }
    while (flush() && left_ > 0) {
      while (left_ > 0 && sealed_end_ < kSendBuffer) {
        const std::size_t size = std::min(left_, kRecord);
        sealed_end_ += seals_.seal(from_, size, sealed_.data() + sealed_end_);
        from_ += size;
        left_ -= size;
      }
    }
  }
  // What is sealed. True: all of it is gone.
  bool flush() {
    sealed_begin_ += put(sealed_.data() + sealed_begin_, sealed_end_ - sealed_begin_);
    if (sealed_begin_ < sealed_end_) return false;
    sealed_begin_ = sealed_end_ = 0;
    return true;
  }
  std::size_t put(const std::byte* from, std::size_t size) const {
    if (size == 0) return 0;
    const ssize_t sent = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    require(sent > 0 || errno == EAGAIN, "send");
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
  std::size_t get(std::byte* to, std::size_t size) const {
    const ssize_t got = recv(socket_, to, size, MSG_DONTWAIT);
    require(got > 0 || (got < 0 && errno == EAGAIN), "recv");
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  // The next place in the target of at least `size` bytes.
  std::byte* place(std::size_t size) {
    if (target_.size() - to_ < size) to_ = 0;
    return target_.data() + to_;
  }
  void receive_plain() {
    std::byte* to = place(in_);
    const std::size_t got = get(to, std::min(target_.size() - to_, std::max(in_, kReceiveBuffer)));
    to_ += got;
    came_ += got;
  }
  void receive_sealed() {
    const std::size_t got = get(received_.data() + received_end_, received_.size() - received_end_);
    received_end_ += got;
    if (got == 0) {
      opens_.prepare();
      seals_.prepare();
    }
    std::size_t at = 0;
    while (true) {
      // A message's last record is shorter.
      const std::size_t size = std::min(kRecord, in_ - came_ % in_);
      const std::size_t whole = kHeader + size + kTag;
      if (received_end_ - at < whole) break;
      opens_.open(received_.data() + at, size, place(size));
      at += whole;
      to_ += size;
      came_ += size;
    }
    if (at > 0) std::memmove(received_.data(), received_.data() + at, received_end_ - at);
    received_end_ -= at;
  }

  bool plain_;
  int socket_;
  Cipher seals_{true};
  Cipher opens_{false};
  std::vector<std::byte> source_;
  std::vector<std::byte> target_;
  std::vector<std::byte> sealed_;
  std::vector<std::byte> received_;
  std::size_t out_ = 1;
  std::size_t in_ = 1;
  const std::byte* from_ = nullptr;
  std::size_t left_ = 0;  // of the message that goes out
  std::size_t sealed_begin_ = 0;
  std::size_t sealed_end_ = 0;
  std::size_t received_end_ = 0;
  std::size_t to_ = 0;
  std::size_t came_ = 0;
};

}  // namespace

std::unique_ptr<Link> bare_link(int rank, bool plain, std::size_t area, int channel) {
  return std::make_unique<BareLink>(rank, plain, area, channel);
}

}  // namespace gdrx::tls_cost
