// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/held.hpp"

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/on_device.hpp"

namespace gdrx::gpu {

void Held::close() noexcept {
  close_beside();
  const OnDevice here(device);
  const AnyCapture beside;
  if (own_stream != nullptr) cudaStreamSynchronize(own_stream);
  cudaGetLastError();  // not the user's next call's
}

void Held::close_beside() noexcept {
  if (own_stream == nullptr) return;  // nothing was ever launched
  const OnDevice here(device);
  const AnyCapture beside;
  own->close(own_stream);
  cudaGetLastError();
}

Held::~Held() {
  close();
  const OnDevice here(device);
  const AnyCapture beside;
  windows.close_all();
  PeerArenas::depart(std::move(peers));
  if (met && !together) own->await_departures(std::move(processes));
  if (order != nullptr) cudaEventDestroy(order);
  if (never != nullptr) cudaEventDestroy(never);
  if (own_stream != nullptr) cudaStreamDestroy(own_stream);
  if (watch != nullptr) cudaStreamDestroy(watch);
  if (staged != nullptr) cudaEventDestroy(staged);
}

}  // namespace gdrx::gpu
