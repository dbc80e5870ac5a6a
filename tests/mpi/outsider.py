#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks every TCP port on which the processes of a job listen, while it runs, as anybody could who
reaches this host: silence, garbage, other protocols, floods of 1,000 connections, and whatever an
honest rank was seen to send, again. The job has to end right, and at most --ratio times later than
beside a process that burns as much processor time, when the outsider did.

  outsider.py [--rounds N] [--ratio R] [--process NAME] [--least-ports N] [--none] COMMAND...

--none: there must be no port at all. --process: the name of the job's processes (of COMMAND's last
program otherwise); what mpirun itself listens on is not ours. Neither is what Open MPI listens on in
each rank, two of its three ports: with `mpirun --mca btl self,vader` there are none of those.
"""
import argparse, json, os, pathlib, random, re, resource, select, signal, socket, statistics, struct, subprocess, sys, tempfile, threading, time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from provenance import commit, machine

FLOOD = 1000
LISTENING = "0A"


def descendants(root):
    """Process ids below `root`, itself included."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def address(text, family):
    host, port = text.split(":")
    raw = bytes.fromhex(host)
    words = b"".join(raw[i:i + 4][::-1] for i in range(0, len(raw), 4))
    ip = socket.inet_ntop(family, words)
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(ip, ip), int(port, 16)


def listeners(root, name):
    """(ip, port) of each listening TCP socket of the processes below `root` that are called `name`."""
    inodes = set()
    for pid in descendants(root):
        try:
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() != name[:15]:
                continue
            for link in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(link.path)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
        except OSError:
            continue
    found = set()
    for file, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        try:
            lines = pathlib.Path(file).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == LISTENING and fields[9] in inodes:
                found.add(address(fields[1], family))
    return found


class Sniffer:
    """What who connects sends first on the loopback interface, if we may look: while a job begins."""

    def __init__(self):
        try:
            self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
            self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            self.raw.bind(("lo", 0))
            self.raw.setblocking(False)
        except (OSError, AttributeError):
            self.raw = None
        self.first = {}  # (source port, port): bytes
        self.until = None

    def look(self, ports):
        """For a second since there were ports, all of which are known then."""
        now = time.monotonic()
        if self.until is None and ports:
            self.until = now + 1
        if self.until is not None and now > self.until and self.raw:
            self.raw.close()
            self.raw = None
            self.first = {at: seen for at, seen in self.first.items() if at[1] in ports}
        for _ in range(2000 if self.raw else 0):
            try:
                packet = self.raw.recv(65536)
            except OSError:
                return
            if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            head = (packet[0] & 15) * 4
            at = struct.unpack("!HH", packet[head:head + 4])
            data = packet[head + (packet[head + 12] >> 4) * 4:]
            seen = self.first.get(at, b"")
            if data and len(seen) < 4096 and len(self.first) < 1024:
                self.first[at] = seen + data

    def heard(self, port):
        """What an honest one said to this port."""
        return [seen for at, seen in self.first.items() if at[1] == port]


def ucx_packets():
    """What UCX's TCP transport sends: a request to connect, then a PUT to an address in the packet."""
    magic = struct.pack("<Q", 0xCAFEBABE12345678)
    connect = struct.pack("<BIB", 32, 64, 1) + os.urandom(63)
    put = struct.pack("<BI", 33, 24) + struct.pack("<QQQ", 0x400000, 8, 1) + b"\xff" * 8
    return [magic + connect + put, connect + put, put * 20]


def words(sniffer, port):
    """One thing that an outsider may say to this port."""
    choices = [os.urandom(random.randint(1, 4096)), b"GET / HTTP/1.1\r\nHost: gdrx\r\n\r\n", b"\0" * 65536,
               b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(508), b"gdrx" + os.urandom(60),
               *ucx_packets()]
    replays = sniffer.heard(port)
    if replays and random.random() < 0.5:
        replay = random.choice(replays)
        if random.random() < 0.3:  # almost the same
            at = random.randrange(len(replay))
            replay = replay[:at] + os.urandom(1) + replay[at + 1:]
        return replay
    return random.choice(choices)


def connect(target):
    family = socket.AF_INET6 if ":" in target[0] else socket.AF_INET
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setblocking(False)
    one.connect_ex(target)
    return one


