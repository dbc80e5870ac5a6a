# SPDX-License-Identifier: Apache-2.0
"""Asks the agent of a guest, from the host or from another guest."""
import json, os, re, select, signal, socket, struct, sys, termios, time, tty

from softroce.common import AGENT_PORT, Failure, ctl_ip, kept_environment, say
from softroce.frames import receive_frame, send_frame, write_all


class Agent:
    """The command server of one guest, reached from the host or from another guest."""

    def __init__(self, address, secret):
        self.address, self.secret = address, secret

    def connect(self, request, deadline):
        sock = socket.create_connection(self.address, timeout=max(0.1, deadline - time.monotonic()))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(json.dumps({"secret": self.secret, **request}).encode() + b"\n")
        return sock

    def ask(self, request, seconds):
        """One question, one JSON answer."""
        deadline = time.monotonic() + seconds
        with self.connect(request, deadline) as sock:
            sock.settimeout(max(0.1, deadline - time.monotonic()))
            kind, data = receive_frame(sock)
            if kind != b"j":
                raise OSError("no answer")
            return json.loads(data)

    def run(self, argv, env, cwd, seconds=None, want_tty=False, prefix=""):
        """Runs a program there with this process's standard streams. Returns its exit status."""
        request = {"do": "run", "argv": argv, "env": env, "cwd": cwd, "tty": want_tty}
        if want_tty:
            request["size"] = list(os.get_terminal_size(0))
        sock = self.connect(request, time.monotonic() + 20)
        sock.settimeout(None)
        end = None if seconds is None else time.monotonic() + seconds
        pressed = []

        def on_signal(number, _):
            pressed.append(number)
            if len(pressed) > 2:
                raise KeyboardInterrupt
            send_frame(sock, b"s", bytes([number]))

        old = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        saved = termios.tcgetattr(0) if want_tty else None
        if want_tty:
            tty.setraw(0, termios.TCSADRAIN)  # what is typed already stays
        waiting = [sock, 0]
        try:
            while True:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    say(f"the command ran past its {seconds:g} s (--deadline); stopped")
                    return 124
                ready, _, _ = select.select(waiting, [], [], left)
                if 0 in ready:
                    try:
                        data = os.read(0, 65536)
                    except OSError:
                        data = b""
                    send_frame(sock, b"i", data)
                    if not data:
                        waiting.remove(0)
                if sock in ready:
                    kind, data = receive_frame(sock)
                    if kind is None:
                        raise Failure("the guest went away")
                    if kind == b"x":
                        return struct.unpack(">i", data)[0]
                    write_all(2 if kind == b"e" else 1, prefixed(data, prefix))
        finally:
            sock.close()
            if saved:
                termios.tcsetattr(0, termios.TCSADRAIN, saved)
            for number, handler in old.items():
                signal.signal(number, handler)


def prefixed(data, prefix):
    if not prefix:
        return data
    return b"".join(prefix.encode() + line for line in data.splitlines(keepends=True))


def rsh(arguments):
    """What mpirun in a guest starts daemons with: rsh [options] HOST COMMAND..."""
    while arguments and arguments[0].startswith("-"):
        arguments = arguments[1:]
    if len(arguments) < 2 or not re.fullmatch(r"(\w+@)?g\d+", arguments[0]):
        raise Failure("rsh: usage: rsh HOST COMMAND...")
    with open("/run/gdrx/config.json") as file:
        config = json.load(file)
    guest = int(arguments[0].rpartition("g")[2])
    agent = Agent((ctl_ip(guest), AGENT_PORT), config["secret"])
    try:
        return agent.run(["/bin/sh", "-c", " ".join(arguments[1:])], kept_environment(), os.getcwd())
    except OSError as error:
        raise Failure(f"g{guest} does not answer: {error}") from None


def main():
    try:
        sys.exit(rsh(sys.argv[2:]))
    except Failure as failure:
        say(str(failure))
        sys.exit(1)
