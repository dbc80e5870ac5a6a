# SPDX-License-Identifier: Apache-2.0
"""Drawings of boxes: which way a call goes, what stands on what, what runs beside what."""
from drawn.canvas import AMBER, BLUE, GREEN, GREY, PLAIN, Canvas


def routes():
    canvas = Canvas("Which route a call takes", 900, 470)
    canvas.box(20, 20, 250, 40, "a call", BLUE, bold=True)
    questions = ["Buffers in GPU memory, all ranks on one\nhost, a kernel for the call, GPUs reach\neach other?",
                 "An allReduce of GPU memory\nbetween hosts?",
                 "A stream, all buffers in GPU memory,\nthe ranks use GPUs?"]
    answers = [("GPU kernel", "kernels between the GPUs of the host"),
               ("GPUs and network", "kernels inside a host, NICs or\npinned memory between hosts"),
               ("staged in its stream", "pinned host memory; the host makes\nthe call while the stream waits")]
    y, above = 95, 60
    for question, (name, meaning) in zip(questions, answers):
        canvas.line(145, above, 145, y - 2)
        canvas.box(20, y, 290, 64, question, AMBER)
        canvas.line(310, y + 32, 418, y + 32)
        canvas.text(364, y + 26, "yes")
        canvas.box(420, y, 170, 64, name, GREEN, bold=True)
        canvas.text(604, y + (36 if "\n" not in meaning else 28), meaning, "start")
        canvas.text(153, y + 82, "no", "start")
        above, y = y + 64, y + 95
    canvas.line(145, above, 145, y - 2)
    canvas.box(20, y, 290, 64, "host", GREEN, bold=True)
    canvas.text(326, y + 12, "ranks of one host, one-shot, two-shot and small calls: the arena of shared memory", "start")
    canvas.text(326, y + 36, "every other call: messages, over shm, UCX, TCP or verbs", "start")
    canvas.text(326, y + 60, "GPU memory without a stream: copied to pinned memory first", "start")
    return canvas.svg()


def layers():
    canvas = Canvas("The layers of gdrx: each includes what stands below it alone", 900, 468)
    rows = [
        (20, BLUE, [("your program\ngdrx.h", 20, 205), ("MPI program\nmpi/", 235, 205), ("NCCL's API, PyTorch\nnccl/, python/", 450, 205), ("NCCL\nplugin/", 665, 105), ("a person\ntools/", 780, 100)]),
        (100, GREEN, [("collectives/api and comm: C API, communicator, tuner", 20, 635)]),
        (160, GREEN, [("exec\nruns a plan", 20, 205), ("gpu, kernels\nbetween GPUs", 235, 205), ("plan, reduce, tune, trace\nalgorithms, sums, times", 450, 205)]),
        (250, AMBER, [("bootstrap\nwho is there, who died", 20, 205), ("shm, ucx, tcp, verbs\nfabrics", 235, 205), ("memory, secure\nregistration, TLS", 450, 320)]),
        (340, AMBER, [("transport/fabric: what every fabric offers", 20, 750)]),
        (400, GREY, [("include/ and base/: the C API and the seams: results, clock, log, configuration", 20, 860)]),
    ]
    for y, fill, boxes in rows:
        for words, x, width in boxes:
            canvas.box(x, y, width, 48 if "\n" in words else 40, words, fill)
    canvas.text(20, 240, "transport/", "start", bold=True)
    canvas.text(20, 94, "libgdrx.so", "start", bold=True)
    canvas.box(780, 250, 100, 48, "doctor/\nchecks", AMBER)
    canvas.box(780, 332, 100, 48, "topo/\nhosts", AMBER)
    canvas.line(830, 298, 830, 330)
    for x, y1, y2 in ((122, 68, 98), (337, 68, 98), (552, 68, 98), (717, 68, 248), (830, 68, 248)):
        canvas.line(x, y1, x, y2)
    canvas.line(337, 140, 337, 158)
    canvas.line(337, 208, 337, 248)
    canvas.line(337, 298, 337, 338)
    canvas.line(337, 380, 337, 398)
    canvas.line(830, 380, 830, 398)
    canvas.text(20, 460, "An arrow leads to what a folder includes. tools/ also includes libgdrx and the transport.", "start", size=12)
    return canvas.svg()


def pipeline():
    """Two-shot by GPUDirect RDMA, in the order of StreamOrder with one level of sums."""
    canvas = Canvas("An allReduce between hosts: GPUs and network work on different pieces", 900, 345)
    left, wide = 150, 100
    canvas.text(left + 3.5 * wide, 24, "time, in the order of the stream", bold=True)
    canvas.line(left, 36, left + 7 * wide + 20, 36)
    canvas.text(140, 78, "GPUs of the host,\none stream", "end")
    for number, words in enumerate(("scatter 0", "scatter 1", "add 0", "scatter 2", "add 1", "gather 0", "...")):
        canvas.box(left + number * wide + 4, 56, wide - 8, 48, words, GREEN if words != "..." else PLAIN)
    canvas.text(140, 150, "network, driven by\nthe communicator's\nthread", "end")
    rows = (("shares 0", 1, 2, 140), ("shares 1", 2, 4, 140), ("shares 2", 4, 7, 140), ("sums 0", 3, 5, 195), ("sums 1", 5, 7, 195))
    for words, begin, end, y in rows:
        canvas.box(left + begin * wide + 14, y, (end - begin) * wide - 28, 36, words, AMBER)
        canvas.line(left + begin * wide - 4, 104, left + begin * wide + 16, y - 2, dashed=True)
        if end < 7:
            canvas.line(left + end * wide - 16, y, left + end * wide + 8, 106, dashed=True)
    canvas.text(left, 262, "A piece, as 0 or 1, is a run of the vector. Three are under way at most.\n"
                "Shares: each host sends the others their share of the part that a GPU has scattered.\n"
                "Sums: each host sends its added share to all. Then the GPUs gather.\n"
                "Dashed: counters in pinned memory. A stop, a kernel of one thread, tells or waits there.\n"
                "Through pinned memory nothing is added in the stream: processors add, and gather waits for the sum.", "start", size=12)
    return canvas.svg()
