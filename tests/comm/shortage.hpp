// SPDX-License-Identifier: Apache-2.0
// Memory that runs out. Its .cpp replaces operator new of the program.
#pragma once

namespace gdrx::test {

/// While it lives, one allocation of this thread fails: the nth from its beginning.
class Shortage {
 public:
  explicit Shortage(long allocation) { begin(allocation); }
  ~Shortage() { begin(0); }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;
  static bool came();
  /// 0: none fails. For whoever begins it in the middle of a call. `for_good`: none behind it
  /// works.
  static void begin(long allocation, bool for_good = false);
};

/// The nth thread that this one makes from now on is refused; 0: none.
void refuse_thread(int nth);

}  // namespace gdrx::test
