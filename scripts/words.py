# SPDX-License-Identifier: Apache-2.0
"""The figures in the READMEs' own sentences, made from results/ and from the limits of tests: `scripts/table --words`
and its likes. A function a README; each line must stand there."""
import json, math, pathlib, re, statistics, subprocess

root = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20


def text(name):
    return (root / name).read_text()


def load(name):
    return json.loads(text(f"results/{name}.json"))


def whole(value):
    """Rounded, halves up."""
    return f"{math.floor(value + 0.5):,}"


def span(values, form=".2f"):
    return f"{min(values):{form}} to {max(values):{form}}"


def rows_of(name, key="time_us"):
    """What a run says of each number of bytes."""
    return {row["bytes"]: row[key]["p50"] if key == "time_us" else row[key] for row in load(name)["rows"]}


def nccl_ratio(row, rivals=("nccl", "nccl_registered")):
    """Of the better of NCCL's plain and registered buffers."""
    return min(row["vs"][rival]["p50"] for rival in rivals) / row["time_us"]["p50"]


def ratios(name, most=1 << 62, rivals=("nccl", "nccl_registered")):
    return {row["bytes"]: nccl_ratio(row, rivals) for row in load(name)["rows"] if row["bytes"] <= most}


def before_and_after(name):
    """The columns of a text file: bytes, before, after."""
    return {int(a): (float(b), float(c)) for a, b, c in
            re.findall(r"^ *(\d+) +([\d.]+) +([\d.]+)$", text(f"results/{name}.txt"), re.M)}


def known(algorithm, ranks):
    """Times in the table that comes with gdrx."""
    table = json.loads(text("collectives/tune/known/nvidia-h200.json"))["allreduce"]
    return dict(next(way["us"] for way in table if (way["algorithm"], way["ranks"]) == (algorithm, ranks)))


def main_readme(plugin_runs, networks):
    best = {gpus: ratios(f"gpu-{gpus}-graph") for gpus in (2, 4)}
    most = [ratio for run in best.values() for size, ratio in run.items() if size < 2 << 30]
    lines = [f"by {span(most)} times, and at 2 GiB {best[2][2 << 30]:.2f} and {best[4][2 << 30]:.3f} times as fast"]
    assert min(most) > 1
    shared = ratios("gpu-8-on-2-mps")
    slow = [size for size, ratio in shared.items() if ratio < 1]
    assert slow == [size for size in shared if size >= slow[0]]
    lines.append(f"Where 8 ranks share 2 GPUs it is faster to {slow[0] // 4 // MIB} MiB, and "
                 + " and ".join(f"{shared[size]:.2f}" for size in slow) + " times as fast at "
                 + " and ".join(f"{size // MIB}" for size in slow) + " MiB")
    host = max(row["host_us"] for gpus in (2, 4) for row in load(f"gpu-{gpus}-stream")["rows"])
    lines.append(f"costs the host under {math.ceil(host)} us")
    kill = load("kill-8-loaded")["rows"]
    lines.append(f"{sum(row['named'] for row in kill)} of {sum(row['rounds'] for row in kill)} named in time, median "
                 + " and ".join(whole(row["median_ms"]) for row in kill) + " ms, worst "
                 + " and ".join(whole(row["worst_ms"]) for row in kill) + " ms")
    two, four = plugin_runs(2)[0], plugin_runs(4)[0]
    times = lambda runs, size: [f"{runs[size, network]['us']:.0f}" for network in networks]
    lines.append("all-reduce of 16 MiB took {} us over Socket, {} over gdrx and {} with".format(*times(two, 16 * MIB)))
    lines.append("8 B took {}, {} and {}".format(*times(two, 8)))
    lines.append("they had taken {}, {} and {}, and 8 B {}, {} and {}".format(*times(four, 16 * MIB), *times(four, 8)))
    return lines


def host_words():
    two, sixteen = load("cpu-2-auto"), load("cpu-16-auto")
    limit = re.search(r"trace_cost> (\d+)", text("tests/trace/CMakeLists.txt"))[1]
    return [f"at 2 ranks geometric means of MPI / gdrx of {span(two['means_of_runs'])}, the least row "
            f"{two['least_row_of_runs']:.2f}",
            f"{span(sixteen['means_of_runs'])}, the least row {sixteen['least_row_of_runs']:.2f}",
            f"takes at most {limit} instructions"]


