# SPDX-License-Identifier: Apache-2.0
"""Joins more than two guests: one learning Ethernet switch a network, in user space."""
import selectors, socket, struct


def switch(cluster):
    """Joins more than two guests: one learning Ethernet switch a network, in user space."""
    cluster.load()
    facts = cluster.facts
    poll = selectors.DefaultSelector()
    for net in ("ctl", *(f"rail{rail}" for rail in range(facts["rails"]))):
        known = {}
        for guest in range(facts["guests"]):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            sock.bind(cluster.path(f"switch.{guest}.{net}"))
            # A full receiver holds the sender up for a moment rather than losing the packet at once.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 5000))
            poll.register(sock, selectors.EVENT_READ, (guest, net, known))
    while True:
        for key, _ in poll.select():
            guest, net, known = key.data
            try:
                for _ in range(32):
                    frame = key.fileobj.recv(65536, socket.MSG_DONTWAIT)
                    known[frame[6:12]] = guest
                    target = known.get(frame[:6])
                    targets = range(facts["guests"]) if target is None else (target,)
                    for other in targets:
                        if other != guest:
                            try:
                                key.fileobj.sendto(frame, cluster.path(f"g{other}.{net}"))
                            except OSError:  # off, or full for too long: lost, as on a wire
                                pass
            except BlockingIOError:
                pass
