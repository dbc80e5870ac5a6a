// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gdrx::gpu {

/// One kernel of each file that has some: by it CUDA finds the others. A static object.
class Loadable {
 public:
  template <class... Parameters>
  explicit Loadable(void (*kernel)(Parameters...))
      : kernel_(reinterpret_cast<const void*>(kernel)), next_(first_) {
    first_ = this;
  }
  Loadable(const Loadable&) = delete;
  Loadable& operator=(const Loadable&) = delete;

  static const Loadable* first() noexcept { return first_; }
  const Loadable* next() const noexcept { return next_; }
  /// As the CUDA runtime knows it.
  const void* kernel() const noexcept { return kernel_; }

 private:
  inline static const Loadable* first_ = nullptr;
  const void* kernel_;
  const Loadable* next_;
};

}  // namespace gdrx::gpu