def kernel_words():
    rings = re.findall(rf"^2 {1 << 30} ring (\d+ \d+) \d+ (\d) \d ([\d.]+)$", text("results/gpu-kernel-variants-2.txt"), re.M)
    ring = lambda sets, shape="": min(float(us) for at, number, us in rings if int(number) == sets and shape in at)
    lines = [f"{whole(ring(1, '264 256'))} us with two blocks of 256 threads, {whole(ring(1, '132 512'))} with one of 512",
             f"was slower, {whole(ring(2))} and more"]
    tiles, beside, two_shot = known("one-shot", 2), known("ring", 2), known("two-shot", 4)
    both = lambda size, digits: (f"{tiles[size]:.{digits}f}", f"{beside[size]:.{digits}f}")
    lines.append("8 MiB take {} us (ring {}), 16 MiB {} ({}), 64 MiB {} ({};".format(
        *both(8 * MIB, 1), *both(16 * MIB, 1), *both(64 * MIB, 0)))
    ring4 = known("ring", 4)[16 * MIB]
    lines.append(f"costs {(two_shot[16 * MIB] / ring4 - 1) * 100:.0f}% at 16 MiB on 4 GPUs, {two_shot[16 * MIB]:.1f} us "
                 f"instead of {ring4:.1f}")
    lines.append(f"(8 B: {tiles[8]:.2f} us there, {rows_of('gpu-2-graph')[8]:.2f} [now]")
    return lines


def change_words():
    """What changes of the kernels did."""
    four, two = before_and_after("gpu-one-shot-4"), before_and_after("gpu-one-shot-2")
    assert {size: after for size, (_, after) in four.items()} == {
        size: round(us, 2) for size, us in rows_of("gpu-4-graph").items()}
    saved = lambda run, most: [before - after for size, (before, after) in run.items() if size <= most]
    pair = lambda run, size: "{:.2f} to {:.2f}".format(*run[size])
    lines = [f"{span(saved(four, 4 * MIB), '.1f')} us off every call to 4 MiB (4 GPUs: 4 KiB {pair(four, 4096)}, 64 KiB "
             f"{pair(four, 65536)}, 1 MiB {pair(four, MIB)};",
             f"{span(saved(two, MIB))} us less to 1 MiB on 2 GPUs (8 B {pair(two, 8)}, 64 KiB {pair(two, 65536)};"]
    slower = {size: (after / before - 1) * 100 for size, (before, after) in four.items()}
    assert all((by > 0) == (size >= 256 * MIB) for size, by in slower.items() if size >= 8 * MIB)
    plain = next(row for row in load("gpu-4-graph")["rows"] if row["bytes"] == 2 << 30)
    lines.append(f"From 256 MiB on 4 GPUs the ring is up to {max(slower.values()):.1f}% slower than before the last change of "
                 f"kernels ({whole(four[2 << 30][0])} us for 2 GiB then")
    lines.append(f"at 2 GiB, {whole(four[2 << 30][1])} us, {(1 / nccl_ratio(plain) - 1) * 100:.1f}% slower than NCCL")
    slower = {size: (after / before - 1) * 100 for size, (before, after) in two.items() if size >= 8 * MIB}
    late = [f"{by:.1f}" for size, by in slower.items() if by > 0]
    assert list(slower)[-len(late):] == [512 * MIB, 1 << 30, 2 << 30] == [size for size, by in slower.items() if by > 0]
    lines.append(f"to 256 MiB, and {late[0]}, {late[1]} and {late[2]}% slower at 512 MiB, 1 GiB and 2 GiB")
    pauses = re.findall(r"^(\d+): 2 (\d+) ring 256 256 4 1 ([\d.]+)$", text("results/gpu-ring-pauses-2.txt"), re.M)
    none = {size: float(us) for ns, size, us in pauses if ns == "0"}
    lines.append(f"pauses of {span([int(ns) for ns, _, _ in pauses if ns != '0'], 'd')} ns between polls make it "
                 f"{span([(float(us) / none[size] - 1) * 100 for ns, size, us in pauses if ns != '0'], '.0f')}% slower")
    return lines


