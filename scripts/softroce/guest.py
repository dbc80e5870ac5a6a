# SPDX-License-Identifier: Apache-2.0
"""The first process of a guest: sets it up, then serves commands."""
import ctypes, glob, json, os, platform, re, resource, secrets, shlex, signal, socket, sys, time

from softroce.common import CTL, MGMT, RAIL, SELF, Failure, ctl_ip, mac, mgmt_ip, rail_ip
from softroce.server import Server, sh


class Guest:
    """The first process of a guest: sets it up, then serves commands."""

    def __init__(self):
        with open("/run/gdrx/config.json") as file:
            self.config = json.load(file)
        with open("/proc/cmdline") as file:
            self.index = int(re.search(r"gdrx\.guest=(\d+)", file.read()).group(1))

    def run(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        worker = os.fork()
        if worker:
            self.reap(worker)
        os.setsid()
        try:
            self.set_up()
            Server(self.config, self.index).serve()
        except Exception as error:  # the console is all that is left to tell it to
            print(f"gdrx-agent: {error}", flush=True)
        os._exit(1)

    @staticmethod
    def reap(worker):
        """Process 1 waits for everybody's orphans, and ends the guest with the worker."""
        while True:
            pid, _ = os.wait()
            if pid == worker:
                os.sync()
                ctypes.CDLL(None).reboot(0x4321FEDC)
    def set_up(self):
        config, g = self.config, self.index
        os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.RLIM_INFINITY))
        for path, kind, options in (("/dev/pts", "devpts", "gid=5,mode=620,ptmxmode=666"), ("/dev/shm", "tmpfs", "size=50%"),
                                    ("/sys/kernel/debug", "debugfs", "")):
            os.makedirs(path, exist_ok=True)
            sh("mount", "-t", kind, *(["-o", options] if options else []), kind, path)
        modules = f"/lib/modules/{platform.release()}"
        if config["modules"] != modules:
            os.makedirs(modules, exist_ok=True)
            sh("mount", "--bind", config["modules"], modules)
        for link, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
                             ("stderr", "/proc/self/fd/2")):
            if not os.path.lexists(f"/dev/{link}"):
                os.symlink(target, f"/dev/{link}")
        for index, folder in enumerate(config["shares"]):
            os.makedirs(folder, exist_ok=True)
            sh("mount", "-t", "9p", "-o", "trans=virtio,version=9p2000.L,msize=262144", f"share{index}", folder)
        name = f"g{g}"
        socket.sethostname(name)
        self.write("/etc/hostname", name + "\n")
        self.write("/etc/machine-id", secrets.token_hex(16) + "\n")
        self.write("/etc/hosts", "127.0.0.1 localhost\n" + "".join(f"{ctl_ip(i)} g{i}\n" for i in range(config["guests"])))
        self.write("/etc/resolv.conf", "")
        self.write("/run/gdrx/hosts", "".join(f"g{i} slots={config['cpus']}\n" for i in range(config["guests"])))
        self.write("/run/gdrx/rsh", f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -S {shlex.quote(SELF)} rsh \"$@\"\n", 0o755)
        sh("modprobe", "-a", "virtio_net", "rdma_rxe", "rdma_ucm")
        self.network()

    @staticmethod
    def write(path, text, mode=0o644):
        try:  # a link to elsewhere (resolv.conf) becomes a file
            os.unlink(path)
        except FileNotFoundError:
            pass
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)

    def network(self):
        config, g = self.config, self.index
        wanted = {mac(g, MGMT): "mgmt", mac(g, CTL): "ctl"}
        wanted.update({mac(g, RAIL + rail): f"rail{rail}" for rail in range(config["rails"])})
        end = time.monotonic() + 20
        while True:
            found = {}
            for path in glob.glob("/sys/class/net/*/address"):
                with open(path) as file:
                    found[file.read().strip()] = path.split("/")[4]
            if set(wanted) <= set(found):
                break
            if time.monotonic() > end:
                raise Failure(f"NICs are missing: {sorted(set(wanted) - set(found))}")
            time.sleep(0.02)
        for key in ("arp_ignore=1", "arp_announce=2"):  # each rail answers for its own address only
            name, value = key.split("=")
            with open(f"/proc/sys/net/ipv4/conf/all/{name}", "w") as file:
                file.write(value)
        batch = ["link set lo up"]
        for address, name in wanted.items():
            batch.append(f"link set {found[address]} name {name}")
        batch += [f"addr add {mgmt_ip(g)}/24 dev mgmt", "link set mgmt up", f"addr add {ctl_ip(g)}/24 dev ctl", "link set ctl up"]
        for rail in range(config["rails"]):
            batch += [f"link set rail{rail} mtu {config['mtu']}", f"addr add {rail_ip(g, rail)}/24 dev rail{rail}",
                      f"link set rail{rail} up"]
        sh("ip", "-batch", "-", given="\n".join(batch) + "\n")
        for rail in range(config["rails"]):
            sh("rdma", "link", "add", f"rxe{rail}", "type", "rxe", "netdev", f"rail{rail}")


def main():
    Guest().run()
