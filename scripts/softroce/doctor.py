# SPDX-License-Identifier: Apache-2.0
"""Steps of softroce-test: gdrx doctor on good guests and on broken ones, gdrx perf between two."""
import contextlib, json, re

from softroce.common import ctl_ip
from softroce.harness import Wrong, expect

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


LOOK = ["gdrx", "doctor", "--no-proof"]  # emulated CPUs take a minute for a proof


def report(guests, argv=("gdrx", "doctor"), guest=0):
    status, out = guests.run([*argv, "--format", "json"], 150, guest)
    expect("{" in out, f"no report (status {status})", out)
    return json.JSONDecoder().raw_decode(out[out.index("{"):])[0]["findings"]


def says(findings, check, severity, words, fix=""):
    """One of the check's findings has this severity, these words, and a fix with those."""
    of_it = [one for one in findings if one["id"] == check]
    text = json.dumps(of_it, indent=1)
    for one in of_it:
        said = " ".join((one["subject"], one["summary"], one["evidence"]))
        if one["severity"] == severity and words in said and re.search(fix, "\n".join(one.get("fix", []))):
            return
    raise Wrong(f"{check} is not {severity} with '{words}'{' and the fix ' + fix if fix else ''}\n{text}")


@contextlib.contextmanager
def broken(guests, how, mend, guest=0):
    guests.must("run", "-g", str(guest), "--", "sh", "-ec", how)
    try:
        yield
    finally:
        guests.must("run", "-g", str(guest), "--", "sh", "-ec", mend)


def doctor(guests):
    """What is true of a good guest: RDMA works in host memory, and it is no real NIC."""
    found = report(guests)
    for device in ("rxe0", "rxe1"):
        says(found, "rdma-loopback", "OK", f"{device} port 1 host memory: written, read back and equal")
        says(found, "roce-gid", "OK", f"{device} port 1 index")
        says(found, "port-mtu", "OK", f"{device} port 1 9000 bytes")
        says(found, "port-state", "OK", f"{device} port 1 ACTIVE")
    says(found, "roce-gid", "OK", "RoCE v2, IPv4")
    says(found, "dmabuf-verbs", "WARN", "Operation not supported")
    says(found, "rdma-nic", "WARN", "only soft-RoCE")
    says(found, "uverbs-nodes", "OK", "uverbs0")
    return "loopback proven on rxe0 and rxe1; GIDs and MTU judged"


def doctor_faults(guests):
    """Each thing that is broken is found, with the command that mends it."""
    with broken(guests, "ip link set rail0 mtu 576", "ip link set rail0 mtu 9000"):
        says(report(guests, LOOK), "port-mtu", "SLOW", "576", "ip link set rail0 mtu 9000")
    with broken(guests, "ip link set rail0 down", "ip link set rail0 up"):
        says(report(guests, LOOK), "port-state", "WARN", "rxe0 port 1", "ip link set rail0 up")
    limit = "ulimit -l 64; exec "
    user = ["sh", "-c", limit + '"$@"', "sh", *NOBODY, *LOOK]
    says(report(guests, user), "memlock", "FAIL", "64 KiB", "memlock")
    root = ["sh", "-c", limit + '"$@"', "sh", *LOOK]
    says(report(guests, root), "memlock", "OK", "IPC_LOCK")
    node, away = "/dev/infiniband/uverbs0", "/dev/infiniband/away"
    with broken(guests, f"mv {node} {away}", f"mv {away} {node}"):
        says(report(guests, LOOK), "uverbs-nodes", "FAIL", "uverbs0 is missing", "modprobe ib_uverbs|--device /dev/infiniband")
    with broken(guests, "ip addr flush dev rail1 scope global", "ip addr add 10.77.11.1/24 dev rail1"):
        says(report(guests, LOOK), "roce-gid", "WARN", "link-local", "ip addr add")
    return "MTU 576, port down, 64 KiB as a user and as root, no node, no address"


def doctor_cluster(guests):
    """Hosts that differ are told apart, and NICs that do not reach each other."""
    def cluster():
        return guests.run(["mpirun", "-np", "2", "gdrx", "doctor", "--cluster"], 500)

    with broken(guests, "ip link set rail0 mtu 1500", "ip link set rail0 mtu 9000", guest=1):
        status, out = cluster()
    expect(status == 3 and re.search(r"^rxe0 port 1 MTU\n +\S+ +g\d\n +\S+ +g\d$", out, re.M), f"status {status}: MTU", out)
    expect("of one name reach each other: 4 of 4 pairs" in out, "all should reach", out)
    guests.must("drop", "0", "1", "on")
    try:
        status, out = cluster()
    finally:
        guests.must("drop", "0", "1", "off")
    expect(status == 1 and "reach each other: 2 of 4 pairs" in out and "g0 rxe1 port 1 to g1" in out,
           f"status {status}: a rail is cut", out)
    return "an MTU that differs; 4 of 4 pairs of NICs, 2 of 4 with a rail cut"


def perf(guests):
    """Two guests: every test, both ways, and what the other one has not."""
    def between(far_device, *argv):
        serving = guests.start(["env", "GDRX_SOCKET_IFNAME=ctl", "gdrx", "perf", "--listen", "-d", far_device], 300, guest=1)
        try:
            serving.wait_for("^listening on", 1, 60)
            status, out = guests.run(["gdrx", "perf", ctl_ip(1), "-d", "rxe0", "-u", "19", *argv], 150)
            served = serving.finish(60)
        finally:
            serving.process.kill()
        return status, out, served

    figures = []
    for test, bytes in (("write_bw", 65536), ("read_bw", 65536), ("write_lat", 8), ("read_lat", 8)):
        status, out, (served, there) = between("rxe0", "--test", test, "-s", str(bytes), "-n", "50")
        skipped = " +[0-9.]+" if test.endswith("lat") else ""  # the least: what is typical stands behind it
        row = re.search(rf"^ +{bytes} +50{skipped} +([0-9.]+)", out, re.M)
        expect(status == 0 and row and "the data was compared: equal" in out, f"{test}: status {status}", out)
        expect(served == 0 and test in there and "equal" in there, f"{test}: the other side: status {served}", there)
        figures.append(f"{test} {row.group(1)} {'us' if test.endswith('lat') else 'Gb/s'}")
    status, out, _ = between("rxe0", "-s", "65536", "-n", "50", "-b")
    expect(status == 0 and re.search(r"^ +65536 +100 ", out, re.M), f"both ways: status {status}", out)
    status, out, (served, there) = between("rxe7")
    expect(status == 1 and "the other host: no RDMA device rxe7" in out, f"no such device there: status {status}", out)
    expect(served == 1 and "rxe7" in there, f"no such device: status {served}", there)
    return ", ".join(figures)


STEPS = [doctor, doctor_faults, doctor_cluster, perf]