def rival_words():
    """GPUs beside NCCL, and what bounds them."""
    small = {gpus: (ratios(f"gpu-{gpus}-graph", MIB, ("nccl",)).values(), ratios(f"gpu-{gpus}-graph", MIB).values())
             for gpus in (2, 4)}
    pairs = load("gpu-2-p2p")
    slowest = lambda key: whole(min(pair[key] for pair in pairs["pairs"]))
    flag = max(pair["round_trip_us"] for pair in pairs["pairs"]) / 2
    two = rows_of("gpu-2-graph")
    lines = [f"{span(small[2][0], '.1f')} times plain NCCL and {span(small[2][1])} times the better of plain and registered",
             f"{span(small[4][0], '.1f')} and {span(small[4][1])}. A call takes {two[8]:.1f} us on 2 GPUs, of which one flag "
             f"over NVLink is {flag:.2f}",
             f"16 MiB take {two[16 * MIB]:.1f} us there: the bytes alone take "
             f"{16 * MIB / pairs['store_all_gbytes'] / 1e3:.0f} at the {pairs['store_all_gbytes']:.0f} GB/s",
             f"a load from a peer runs at {slowest('load_both_gbytes')} GB/s, a store at {slowest('store_both_gbytes')}"]
    ours = {row["buffers_registered"]: row["time_us"]["p50"] for row in load("gpu-2-registered")["rows"]
            if row["bytes"] == 16 * MIB}
    alone = re.search(rf"^direct 4 {64 * MIB} wrong 0: ([\d.]+)", text("results/gpu-direct-variants.txt"), re.M)[1]
    lines.append(f"(2 GPUs, 16 MiB: {ours[True]:.1f} us, ring {ours[False]:.1f}; 4 GPUs, 64 MiB: {float(alone):.0f}, ring "
                 f"{rows_of('gpu-4-graph')[64 * MIB]:.0f};")
    newer = ratios("gpu-2-nccl230")
    middle = [ratio for size, ratio in newer.items() if 8 < size <= MIB]
    lines.append(f"{newer[8]:.2f} at 8 B and {span(middle, '.1f')} times to 1 MiB, at least {min(newer.values()):.2f}.")
    return lines


def shared_gpu_words():
    """8 ranks on 2 GPUs, and calls that follow each other."""
    order = re.search(r"^N=8 (\d+) bytes: ring by rank ([\d.]+), by the bus", text("results/gpu-ring-order-on-2.txt"), re.M)
    killed = re.search(r"^plain: (\d+) of \1 named, median \d+ ms, worst (\d+) ms", text("results/gpu-kill-8-on-2-mps.txt"), re.M)
    calls = [re.search(r"^(\d+) calls, (\d) ranks, 0 wrong words$", text(f"results/gpu-stress-{name}.txt"), re.M)
             for name in ("2", "4", "8-on-2")]
    assert len({run[1] for run in calls}) == 1
    return [f"{whole(float(order[2]))} us for {int(order[1]) // MIB} MiB with 8 ranks",
            f"killed under load {killed[1]} times, and named by all within {killed[2]} ms each time",
            f"none wrong: {int(calls[0][1]):,} on {calls[0][2]} GPUs (`gpu_stress`",
            f"{int(calls[2][1]):,} calls of {calls[2][2]} ranks on 2 GPUs with random delays: none wrong"]


def killed_words(tests):
    rounds = re.findall(r"^\w+: (\d+) of \1 named, median \d+ ms, worst (\d+) ms", tests, re.M)
    (plain, _), (recovered, _) = rounds
    return (f"killed {plain} times without recovery and {recovered} times with it, named within "
            f"{max(int(worst) for _, worst in rounds)} ms each time")


