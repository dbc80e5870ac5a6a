# SPDX-License-Identifier: Apache-2.0
"""Guests for a test: commands in them, programs that run while faults are made."""
import os, pty, re, select, subprocess, time

from softroce.cluster import Cluster
from softroce.common import SELF, Failure


class Wrong(Exception):
    """Why a step failed; its output is shown behind it."""


class Guests:
    def __init__(self, build, number=0):
        self.name = f"test{os.getpid()}-{number}" if number else f"test{os.getpid()}"
        self.build = build
        self.env = {**os.environ, "PATH": f"{build / 'bin'}:{os.environ['PATH']}"}

    def begin(self, *argv):
        return subprocess.Popen([SELF, "--name", self.name, *argv], env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                start_new_session=True)  # a terminal's Ctrl-C is for who reads it

    def call(self, *argv, seconds=120):
        done = subprocess.run([SELF, "--name", self.name, *argv], env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds,
                              start_new_session=True)
        return done.returncode, done.stdout

    def pid(self, guest):
        """Of its QEMU; None before it is started."""
        try:
            return Cluster(self.name).load().facts["pids"].get(str(guest))
        except Failure:
            return None

    def must(self, *argv, seconds=120):
        status, out = self.call(*argv, seconds=seconds)
        if status:
            raise Wrong(f"{' '.join(argv)}: status {status}\n{out}")
        return out

    def run(self, argv, seconds, guest=0, env=()):
        """The program's exit status and all that it said."""
        return self.call("run", "-g", str(guest), "--deadline", str(seconds), "--", "env", *env, *argv, seconds=seconds + 60)

    def type(self, argv, keys, seconds):
        """A command on a terminal, one entry of `keys` a second after its first prompt. Status and all output."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(SELF, [SELF, "--name", self.name, *argv], self.env)
        out, end, at, keys = "", time.monotonic() + seconds, None, list(keys)
        try:
            while time.monotonic() < end:
                if select.select([terminal], [], [], 0.2)[0]:
                    out += os.read(terminal, 65536).decode(errors="replace")
                    at = at or time.monotonic() + 1
                if keys and at and time.monotonic() >= at:
                    os.write(terminal, keys.pop(0).encode())
                    at = time.monotonic() + 1
        except OSError:  # its last process has ended
            pass
        finally:
            os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out

    def start(self, argv, seconds, env=(), guest=0):
        return Running(self.begin("run", "-g", str(guest), "--deadline", str(seconds), "--", "env", *env, *argv))


class Running:
    """A program in a guest, while faults are made. Its lines come with the seconds since its start."""

    def __init__(self, process):
        self.process, self.lines, self.began = process, [], time.monotonic()
        os.set_blocking(process.stdout.fileno(), False)
        self.rest = ""

    def read(self):
        try:
            self.rest += self.process.stdout.read() or ""
        except (TypeError, BlockingIOError):
            pass
        *whole, self.rest = self.rest.split("\n")
        self.lines += [(time.monotonic() - self.began, line) for line in whole]

    def count(self, pattern):
        self.read()
        return sum(bool(re.search(pattern, line)) for _, line in self.lines)

    def wait_for(self, pattern, count, seconds):
        """Until `count` lines match. False: the program has ended before."""
        end = time.monotonic() + seconds
        while self.count(pattern) < count:
            if self.process.poll() is not None:
                return self.count(pattern) >= count
            if time.monotonic() > end:
                raise Wrong(f"no '{pattern}' within {seconds} s\n{self.text()}")
            time.sleep(0.1)
        return True

    def text(self):
        self.read()
        return "\n".join(line for _, line in self.lines) + self.rest

    def stop(self):
        """Whatever it does: its guest's agent ends what it started. What it says meanwhile is read, or it could not end."""
        self.process.terminate()
        end = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
            time.sleep(0.1)
        self.process.kill()
        self.process.wait()

    def finish(self, seconds):
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            if time.monotonic() > end:
                self.process.terminate()
                raise Wrong(f"it did not end within {seconds} s\n{self.text()}")
            self.read()
            time.sleep(0.1)
        return self.process.returncode, self.text()


def expect(condition, what, out):
    if not condition:
        raise Wrong(f"{what}\n{out[-4000:]}")
