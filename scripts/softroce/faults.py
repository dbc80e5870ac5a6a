# SPDX-License-Identifier: Apache-2.0
"""What may go wrong on a guest's rail, on command."""
import json, shlex, socket

from softroce.common import ROCE_PORT, Failure, rail_ip


class Faults:
    """Of a cluster that is up, with guests."""

    def __init__(self, cluster):
        self.cluster, self.facts = cluster, cluster.facts

    def rail(self, guest, rail):
        if self.facts["native"]:
            raise Failure("not with --native: there are no guests")
        self.cluster.agent(guest)
        if not 0 <= rail < self.facts["rails"]:
            raise Failure(f"rail {rail}: there are rails 0 to {self.facts['rails'] - 1}")
        return f"rail{rail}"

    def link(self, guest, rail, to):
        """The NIC's carrier: the cable is pulled, or put back."""
        self.qmp(guest, "set_link", name=f"nic-{self.rail(guest, rail)}", up=to == "up")

    def netem(self, guest, rail, rule):
        net = self.rail(guest, rail)
        if not rule:
            raise Failure("netem: which rule? loss 5% delay 20ms, or clear")
        if rule == ["clear"]:
            self.cluster.quiet_run(guest, f"tc qdisc del dev {net} root 2> /dev/null || true")
        else:
            self.cluster.quiet_run(guest, f"tc qdisc replace dev {net} root netem {shlex.join(rule)}")

    def drop(self, guest, rail, to):
        """Always where packets arrive: rxe takes a packet that its own host refuses to send for a
        full queue, and never gives up."""
        net = self.rail(guest, rail)
        for other in range(self.facts["guests"]):
            if other != guest and not self.cluster.alive(other):
                continue
            rule = f"dev {net} ingress pref {100 + guest}"
            script = f"tc qdisc add dev {net} clsact 2> /dev/null || true\ntc filter del {rule} 2> /dev/null || true\n"
            source = "" if other == guest else f"match ip src {rail_ip(guest, rail)}/32"
            if to == "on" or (to == "in" and other == guest):
                script += f"tc filter add {rule} protocol ip u32 {source} match ip dport {ROCE_PORT} 0xffff action drop\n"
            self.cluster.quiet_run(other, script)

    def qmp(self, guest, execute, **arguments):
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(10)
                sock.connect(self.cluster.path(f"g{guest}.qmp"))
                stream = sock.makefile("rw")
                stream.readline()
                for request in ({"execute": "qmp_capabilities"}, {"execute": execute, "arguments": arguments}):
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    while True:
                        answer = json.loads(stream.readline())
                        if "error" in answer:
                            raise Failure(f"guest {guest}: {answer['error']['desc']}")
                        if "return" in answer:
                            break
        except (OSError, ValueError) as error:
            raise Failure(f"guest {guest}'s QEMU does not answer: {error}") from None
