// SPDX-License-Identifier: Apache-2.0
// Two ends of a connection, driven by one thread as NCCL's proxies drive them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/any_net.hpp"

namespace gdrx::test {

/// What the plugin said since the last clear().
inline std::string& heard() {
  static std::string text;
  return text;
}
__attribute__((format(printf, 5, 6))) inline void nccl_logger(nccl::LogLevel level, unsigned long,
                                                              const char*, int, const char* format,
                                                              ...) {
  std::array<char, 1024> line;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  if (level == nccl::LogLevel::warn) heard() += std::string(line.data()) + "\n";
}

inline constexpr std::chrono::seconds kPatience{20};

class Pair {
 public:
  explicit Pair(AnyNet& net) : net_(net) {}
  ~Pair() { close(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  /// Connects in the two contexts, which may be one: a loop.
  void connect(void* sender_context, void* receiver_context, int device = 0) {
    std::array<std::byte, nccl::kHandleMaxSize> handle{};
    ASSERT_EQ(net_.listen(receiver_context, device, handle.data(), &listener), NetResult::success);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while ((send == nullptr || recv == nullptr) && std::chrono::steady_clock::now() < until) {
      if (send == nullptr) {
        ASSERT_EQ(net_.connect(sender_context, device, handle.data(), &send), NetResult::success);
      }
      if (recv == nullptr) {
        ASSERT_EQ(net_.accept(listener, &recv), NetResult::success);
      }
    }
    ASSERT_NE(send, nullptr);
    ASSERT_NE(recv, nullptr);
  }
  void close() {
    if (send != nullptr) {
      EXPECT_EQ(net_.close_send(send), NetResult::success);
    }
    if (recv != nullptr) {
      EXPECT_EQ(net_.close_recv(recv), NetResult::success);
    }
    if (listener != nullptr) {
      EXPECT_EQ(net_.close_listen(listener), NetResult::success);
    }
    send = recv = listener = nullptr;
  }

  /// Posts until a request comes; null if none came in time.
  void* post_send(std::vector<std::byte>& data, int tag) {
    void* request = nullptr;
    until([&] {
      EXPECT_EQ(net_.isend(send, data.data(), data.size(), tag, nullptr, &request),
                NetResult::success);
      return request != nullptr;
    });
    return request;
  }
  void* post_recv(std::vector<std::vector<std::byte>*> data, std::vector<int> tags) {
    std::vector<void*> places;
    std::vector<std::size_t> sizes;
    for (auto* one : data) {
      places.push_back(one->data());
      sizes.push_back(one->size());
    }
    void* request = nullptr;
    until([&] {
      request = reinterpret_cast<void*>(nccl::kOptionalRecvCompletion);
      EXPECT_EQ(
          net_.irecv(recv, places, sizes, tags, std::vector<void*>(data.size(), nullptr), &request),
          NetResult::success);
      return request != nullptr;
    });
    return request;
  }
  /// Tests until all are done; false after a while. The sizes of the last.
  bool finish(std::vector<void*> requests, std::vector<int>* sizes = nullptr) {
    std::array<int, 16> got;
    std::vector<bool> done(requests.size());
    return until([&] {
      bool all = true;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (done[i]) continue;
        int now = 0;
        got.fill(-7);
        EXPECT_EQ(net_.test(requests[i], &now, got.data()), NetResult::success);
        done[i] = now != 0;
        all = all && done[i];
        if (done[i] && i + 1 == requests.size() && sizes != nullptr) {
          sizes->assign(got.begin(), got.end());
        }
      }
      return all;
    });
  }

  void* send = nullptr;
  void* recv = nullptr;
  void* listener = nullptr;

 private:
  template <class Done>
  bool until(const Done& done) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end || testing::Test::HasFailure()) return false;
    }
    return true;
  }
  AnyNet& net_;
};

inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  unsigned state = seed * 2654435761U + 1;
  for (std::byte& one : data) {
    state = state * 1664525U + 1013904223U;
    one = static_cast<std::byte>(state >> 24);
  }
  return data;
}

}  // namespace gdrx::test