def one_gpu_words():
    """Ranks that share one GPU as hosts of their own."""
    tests = text("results/gpu-tests-on-1.txt")
    programs = [tuple(map(int, found)) for found in re.findall(r"^gpu_\w+: (\d+) of (\d+) passed, (\d+) skipped", tests, re.M)]
    assert programs and all(passed + skipped == total for passed, total, skipped in programs)
    engine, kernel = re.search(r"^ *8 graph +([\d.]+) +([\d.]+)", text("results/gpu-copies-on-1.txt"), re.M).groups()
    names = ("2x1-on-1-mps", "2x1-on-1-mps-graph", "2x1-on-1-mps-one-cpu", "4x1-on-1-mps", "2x2-on-1-mps",
             "2x2-on-1-mps-reproducible")
    for name in names:
        hosts, ranks = int(name[0]), int(name[0]) * int(name[2])
        for row in load("gpu-" + name)["rows"]:
            assert (row["wrong"], row["hosts"], row["ranks"]) == (0, hosts, ranks), name
    stream, graph, four = (load("gpu-" + name)["rows"] for name in (names[0], names[1], names[3]))
    assert load("gpu-" + names[0])["nccl"] == load("gpu-" + names[1])["nccl"] == "2.28.3"
    theirs = lambda row: min(row["vs"][rival]["p50"] for rival in ("nccl", "nccl_registered"))
    ours = lambda row: row["time_us"]["p50"]
    plain, ordered = rows_of("gpu-2x2-on-1-mps"), rows_of("gpu-2x2-on-1-mps-reproducible")
    price = {size: ordered[size] / us for size, us in plain.items()}
    yielded = re.search(r"8 bytes took ([\d.]+) us", tests)[1]
    small = [row["host_us"] for row in stream if row["bytes"] <= 32768]
    nccls = [row["vs"]["nccl"]["host_us"] for row in stream if row["bytes"] <= 32768]
    sizes = text("results/gpu-relay-on-1.txt")
    first = lambda title: sizes.split(f"\n{title}\n")[1].split("\n")[0]  # of 8 bytes
    relay = re.search(r"several +([\d.]+) host +([\d.]+) now +([\d.]+) host +([\d.]+)", first("4 ranks, 2 a host, stream"))
    replay = re.search(r"several +([\d.]+) now +([\d.]+)", first("4 ranks, 2 a host, graph"))
    lock = re.search(r"before +([\d.]+) host +([\d.]+) now +([\d.]+) host +([\d.]+)", first("2 ranks, 1 a host, stream"))
    direct = re.search(r"several +[\d.]+ host +([\d.]+) now +[\d.]+ host +([\d.]+)",
                       first("2 ranks, 1 a host, stream, GPUDirect by simulated NICs"))
    launch = re.search(r"^launch [\d.]+ early ([\d.]+) MPS [\d.]+ early ([\d.]+)", sizes, re.M)
    return [f"all {sum(passed for passed, _, _ in programs)} tests pass which one GPU",
            f"8 bytes take {ours(graph[0]):.1f} us in a graph, where NCCL takes {theirs(graph[0]):.1f}, and {ours(stream[0]):.1f} on a stream "
            f"(NCCL {theirs(stream[0]):.1f})",
            f"{span([nccl_ratio(row) for row in stream + graph], '.1f')} times as fast at every size",
            f"4 hosts of one rank {span([nccl_ratio(row) for row in four], '.1f')} times",
            f"one kernel takes 8 bytes on a stream from {relay[1]} to {relay[3]} us, in a graph from {replay[1]} to {replay[2]}, and costs "
            f"the host {relay[4]} instead of {relay[2]}",
            f"and by GPUDirect with simulated NICs {direct[2]} instead of {direct[1]}",
            f"from {lock[1]} to {lock[3]} us (the host's part from {lock[2]} to {lock[4]})",
            f"A call to 32 KiB costs the host {span(small, '.1f')} us there (NCCL {span(nccls, '.1f')}), of which CUDA's launch "
            f"is {launch[2]} to {launch[1]}",
            f"took {float(engine):.1f} us in a graph, and {float(kernel):.1f}",
            f"took {span([by for size, by in price.items() if size <= 32768], '.1f')} times as long to 32 KiB",
            f"and {price[32 * MIB]:.1f} times at 32 MiB",
            f"8 bytes take {rows_of('gpu-2x1-on-1-mps-one-cpu')[8]:.1f} us a call then",
            f"[{float(yielded):.0f}](../results/gpu-tests-on-1.txt) when it only yielded,",
            f"and {ours(graph[0]):.1f} with `--bind-to none`", killed_words(tests)]


def collectives():
    return host_words() + kernel_words() + change_words() + rival_words() + shared_gpu_words() + one_gpu_words()


