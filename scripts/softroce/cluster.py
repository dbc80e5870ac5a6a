# SPDX-License-Identifier: Apache-2.0
"""The guests of one name: their state on disk, their processes, commands to them."""
import json, os, platform, re, secrets, shutil, signal, socket, subprocess, sys, tempfile, time

from softroce.accel import choose_accel
from softroce.client import Agent
from softroce.common import AGENT_PORT, CTL, MGMT, NET, RAIL, SELF, Failure, Unable, ctl_ip, kept_environment, mac, mgmt_ip, say
from softroce.initramfs import initramfs
from softroce.kernel import find_kernel, need_programs
from softroce.root import CHECKOUT, Root
from softroce.tsc import khz

# What costs an emulated machine more than a packet: a clock that is a device (it takes the TSCs of its processors for
# different ones, which they are not), an interrupt for packets that have left, taken by one processor while another holds
# the queue, and memory that is cleared when it is allocated, though a packet fills it at once: distributions have that on.
CHEAP = "tsc=reliable virtio_net.napi_tx=0 init_on_alloc=0"
BOOTS = 3  # of a guest that ends before it answers


class EndedWhileBooting(Failure):
    """A guest did, for the reason given."""


def state_folder(name):
    """Private to this user: it holds the secret, the sockets and the consoles."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if not (base and os.access(base, os.W_OK)):
        base = tempfile.gettempdir()
    path = os.path.join(base, f"gdrx-cluster-{os.getuid()}")
    os.makedirs(path, 0o700, exist_ok=True)
    facts = os.lstat(path)
    if facts.st_uid != os.getuid() or facts.st_mode & 0o077 or not os.path.isdir(path) or os.path.islink(path):
        raise Failure(f"{path} is not a private folder of this user")
    return os.path.join(path, name)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Cluster:
    def __init__(self, name):
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
            raise Failure(f"--name {name}: letters, digits, - and _ only")
        self.folder = state_folder(name)
        self.name = name
        self.children = {}  # pid -> Popen, of this process's

    def path(self, name):
        return os.path.join(self.folder, name)

    def load(self):
        try:
            with open(self.path("cluster.json")) as file:
                self.facts = json.load(file)
        except OSError:
            raise Failure("no cluster is up: softroce-cluster up -n 2") from None
        return self

    def save(self):
        with open(self.path("cluster.tmp"), "w") as file:
            json.dump(self.facts, file, indent=1)
        os.rename(self.path("cluster.tmp"), self.path("cluster.json"))

    def agent(self, guest):
        if not 0 <= guest < self.facts["guests"]:
            raise Failure(f"guest {guest}: there are guests 0 to {self.facts['guests'] - 1}")
        return Agent(("127.0.0.1", self.facts["ports"][guest]), self.facts["secret"])

    # -- up

    def up(self, options):
        if platform.machine() != "x86_64":
            raise Unable(f"guests are x86_64, this machine is {platform.machine()}")
        if not 1 <= options.n <= 16 or not 1 <= options.rails <= 8 or not 1 <= options.cpus <= 64:
            raise Failure("-n 1 to 16 guests, --rails 1 to 8, --cpus 1 to 64")
        if os.path.exists(self.path("cluster.json")):
            raise Failure(f"cluster '{self.name}' is up already: softroce-cluster down")
        began = time.monotonic()
        root = Root(options.root)
        if root.own:
            need_programs()
        image, modules, version = find_kernel() if root.own else root.kernel()
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder, 0o700)
        shares = [os.path.realpath(folder) for folder in options.share]
        for folder in shares:
            if not os.path.isdir(folder) or "," in folder:
                raise Failure(f"--share {folder}: no such folder, or a comma in its name")
        config = {"secret": secrets.token_hex(32), "guests": options.n, "rails": options.rails, "cpus": options.cpus,
                  "mtu": options.mtu, "modules": modules, "shares": shares}
        self.facts = {**config, "image": image, "memory": options.memory, "ports": [free_port() for _ in range(options.n)],
                      "pids": {}, "native": False, "root": root.folder, "qemu": root.qemu(), "wire": "direct" if options.n <= 2 else "switch", "version": version}
        with open(os.open(self.path("initramfs"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(initramfs(root, version, config))
        accel, why = choose_accel(options.accel, self, image, self.facts["qemu"])
        self.facts["accel"] = accel
        # Told, as a guest that measures it while this machine is busy may be wrong by a factor.
        self.facts["clock"] = f"tsc_early_khz={rate}" if accel == "tcg" and (rate := khz()) else ""
        self.save()
        say(f"{options.n} guests, {options.cpus} CPUs and {options.memory} MiB each, {options.rails} rails, kernel {version}, {why}")
        try:
            if self.facts["wire"] == "switch":
                self.start_switch()
            started = time.monotonic()
            for guest in range(options.n):
                self.start(guest)
            self.save()
            limit = options.deadline or (90 if accel == "kvm" else 300)
            for guest in range(options.n):
                self.boot(guest, limit, started + limit)
            say(f"up after {time.monotonic() - began:.1f} s (boot {time.monotonic() - started:.1f} s)")
        except BaseException:
            for guest in range(options.n):
                self.keep_console(guest)
            self.down(quiet=True)
            raise

    def keep_console(self, guest):
        try:
            with open(self.path(f"g{guest}.console"), errors="replace") as file:
                lines = file.read().strip().splitlines()[-5:]
        except OSError:
            return
        for line in lines:
            say(f"g{guest} console: {line[:200]}")

    def nic(self, guest, number, net):
        here = self.path(f"g{guest}.{net}")
        if self.facts["wire"] == "switch":
            there = self.path(f"switch.{guest}.{net}")
        else:
            there = self.path(f"g{1 - guest}.{net}")
        # A rail's virtio queues are its NIC's depth; the socket's own buffer pushes back when it is full.
        size = ",rx_queue_size=1024,host_mtu=9000" if number >= RAIL else ""
        return ["-netdev", f"dgram,id={net},local.type=unix,local.path={here},remote.type=unix,remote.path={there}",
                "-device", f"virtio-net-pci,id=nic-{net},netdev={net},mac={mac(guest, number)},romfile={size}"]

    def start(self, guest):
        facts = self.facts
        # Emulated, a string instruction moves a byte at a time and a carry-less product a bit: without these, kernels copy and
        # clear by words, and look the sums of RoCE packets up in tables.
        cpu = "host" if facts["accel"] == "kvm" else "max,-erms,-fsrm,-pclmulqdq"
        accel = "kvm" if facts["accel"] == "kvm" else "tcg,thread=multi,tb-size=512"
        for net in ("ctl", *(f"rail{rail}" for rail in range(facts["rails"]))):
            try:
                os.unlink(self.path(f"g{guest}.{net}"))
            except FileNotFoundError:
                pass
        argv = [*facts["qemu"], "-name", f"gdrx-{self.name}-g{guest}", "-nodefaults", "-no-user-config", "-display", "none",
                "-machine", "q35,usb=off", "-accel", accel, "-cpu", cpu, "-smp", str(facts["cpus"]), "-m", str(facts["memory"]),
                "-no-reboot", "-kernel", facts["image"], "-initrd", self.path("initramfs"),
                "-append", f"earlyprintk=serial,ttyS0 console=ttyS0 quiet panic=-1 mitigations=off no_timer_check {CHEAP} {facts['clock']} "
                           f"gdrx.guest={guest}",
                "-serial", f"file:{self.path(f'g{guest}.console')}",
                "-qmp", f"unix:{self.path(f'g{guest}.qmp')},server=on,wait=off",
                "-device", "virtio-rng-pci",
                "-fsdev", f"local,id=host,path={facts['root']},security_model=none,readonly=on,multidevs=remap",
                "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
                "-netdev", f"user,id=mgmt,restrict=on,ipv6=off,net={NET}.200.0/24,host={NET}.200.2,"
                           f"hostfwd=tcp:127.0.0.1:{facts['ports'][guest]}-{mgmt_ip(guest)}:{AGENT_PORT}",
                "-device", f"virtio-net-pci,netdev=mgmt,mac={mac(guest, MGMT)},romfile="]
        if facts["root"] != "/":
            argv += ["-fsdev", f"local,id=checkout,path={CHECKOUT},security_model=none,readonly=on,multidevs=remap",
                     "-device", "virtio-9p-pci,fsdev=checkout,mount_tag=checkout"]
        for index, folder in enumerate(facts["shares"]):
            argv += ["-fsdev", f"local,id=share{index},path={folder},security_model=none,multidevs=remap",
                     "-device", f"virtio-9p-pci,fsdev=share{index},mount_tag=share{index}"]
        argv += self.nic(guest, CTL, "ctl")
        for rail in range(facts["rails"]):
            argv += self.nic(guest, RAIL + rail, f"rail{rail}")
        self.facts["pids"][str(guest)] = self.spawn(argv, f"g{guest}.qemu")
        self.save()

    def spawn(self, argv, log):
        with open(self.path(log), "w") as file:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
        self.children[child.pid] = child
        return child.pid

    def start_switch(self):
        self.facts["pids"]["switch"] = self.spawn([sys.executable, SELF, "--name", self.name, "switch"], "switch.log")
        self.save()

    def alive(self, key):
        pid = self.facts["pids"].get(str(key))
        if not pid:
            return False
        if pid in self.children and self.children[pid].poll() is not None:
            return False
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                line = file.read()
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        return state not in "ZX" and (self.folder in line or f"--name\0{self.name}\0switch" in line)

    def boot(self, guest, limit, end):
        """Waits for a guest that was started; starts it again where it ended by itself. A boot takes `limit` s at most."""
        for left in reversed(range(BOOTS)):
            try:
                return self.wait_ready(guest, end)
            except EndedWhileBooting as ended:
                if not left:
                    raise
                say(f"{ended}; it is started again")
                self.keep_console(guest)
            # Somebody may have taken its port since; and it has the time of a first boot.
            self.facts["ports"][guest] = free_port()
            self.start(guest)
            end = time.monotonic() + limit

    def wait_ready(self, guest, end):
        while True:
            if not self.alive(guest):
                raise EndedWhileBooting(f"guest {guest} ended while booting: {self.last_words(guest)}")
            try:
                if self.agent(guest).ask({"do": "status"}, 5)["ready"]:
                    return
            except (OSError, ValueError):
                pass
            if time.monotonic() > end:
                raise Failure(f"guest {guest} did not answer in time (--deadline)")
            time.sleep(0.2)

    def last_words(self, guest):
        """Why its QEMU ended: what QEMU said, and its exit status; 0 is a kernel that restarted."""
        with open(self.path(f"g{guest}.qemu")) as file:
            said = file.read().strip().splitlines()[-1:]
        status = self.children[self.facts["pids"][str(guest)]].returncode
        return "; ".join([*said, f"QEMU was killed by signal {-status}" if status and status < 0 else f"QEMU's exit status is {status}"])

    # -- down

    def down(self, quiet=False):
        try:
            self.load()
        except Failure:
            shutil.rmtree(self.folder, ignore_errors=True)
            if not quiet:
                say("nothing is up")
            return
        if self.facts["native"]:
            for device in self.facts["devices"]:
                subprocess.run(["rdma", "link", "delete", device], capture_output=True)
        for key in list(self.facts["pids"]):
            self.end(key)
        shutil.rmtree(self.folder, ignore_errors=True)
        if not quiet:
            say("down")

    def end(self, key):
        """Nothing in a guest is worth keeping: its QEMU is told to go, then made to."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.alive(key):
                return
            os.kill(self.facts["pids"][key], number)
            end = time.monotonic() + 5
            while self.alive(key) and time.monotonic() < end:
                time.sleep(0.02)
        if self.alive(key):
            raise Failure(f"process {self.facts['pids'][key]} does not end")

    # -- commands to guests

    def run(self, guest, argv, seconds, want_tty=False, prefix=""):
        if self.facts["native"]:
            return subprocess.run(argv, timeout=seconds).returncode
        if not self.alive(guest):
            raise Failure(f"guest {guest} is not running")
        try:
            return self.agent(guest).run(argv, kept_environment(), os.getcwd(), seconds, want_tty, prefix)
        except OSError as error:
            raise Failure(f"guest {guest} does not answer: {error}") from None

    def quiet_run(self, guest, script):
        """A short script in a guest; its first line of errors is the failure."""
        with subprocess.Popen([sys.executable, SELF, "--name", self.name, "run", "-g", str(guest), "--deadline", "60", "--",
                               "sh", "-ec", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as process:
            out = process.communicate(timeout=90)[0]
        if process.returncode:
            raise Failure((out.strip().splitlines() or ["failed"])[0].replace("softroce-cluster: ", ""))

    def status(self):
        facts = self.facts
        if facts["native"]:
            print(f"native: {' '.join(facts['devices'])} on this machine's kernel")
            return 0
        print(f"{facts['guests']} guests, {facts['cpus']} CPUs, {facts['memory']} MiB, {facts['accel']}, kernel {facts['version']}, wire {facts['wire']}")
        bad = 0
        for guest in range(facts["guests"]):
            if not self.alive(guest):
                print(f"g{guest}: off")
                bad = 1
                continue
            try:
                answer = self.agent(guest).ask({"do": "status"}, 20)
            except (OSError, ValueError):
                print(f"g{guest}: does not answer")
                bad = 1
                continue
            print(f"g{guest}: up {answer['uptime']:.0f} s, {ctl_ip(guest)}")
            for rail in answer["rails"]:
                netem = re.search(r"netem .*", rail["qdisc"])
                print(f"  {rail['netdev']} {rail['address']}: {rail['device']} {rail['port']}, "
                      f"carrier {'yes' if rail['carrier'] == '1' else 'no'}{', ' + netem.group(0).strip() if netem else ''}")
        return bad
