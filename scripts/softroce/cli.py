# SPDX-License-Identifier: Apache-2.0
"""The command line."""
import argparse, os, sys, time

from softroce.cluster import Cluster
from softroce.common import Failure, Unable, say
from softroce.faults import Faults
from softroce.make_root import make_root
from softroce.native import native
from softroce.switch import switch


TEXT = """A RoCE cluster on one machine: QEMU guests with the distribution's kernel and soft-RoCE (rdma_rxe).

  scripts/softroce-cluster up -n 2
  scripts/softroce-cluster run -- mpirun -np 4 allreduce_test --transport verbs
  scripts/softroce-cluster link 1 0 down
  scripts/softroce-cluster down

Each guest sees this machine's files read-only below a layer of its own, so programs and libraries
are the machine's. docs/softroce-cluster.md has the picture, the commands and the figures.
"""


def parse():
    parser = argparse.ArgumentParser(prog="softroce-cluster", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=TEXT)
    parser.add_argument("--name", default=os.environ.get("GDRX_CLUSTER", "default"), help="which cluster, for several at once")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    verb = verbs.add_parser("up", help="boot the guests")
    verb.add_argument("-n", type=int, default=2, help="guests (2)")
    verb.add_argument("--rails", type=int, default=2, help="NICs with soft-RoCE in each (2)")
    verb.add_argument("--cpus", type=int, default=2, help="CPUs of each (2: a polling program starves the driver on one)")
    verb.add_argument("--memory", type=int, default=1536, help="MiB of each (1536)")
    verb.add_argument("--mtu", type=int, default=9000, help="of the rails (9000: RoCE messages in packets of 4096)")
    verb.add_argument("--accel", choices=["auto", "kvm", "tcg"], default="auto")
    verb.add_argument("--share", action="append", default=[], metavar="DIR", help="a folder that guests may write, at the same path")
    verb.add_argument("--deadline", type=float, default=0, help="seconds for the boot (90 with KVM, 300 without)")
    verb.add_argument("--root", default="/", metavar="DIR",
                      help="a distribution's files, which guests see in place of this machine's (the command root makes such a folder); kernel and QEMU from it")
    verb.add_argument("--native", action="store_true", help="no guests: soft-RoCE of the running kernel")
    verb.add_argument("--netdev", help="with --native: which netdevs, by commas")
    verb = verbs.add_parser("root", help="make a folder for up --root: Debian 12, a kernel with soft-RoCE, QEMU")
    verb.add_argument("folder")
    verb = verbs.add_parser("run", help="run a command in guest 0, or in another, or in all")
    verb.add_argument("-g", "--guest", type=int, default=0)
    verb.add_argument("--all", action="store_true", help="in each guest, one after the other")
    verb.add_argument("--deadline", type=float, default=600, help="seconds (600); exit status 124 past it")
    verb.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    verb = verbs.add_parser("shell", help="a shell in a guest")
    verb.add_argument("guest", type=int, nargs="?", default=0)
    verbs.add_parser("status", help="guests, rails, ports")
    verbs.add_parser("down", help="end everything")
    verbs.add_parser("refresh", help="let guests see files that changed on this machine (a new build)")
    verb = verbs.add_parser("link", help="carrier of a rail's NIC: pull the cable, put it back")
    verb.add_argument("guest", type=int)
    verb.add_argument("rail", type=int)
    verb.add_argument("to", choices=["up", "down"])
    verb = verbs.add_parser("netem", help="loss, delay and more on what a rail sends: netem 0 1 loss 5%% delay 20ms; netem 0 1 clear")
    verb.add_argument("guest", type=int)
    verb.add_argument("rail", type=int)
    verb.add_argument("rule", nargs=argparse.REMAINDER)
    verb = verbs.add_parser("drop", help="RoCE packets of a rail vanish: both ways (on), or only those that arrive (in: data lands, its acknowledgement is lost)")
    verb.add_argument("guest", type=int)
    verb.add_argument("rail", type=int)
    verb.add_argument("to", choices=["on", "in", "off"])
    verb = verbs.add_parser("poweroff", help="a guest's power is cut")
    verb.add_argument("guest", type=int)
    verb = verbs.add_parser("poweron", help="a guest that is off boots again")
    verb.add_argument("guest", type=int)
    return parser.parse_args()


def dispatch():
    if sys.argv[1:2] == ["--name"] and sys.argv[3:] == ["switch"]:
        return switch(Cluster(sys.argv[2]))
    options = parse()
    if options.verb == "root":
        return make_root(options.folder)
    cluster = Cluster(options.name)
    if options.verb == "up":
        return native(cluster, options) if options.native else cluster.up(options)
    if options.verb == "down":
        return cluster.down()
    cluster.load()
    if options.verb == "run":
        argv = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
        if not argv:
            raise Failure("run: what? softroce-cluster run -- ibv_devinfo")
        if options.all and not cluster.facts["native"]:
            return max([cluster.run(g, argv, options.deadline, prefix=f"g{g}: ") for g in range(cluster.facts["guests"])])
        return cluster.run(options.guest, argv, options.deadline)
    if options.verb == "shell":
        # Without the user's start-up files: what is quick here may take minutes in emulation.
        argv = ["env", f"PS1=g{options.guest}:\\w\\$ ", "bash", "--noprofile", "--norc", "-i"]
        return cluster.run(options.guest, argv, None, want_tty=os.isatty(0))
    if options.verb == "status":
        return cluster.status()
    if options.verb == "refresh":
        for guest in range(cluster.facts["guests"]):
            if cluster.alive(guest):
                cluster.agent(guest).ask({"do": "refresh"}, 60)
    elif options.verb == "link":
        Faults(cluster).link(options.guest, options.rail, options.to)
    elif options.verb == "netem":
        Faults(cluster).netem(options.guest, options.rail, options.rule)
    elif options.verb == "drop":
        Faults(cluster).drop(options.guest, options.rail, options.to)
    elif options.verb == "poweroff":
        Faults(cluster).rail(options.guest, 0)
        cluster.end(str(options.guest))
    elif options.verb == "poweron":
        Faults(cluster).rail(options.guest, 0)
        if cluster.alive(options.guest):
            raise Failure(f"guest {options.guest} is on")
        cluster.start(options.guest)
        cluster.wait_ready(options.guest, time.monotonic() + (90 if cluster.facts["accel"] == "kvm" else 300))
    return 0


def main():
    try:
        sys.exit(dispatch() or 0)
    except Failure as failure:
        say(str(failure))
        sys.exit(77 if isinstance(failure, Unable) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
