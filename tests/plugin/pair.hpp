// SPDX-License-Identifier: Apache-2.0
// Two ends of a connection, driven by one thread as NCCL's proxies drive them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
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
/// And what it said that is no warning.
inline std::string& told() {
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
  (level == nccl::LogLevel::warn ? heard() : told()) += std::string(line.data()) + "\n";
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

  /// What was posted, until it is done. As NCCL's proxies do, everything is tested in turn.
  struct Request {
    void* handle = nullptr;
    bool done = false;
    std::array<int, 16> sizes;
  };

  /// Posts until it is taken, which is asserted. The number of the request.
  std::size_t post_send(std::vector<std::byte>& data, int tag) {
    void* request = nullptr;
    EXPECT_TRUE(until([&] {
      EXPECT_EQ(net_.isend(send, data.data(), data.size(), tag, nullptr, &request),
                NetResult::success);
      return request != nullptr;
    }));
    return track(request);
  }
  std::size_t post_recv(std::vector<std::vector<std::byte>*> data, std::vector<int> tags) {
    std::vector<void*> places;
    std::vector<std::size_t> sizes;
    for (auto* one : data) {
      places.push_back(one->data());
      sizes.push_back(one->size());
    }
    void* request = nullptr;
    EXPECT_TRUE(until([&] {
      request = reinterpret_cast<void*>(nccl::kOptionalRecvCompletion);
      EXPECT_EQ(
          net_.irecv(recv, places, sizes, tags, std::vector<void*>(data.size(), nullptr), &request),
          NetResult::success);
      return request != nullptr;
    }));
    return track(request);
  }
  /// False if not all was done in time. Requests keep their numbers until forget().
  bool finish() {
    return until([&] {
      return std::all_of(requests.begin(), requests.end(), [](const Request& r) { return r.done; });
    });
  }
  void forget() { requests.clear(); }
  int size(std::size_t request, std::size_t item = 0) const {
    return requests[request].sizes.at(item);
  }

  /// Repeats a call until it fills `request`, and follows that.
  template <class Call>
  std::size_t post(void*& request, const Call& call) {
    EXPECT_TRUE(until([&] {
      EXPECT_EQ(call(), NetResult::success);
      return request != nullptr;
    }));
    return track(request);
  }
  std::size_t track(void* handle) {
    requests.push_back({handle, false, {}});
    requests.back().sizes.fill(-7);
    return requests.size() - 1;
  }

  std::vector<Request> requests;
  void* send = nullptr;
  void* recv = nullptr;
  void* listener = nullptr;

 private:
  void progress() {
    for (Request& request : requests) {
      int now = 0;
      if (request.done) continue;
      EXPECT_EQ(net_.test(request.handle, &now, request.sizes.data()), NetResult::success);
      request.done = now != 0;
    }
  }
  template <class Done>
  bool until(const Done& done) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      progress();
      if (std::chrono::steady_clock::now() > end || testing::Test::HasFailure()) return false;
    }
    return true;
  }
  AnyNet& net_;
};

/// The library under GDRX_PLUGIN, opened as a version of the ABI and initialised.
class Opened : public testing::Test {
 protected:
  explicit Opened(int version = 12) : version_(version) {}
  void SetUp() override {
    std::string why;
    net = AnyNet::open(GDRX_PLUGIN, version_, &why);
    ASSERT_NE(net, nullptr) << why;
    ASSERT_EQ(net->init(&context, nccl_logger), NetResult::success);
  }
  void TearDown() override {
    if (context == nullptr) return;
    EXPECT_EQ(net->finalize(context), NetResult::success);
  }
  std::unique_ptr<AnyNet> net;
  void* context = nullptr;

 private:
  int version_;
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
