#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every symbol that the library exports is gdrx*: nothing of its parts leaks into other programs.
leaked=$(nm -D --defined-only "$1" | awk '{print $3}' | grep -vE '^gdrx|^_ZT[ISV]St|^_ZNSt|^_ZSt|^_ZNKSt|^_ZTISt|^__|^_edata|^_end|^_init|^_fini' || true)
[ -z "$leaked" ] || { echo "exported and not gdrx's:"; echo "$leaked" | c++filt | head -20; exit 1; }
