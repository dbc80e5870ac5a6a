// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/reference/comm.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gdrx::reference {

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

Request* Comm::take() {
  const auto free = std::ranges::find_if(requests_, [](const Request& r) { return !r.used; });
  if (free == requests_.end()) {
    return nullptr;
  }
  *free = Request{};
  free->used = true;
  free->comm = this;
  free->is_send = is_send_;
  return &*free;
}

NetResult Comm::isend(std::byte* data, std::size_t size, int tag, Request** request) {
  *request = nullptr;
  if (const NetResult result = progress(); result != NetResult::success) {
    return result;
  }
  if (expected_.empty()) {
    return NetResult::success;
  }
  Announcement& head = expected_.front();
  const auto parts = std::span(head.parts).first(head.count);
  const auto part = std::ranges::find_if(parts, [&](const Announcement::Part& candidate) {
    return candidate.matched == 0 && candidate.tag == tag;
  });
  Request* const mine = part == parts.end() ? nullptr : take();
  if (mine == nullptr) {
    return NetResult::success;
  }
  part->matched = 1;
  mine->payload = data;
  mine->header = {head.group, std::min<std::uint64_t>(size, part->size),
                  static_cast<std::uint32_t>(part - parts.begin()), 0};
  mine->sizes[0] = static_cast<int>(mine->header.size);
  queue_.push_back(mine);
  if (std::ranges::all_of(parts, [](const auto& p) { return p.matched != 0; })) {
    expected_.pop_front();
  }
  *request = mine;
  return progress();
}

NetResult Comm::irecv(std::span<void* const> data, const std::size_t* sizes, const int* tags,
                      Request** request) {
  *request = nullptr;
  if (data.empty() || data.size() > kMaxRecvs) {
    return NetResult::invalid_argument;
  }
  if (const NetResult result = progress(); result != NetResult::success) {
    return result;
  }
  if (posted_.size() >= nccl::kMaxRequests) {
    return NetResult::success;
  }
  Request* const mine = take();
  if (mine == nullptr) {
    return NetResult::success;
  }
  mine->announcement.group = next_group_++;
  mine->announcement.count = static_cast<std::uint32_t>(data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    mine->announcement.parts[i] = {sizes[i], tags[i], 0};
    mine->buffers[i] = static_cast<std::byte*>(data[i]);
  }
  posted_.push_back(mine);
  queue_.push_back(mine);
  *request = mine;
  return progress();
}

NetResult Comm::progress() {
  if (is_send_) {
    read_announcements();
    write_messages();
  } else {
    write_announcements();
    read_messages();
  }
  const bool waits = is_send_ ? !queue_.empty() : !posted_.empty();
  return failed_ || (ended_ && (waits || is_send_)) ? NetResult::remote_error : NetResult::success;
}

/// Reads until `want` bytes are there; true when they are.
bool Comm::read_some(void* to, std::size_t want, std::size_t* have) {
  while (*have < want && !failed_ && !ended_) {
    const ssize_t got =
        recv(socket_.fd(), static_cast<std::byte*>(to) + *have, want - *have, MSG_DONTWAIT);
    if (got > 0) {
      *have += static_cast<std::size_t>(got);
    } else if (got == 0) {
      ended_ = true;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return false;
    } else if (errno != EINTR) {
      failed_ = true;
    }
  }
  return *have == want;
}

void Comm::read_announcements() {
  while (read_some(&incoming_, sizeof incoming_, &incoming_have_)) {
    incoming_have_ = 0;
    if (incoming_.count == 0 || incoming_.count > kMaxRecvs) {
      failed_ = true;
      return;
    }
    expected_.push_back(incoming_);
  }
}

void Comm::write_announcements() {
  while (!queue_.empty() && !failed_) {
    const auto bytes = std::as_bytes(std::span(&queue_.front()->announcement, 1));
    const auto rest = bytes.subspan(announced_);
    const ssize_t put = send(socket_.fd(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) {
      ended_ = ended_ || errno == EPIPE;  // what it sent before it closed can still be read
      failed_ = failed_ || (errno != EAGAIN && errno != EINTR && errno != EPIPE);
      return;
    }
    announced_ += static_cast<std::size_t>(put);
    if (announced_ == bytes.size()) {
      announced_ = 0;
      queue_.pop_front();
    }
  }
}

void Comm::write_messages() {
  while (!queue_.empty() && !failed_) {
    Request& request = *queue_.front();
    while (request.written < sizeof(Header) + request.header.size) {
      const bool in_header = request.written < sizeof(Header);
      const std::size_t at = request.written - (in_header ? 0 : sizeof(Header));
      const auto* from =
          in_header ? reinterpret_cast<const std::byte*>(&request.header) : request.payload;
      const std::size_t end = in_header ? sizeof(Header) : request.header.size;
      const ssize_t put = send(socket_.fd(), from + at, end - at, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put < 0) {
        failed_ = errno != EAGAIN && errno != EINTR;
        return;
      }
      request.written += static_cast<std::size_t>(put);
    }
    request.done = true;
    queue_.pop_front();
  }
}

/// Reads the message that header_ begins; true when it is whole.
bool Comm::finish_message() {
  const auto at = std::ranges::find_if(
      posted_, [&](const Request* r) { return r->announcement.group == header_.group; });
  if (at == posted_.end() || header_.part >= (*at)->announcement.count ||
      header_.size > (*at)->announcement.parts[header_.part].size) {
    failed_ = true;
    return false;
  }
  Request& request = **at;
  if (!read_some(request.buffers[header_.part], header_.size, &payload_have_)) {
    return false;
  }
  request.sizes[header_.part] = static_cast<int>(header_.size);
  if (++request.finished == request.announcement.count) {
    request.done = true;
    posted_.erase(at);
  }
  return true;
}

void Comm::read_messages() {
  while (read_some(&header_, sizeof header_, &header_have_) && finish_message()) {
    header_have_ = 0;
    payload_have_ = 0;
  }
}

}  // namespace gdrx::reference
