// SPDX-License-Identifier: Apache-2.0
// A symbol that has no business outside.
extern "C" __attribute__((visibility("default"))) int helper_of_mine() { return 1; }
