# SPDX-License-Identifier: Apache-2.0
"""Network namespaces to measure between."""
import json, os, subprocess, sys, time


def run(*words):
    subprocess.run(words, check=True)


class Namespaces:
    """Two, joined; their names are this process's own."""
    def __enter__(self):
        self.names = [f"gdrx{os.getpid()}{side}" for side in "ab"]
        ends = [f"gv{os.getpid() % 100000}{side}" for side in "ab"]
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", ends[0], "netns", self.names[0], "type", "veth", "peer", "name", ends[1], "netns", self.names[1])
        for number, (name, end) in enumerate(zip(self.names, ends), 1):
            run("ip", "-n", name, "addr", "add", f"10.113.0.{number}/24", "dev", end)
            run("ip", "-n", name, "link", "set", end, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        for name, end in zip(self.names, ends):
            self.wait_for_carrier(name, end)
        self.interface = "gv"
        return self

    @staticmethod
    def wait_for_carrier(name, end):
        for _ in range(100):
            shown = subprocess.run(["ip", "-n", name, "-j", "link", "show", end], capture_output=True, text=True)
            if json.loads(shown.stdout)[0]["operstate"] == "UP":
                return
            time.sleep(0.05)
        sys.exit(f"{end} does not come up in {name}")

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)