def threads_words(best):
    """The plugin's threads that copy."""
    parts = text("results/nccl-2xh200-copy-threads.txt").split("\n## ")
    at = lambda line, size: float(re.search(rf"\b{size}:([\d.]+)", line)[1])
    named = lambda part, name: [line for line in parts[part].splitlines() if line.startswith(name + ":")]
    newest = next(number for number, part in enumerate(parts) if part.startswith("At 8804f63b5b22"))
    speed = {number: 128 * MIB / 1e3 / statistics.median(at(line, 128 * MIB) for line in named(newest, f"threads {number}"))
             for number in (1, 2, 4, 6, 8)}
    lines = [f"{speed[1]:.1f} GB/s at 128 MiB with one", f"{speed[2]:.1f} with two, {speed[4]:.1f} with four, {speed[6]:.1f} "
             f"with six, {speed[8]:.1f} with eight"]
    told = lambda name, size: at(named(0, "threads 6" + name)[0], size)
    fewer, more = [f", GDRX_NET_SPEED={speed}000 ({channels} channels rather than 4)" for speed, channels in ((20, 2), (80, 8))]
    lines.append(f"{128 * MIB / 1e3 / told(fewer, 128 * MIB):.1f} rather than {128 * MIB / 1e3 / told('', 128 * MIB):.1f} at "
                 "128 MiB with two of NCCL's channels")
    assert told(more, 512 * MIB) > 0.99 * told("", 512 * MIB)
    assert all(told(more, size) > told("", size) for size in (32768, 131072, 524288))
    busy = [whole(at(named(1, name)[0], 128 * MIB) / 1e3) for name in ("socket", "threads1", "threads6")]
    lines.append("128 MiB took {} ms over Socket, {} with one thread and {} with six".format(*busy))
    host = text("results/nccl-2xh200-shared-host.txt")
    copies = [float(speed) for threads, speed in re.findall(r"^memcpy (\d+) threads: ([\d.]+)", host, re.M) if int(threads) >= 8]
    each = best[128 * MIB, "gdrx"]["bus_gbs"]
    lines.append(f"`memcpy` move {whole(min(copies))} to {whole(max(copies))} GB/s, and the 2 ranks' 12 threads {whole(4 * each)}")
    lines.append(f"what it receives, {each:.1f} GB/s)")
    return lines + shared_words(host)


def shared_words(host):
    """Several ranks a GPU: the better of two runs, in ms."""
    runs = lambda ranks: {name: {int(size): min(float(a), float(b)) / 1e3 for size, a, b in
                                 re.findall(r"(\d+):([\d.]+)/([\d.]+)", line)}
                          for name, line in re.findall(rf"^N={ranks} (Socket|T=\d): (.*)$", host, re.M)}
    eight, four = runs(8), runs(4)
    least = lambda run, size: min(run, key=lambda name: run[name][size])
    assert [least(eight, size) for size in (2 * MIB, 16 * MIB)] == ["T=3", "T=3"]
    assert {least(four, size) for size in (2 * MIB, 16 * MIB, 128 * MIB)} == {"T=6"}
    at = lambda run, name, size: f"{run[name][size * MIB]:.1f}"
    large = [eight[name][128 * MIB] for name in ("T=4", "T=6")]
    assert max(large) < eight["T=3"][128 * MIB]
    return [f"Three threads are best there to 16 MiB ({at(eight, 'T=3', 16)} ms; Socket {at(eight, 'Socket', 16)}), at 128 MiB "
            f"four and six are up to {(eight['T=3'][128 * MIB] / min(large) - 1) * 100:.0f}% quicker ({min(large):.1f} ms; "
            f"Socket {at(eight, 'Socket', 128)})",
            f"six are best: {at(four, 'T=6', 16)} ms for 16 MiB and {at(four, 'T=6', 128)} for 128, Socket "
            f"{at(four, 'Socket', 16)} and {at(four, 'Socket', 128)}"]