def attack(job, ended, name, counts):
    """Until the job has ended. Counts what was tried. Returns what it took: (seconds since the start, seconds of a
    processor since then), again and again."""
    sniffer, held, flooded, targets, looked = Sniffer(), [], {}, set(), 0.0
    start, used = time.monotonic(), time.process_time()
    curve = [(0.0, 0.0)]
    while not ended.is_set():
        if time.monotonic() - looked > 0.02:
            now = listeners(job.pid, name)
            targets |= now
            looked = time.monotonic()
            counts["ports"] = len(targets)
        sniffer.look({port for _, port in targets})
        for target in targets:
            try:
                if target not in flooded or (target in now and time.monotonic() - flooded[target] > 1):
                    flooded[target] = time.monotonic()
                    flood = [connect(target) for _ in range(FLOOD)]
                    counts["flood"] += len(flood)
                    held += flood[:64]  # those say nothing for as long as they may
                one = connect(target)
                writable = select.poll()  # descriptors are many
                writable.register(one, select.POLLOUT)
                writable.poll(50)
                one.send(words(sniffer, target[1]))
                counts["said"] += 1
                counts["replays"] = sum(len(sniffer.heard(port)) for _, port in targets)
                held.append(one)
            except OSError:
                counts["refused"] += 1
            curve.append((time.monotonic() - start, time.process_time() - used))
        held = held[-512:]
        time.sleep(0.005)
        curve.append((time.monotonic() - start, time.process_time() - used))
    return curve


def burn(curve):
    """A process that takes what an attacker took, when he took it: `curve` is of (seconds since the start, seconds of
    a processor since then). It makes good what others kept it from, and goes on as before where the job takes longer."""
    pid = os.fork()
    if pid == 0:
        start, used, at = time.monotonic(), time.process_time(), 0
        length, total = curve[-1]
        while os.getppid() != 1:
            rounds, now = divmod(time.monotonic() - start, length)
            at = 0 if curve[at][0] > now else at
            while curve[at + 1][0] <= now:
                at += 1
            behind = rounds * total + curve[at][1] - (time.process_time() - used)
            if behind <= 0:
                time.sleep(0.005)
            until = time.process_time() + min(behind, 0.005)
            while time.process_time() < until:
                pass
        os._exit(0)
    return pid


def run(command, beside):
    """Seconds that the command took, which must end with 0, and what `beside(job, ended)` returned."""
    with tempfile.TemporaryFile("w+") as said:
        start, ended, ends = time.monotonic(), threading.Event(), []
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)

        def watch():  # an attacker in the middle of a flood would notice late
            job.wait()
            ends.append(time.monotonic())
            ended.set()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            result = beside(job, ended)
            ended.wait(300)
        finally:
            job.kill()
            watcher.join()
        said.seek(0)
        if job.returncode != 0:
            print(said.read()[-4000:])
            sys.exit(f"outsider: the job ended with {job.returncode}")
    return ends[0] - start, result


def run_beside_a_burner(command, curve):
    """Seconds that the command took, and what the burner took meanwhile."""
    burner = burn(curve)
    try:
        seconds, _ = run(command, lambda job, ended: None)
    finally:
        os.kill(burner, signal.SIGKILL)
        usage = os.wait4(burner, 0)[2]
    return seconds, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ratio", type=float, default=1.2)
    parser.add_argument("--process")
    parser.add_argument("--least-ports", type=int, default=1)
    parser.add_argument("--none", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, help="JSON of the result, beside other rows there")
    parser.add_argument("--row", default="host", help="its name there")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    name = args.process or "allreduce_test"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))
    ratios, rounds = [], []
    for _ in range(args.rounds):
        counts = {"ports": 0, "said": 0, "flood": 0, "refused": 0, "replays": 0}
        attacked, curve = run(args.command, lambda job, ended: attack(job, ended, name, counts))
        used = curve[-1][1]
        if args.none and counts["ports"]:
            sys.exit(f"outsider: {counts['ports']} ports are open, none should be")
        if not args.none and counts["ports"] < args.least_ports:
            sys.exit(f"outsider: found {counts['ports']} ports, at least {args.least_ports} should be there")
        alone, burnt = run_beside_a_burner(args.command, curve)
        ratios.append(attacked / alone)
        rounds.append({"attacked_s": round(attacked, 2), "attacker_cpu_s": round(used, 2),
                       "beside_a_burner_s": round(alone, 2), "burner_cpu_s": round(burnt, 2), **counts})
        print(f"attacked {attacked:.2f} s by {used:.2f} s of a processor ({counts}), beside a process that takes "
              f"{burnt:.2f} s {alone:.2f} s: {ratios[-1]:.2f}", flush=True)
    ratio = statistics.median(ratios)
    print(f"outsider: the job took {ratio:.2f} times as long, at most {args.ratio} is allowed")
    if args.output:
        said = json.loads(args.output.read_text()) if args.output.exists() else {"rows": []}
        said.update({"command": "tests/mpi/outsider.py", "machine": machine(), "commit": commit()})
        row = {"program": args.row, "command": " ".join(args.command), "load_average": round(os.getloadavg()[0], 1),
               "median_ratio": round(ratio, 3), "rounds": rounds}
        said["rows"] = [other for other in said["rows"] if other["program"] != args.row] + [row]
        args.output.write_text(json.dumps(said, indent=1) + "\n")
    sys.exit(0 if args.none or ratio <= args.ratio else 1)


main()
