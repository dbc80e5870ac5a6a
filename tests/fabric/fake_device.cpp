// SPDX-License-Identifier: Apache-2.0
// The device of that libibverbs: two descriptors.
#include <infiniband/verbs.h>
#include <unistd.h>

#define FAKE extern "C" __attribute__((visibility("default")))

// The reading ends of two pipes whose others an open device holds.
FAKE int fake_device_ends[2];
int fake_device_ends[2] = {-1, -1};

FAKE ibv_context* ibv_open_device(ibv_device*) {
  static ibv_context context{};
  int commands[2], events[2];
  if (pipe(commands) != 0 || pipe(events) != 0) return nullptr;
  fake_device_ends[0] = commands[0];
  fake_device_ends[1] = events[0];
  context.cmd_fd = commands[1];
  context.async_fd = events[1];
  return &context;
}
FAKE int ibv_close_device(ibv_context* context) {
  return close(context->cmd_fd) | close(context->async_fd);
}