def protocol_words():
    """LL128 against what NCCL takes by itself; NCCL told another speed."""
    us = lambda line: {int(size): float(time) for size, time in re.findall(r"\b(\d+):([\d.]+)", line)}
    runs = {name: us(line) for name, line in
            re.findall(r"^(\w+): (.*)$", text("results/nccl-2xh200-protocols.txt"), re.M)}
    less = {size: (1 - runs["LL128"][size] / runs["auto"][size]) * 100 for size in runs["auto"]}
    by = lambda size: whole(abs(less[size]))
    lines = [f"takes {by(128)}% less time for 128 B, {by(2048)} for 2 KiB, {by(8192)} for 8 KiB, {by(32768)} for 32 KiB, "
             f"{by(131072)} for 128 KiB, {by(524288)} for 512 KiB and {by(2 * MIB)} for 2 MiB, but {by(512)}% more for 512 B, "
             f"{by(32)} for 32 B and {by(8)} for 8 B"]
    assert [size for size, gain in less.items() if gain < 0] == [8, 32, 512]
    channels = text("results/nccl-4xh200-channels.txt")
    told = {speed: us(re.search(rf"^GDRX_NET_GPU=1 .* told {speed}\b.*$", channels, re.M)[0]) for speed in (400000, 50000)}
    at = lambda size: f"{whole(told[400000][size])} us rather than {whole(told[50000][size])}".replace(",", "")
    lines.append(f"400000: on 4 GPUs 128 MiB took {at(128 * MIB)}, 16 MiB {at(16 * MIB)}")
    return lines


def nap_words():
    latency = {}
    for line in text("results/net-plugin-naps-softroce.txt").splitlines():
        if re.match(r" +(0|500) +8 ", line):
            latency.setdefault(line.split()[0], []).append([float(word) for word in line.split()[2:]])
    nap, none = ([statistics.median(column) for column in zip(*latency[name])] for name in ("500", "0"))
    return [f"a message of 8 bytes takes {nap[0]:.0f} us rather than {none[0]:.0f}",
            f"within {nap[1] / 1e3:.2f} ms rather than {none[1] / 1e3:.1f}, and with eight under way {nap[3] / none[3]:.1f} times"]


def printed(script, result):
    """The table that a script makes of a result."""
    return subprocess.run([root / "scripts" / script, "--table", root / "results" / f"{result}.json"], check=True,
                          capture_output=True, text=True).stdout.splitlines()


SEVEN = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv"}
NONE_WRONG = ("nccl-2xh200-1g", "nccl-4xh200-1g", "nccl-2xh200-only-one-version", "nccl-2.30-2xh200", "nccl-8-on-2xh200",
              "nccl-2xh200-host-protocols")


def plugin(plugin_runs):
    for name in NONE_WRONG:
        rows = [row for run in load(name)["runs"] for row in run["rows"]]
        assert {row["collective"] for row in rows} == SEVEN and not any(row["wrong"] for row in rows), name
    runs = {gpus: plugin_runs(gpus)[0] for gpus in ("2", "4", "8 on 2")}
    slow = lambda run: {size: run[size, "gdrx-gpu"]["us"] / run[size, "gdrx"]["us"] for size, network in run
                        if network == "gdrx" and run[size, "gdrx-gpu"]["us"] > run[size, "gdrx"]["us"]}
    late = {gpus: slow(run) for gpus, run in runs.items()}
    few = max(max(late["2"]), max(late["4"])) // 1024
    lines = [f"to {few} KiB (with 8 ranks: {max(late['8 on 2']) // 1024} KiB) they take up to "
             f"{max(max(run.values()) for run in late.values()):.1f} times as long as through host memory"]
    return (lines + threads_words(runs["2"]) + protocol_words() + nap_words()
            + printed("softroce-net-perf", "net-plugin-softroce"))


def transport():
    steps = {(step, size): f"{limit}" for step, size, limit in
             re.findall(r"^(\w+) (\d+) (\d+) ", text("tests/fabric/cost.sh"), re.M)}
    row = lambda name, step: f"| {name} | {steps[step, '8']} | {steps.get((step, '65536'), '')} |".replace("|  |", "| |")
    return [row("`Endpoint::post`", "post"), row("the receiver's `poll` that reports it", "receive"),
            row("the sender's `poll` that reports it done", "complete"), row("a `poll` with nothing to do, one peer", "idle"),
            *printed("softroce-perf", "net-perf-softroce")]


def verbs():
    flaps = load("flaps-softroce")
    assert flaps["wrong"] == 0
    return [f"{flaps['counted']} flaps of a rail that each caused a resend, {flaps['resent']} parts sent again, no sum wrong"]
