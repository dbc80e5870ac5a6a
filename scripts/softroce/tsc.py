# SPDX-License-Identifier: Apache-2.0
"""The rate of this machine's time stamp counter, which emulated processors have as theirs.

A guest measures it against an emulated timer as it boots. Beside other work it was 5.8 times too high once: that guest's
clock ran so much too fast, and each of its time-outs was so much too short."""
import ctypes, mmap, platform, time

RDTSC = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"  # rdtsc; shl rdx, 32; or rax, rdx; ret
MEASURED = 0.2  # seconds
TRIES = 20  # of a pair of looks: the closest counts, as this process may lose its core between them


def khz():
    """None: this machine has none, or this process may not make code."""
    if platform.machine() != "x86_64":
        return None
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    code.write(RDTSC)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    first = look(read)
    time.sleep(MEASURED)
    last = look(read)
    return round((last[1] - first[1]) / (last[0] - first[0]) * 1e6)


def look(read):
    """(nanoseconds, counter) of one instant."""
    def once():
        before = time.monotonic_ns()
        count = read()
        after = time.monotonic_ns()
        return after - before, before + (after - before) // 2, count

    return min(once() for _ in range(TRIES))[1:]
