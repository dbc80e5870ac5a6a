// SPDX-License-Identifier: Apache-2.0
// Streams and events of a GPU through PyTorch's device guards. So one source serves a PyTorch with
// and one without CUDA, and links to nothing of CUDA's.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gdrx/gdrx.h>

namespace gdrx_torch {

/// What gdrx calls this stream.
gdrxStream_t native(const c10::Stream& stream);

/// A CUDA graph is recorded from this stream.
bool is_captured(const c10::Stream& stream);

/// The device of a call: with its number, which is the current one if none is given.
c10::Device numbered(c10::Device device);

c10::Stream current_stream(c10::Device device);

/// While it lives this thread may ask for events though another thread records a graph.
class BesideCaptures {
 public:
  BesideCaptures();
  ~BesideCaptures();
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  int mode_;
};

}  // namespace gdrx_torch
