// SPDX-License-Identifier: Apache-2.0
// cipher_cost BYTES...: what AES-128-GCM alone takes of a message's time, by OpenSSL's cipher
// without anything of gdrx's, the record's number and header set ahead. For each size a line: the
// nanoseconds to seal and to open one record in hot caches, and both again with its way through
// this thread's own TCP connection between them, which is how caches are when a message goes.
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<unsigned char>;
constexpr int kTag = 16;
constexpr int kRecords = 3000;

void require(bool good) {
  if (!good) std::exit(1);
}

EVP_CIPHER_CTX* cipher(bool seals) {
  const std::array<unsigned char, 16> key{1, 2, 3};
  EVP_CIPHER_CTX* made = EVP_CIPHER_CTX_new();
  require(made != nullptr &&
          EVP_CipherInit_ex(made, EVP_aes_128_gcm(), nullptr, key.data(), nullptr, seals) == 1);
  return made;
}

void begin(EVP_CIPHER_CTX* cipher, int number) {
  std::array<unsigned char, 12> iv{};
  for (std::size_t i = 0; i < 4; ++i) iv[i] = static_cast<unsigned char>(number >> (8 * i));
  const std::array<unsigned char, 5> header{23, 3, 3};
  int done = 0;
  require(EVP_CipherInit_ex(cipher, nullptr, nullptr, nullptr, iv.data(), -1) == 1 &&
          EVP_CipherUpdate(cipher, nullptr, &done, header.data(), 5) == 1);
}

// In its place, with the tag behind it.
void seal(EVP_CIPHER_CTX* cipher, Bytes& record, int size) {
  int done = 0;
  unsigned char* tag = record.data() + size;
  require(EVP_CipherUpdate(cipher, record.data(), &done, record.data(), size) == 1 &&
          EVP_CipherFinal_ex(cipher, tag, &done) == 1 &&
          EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, kTag, tag) == 1);
}

void open(EVP_CIPHER_CTX* cipher, Bytes& record, int size) {
  int done = 0;
  unsigned char* tag = record.data() + size;
  require(EVP_CipherUpdate(cipher, record.data(), &done, record.data(), size) == 1 &&
          EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, kTag, tag) == 1 &&
          EVP_CipherFinal_ex(cipher, tag, &done) == 1);
}

struct Ends {
  int from;
  int to;
};

Ends connect_to_itself() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  require(bind(listener, address, size) == 0 && listen(listener, 1) == 0 &&
          getsockname(listener, address, &size) == 0);
  const int from = socket(AF_INET, SOCK_STREAM, 0);
  require(connect(from, address, size) == 0);
  const int to = accept(listener, nullptr, nullptr);
  require(to >= 0);
  close(listener);
  return {from, to};
}

void pass(const Ends& ends, Bytes& record) {
  const auto size = static_cast<ssize_t>(record.size());
  require(send(ends.from, record.data(), record.size(), 0) == size &&
          recv(ends.to, record.data(), record.size(), MSG_WAITALL) == size);
}

// What a receiver does while it waits.
void look(const Ends& ends) {
  unsigned char none = 0;
  for (int i = 0; i < 4; ++i) require(recv(ends.to, &none, 1, MSG_DONTWAIT) < 0);
}

double median(std::vector<Clock::duration>& times) {
  const auto middle = times.begin() + static_cast<long>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return std::chrono::duration<double, std::nano>(*middle).count();
}

double clock_itself() {
  std::vector<Clock::duration> times;
  for (int i = 0; i < kRecords; ++i) {
    const Clock::time_point before = Clock::now();
    times.push_back(Clock::now() - before);
  }
  return median(times);
}

struct Cost {
  double to_seal;
  double to_open;
};

Cost measure(int size, const Ends* ends) {
  EVP_CIPHER_CTX* const seals = cipher(true);
  EVP_CIPHER_CTX* const opens = cipher(false);
  Bytes record(static_cast<std::size_t>(size + kTag));
  std::vector<Clock::duration> sealing;
  std::vector<Clock::duration> opening;
  for (int i = 0; i < kRecords; ++i) {
    begin(seals, i);
    begin(opens, i);
    if (ends != nullptr) look(*ends);
    Clock::time_point before = Clock::now();
    seal(seals, record, size);
    sealing.push_back(Clock::now() - before);
    if (ends != nullptr) pass(*ends, record);
    before = Clock::now();
    open(opens, record, size);
    opening.push_back(Clock::now() - before);
  }
  EVP_CIPHER_CTX_free(seals);
  EVP_CIPHER_CTX_free(opens);
  const double clock = clock_itself();
  return {median(sealing) - clock, median(opening) - clock};
}

}  // namespace

int main(int count, char** words) {
  const Ends ends = connect_to_itself();
  for (int word = 1; word < count; ++word) {
    const int size = std::atoi(words[word]);
    require(size > 0 && size <= 16384);
    const Cost hot = measure(size, nullptr);
    const Cost real = measure(size, &ends);
    std::printf("%d %.0f %.0f %.0f %.0f\n", size, hot.to_seal, hot.to_open, real.to_seal,
                real.to_open);
  }
}
