# SPDX-License-Identifier: Apache-2.0
"""The command server of a guest."""
import fcntl, hmac, json, os, platform, pty, select, signal, socket, struct, subprocess, termios, threading

from softroce.common import AGENT_PORT, NET, Failure, rail_ip
from softroce.frames import receive_exactly, receive_frame, send_frame, write_all


def sh(*argv, check=True, given=None):
    done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=60)
    if check and done.returncode:
        raise Failure(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Server:
    def __init__(self, config, index):
        self.config, self.index, self.ready = config, index, False

    def serve(self):
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("0.0.0.0", AGENT_PORT))
        server.listen(64)
        self.ready = True
        print(f"gdrx-agent: guest {self.index} is ready", flush=True)
        while True:
            sock, _ = server.accept()
            # Rails are for RDMA: commands come over mgmt and ctl only.
            if not sock.getsockname()[0].startswith((f"{NET}.1.", f"{NET}.200.")):
                sock.close()
                continue
            threading.Thread(target=self.client, args=(sock,), daemon=True).start()

    def client(self, sock):
        try:
            sock.settimeout(20)
            line = b""
            while not line.endswith(b"\n") and len(line) < 1 << 20:
                piece = sock.recv(1) if len(line) < 2 else sock.recv(65536, socket.MSG_PEEK)
                if not piece:
                    return
                if len(line) >= 2:
                    cut = piece.find(b"\n")
                    piece = receive_exactly(sock, len(piece) if cut < 0 else cut + 1)
                line += piece
            request = json.loads(line)
            if not hmac.compare_digest(str(request.get("secret")), self.config["secret"]):
                return
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if request["do"] == "run":
                self.run(sock, request)
            elif request["do"] == "status":
                send_frame(sock, b"j", json.dumps(self.status()).encode())
            elif request["do"] == "refresh":
                os.sync()
                with open("/proc/sys/vm/drop_caches", "w") as file:
                    file.write("3")
                send_frame(sock, b"j", b"{}")
            # Unread input at close would reset the connection and could take the exit status with it.
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(5)
            while sock.recv(65536):
                pass
        except (OSError, ValueError, KeyError):
            pass
        finally:
            sock.close()

    def status(self):
        def read(path):
            try:
                with open(path) as file:
                    return file.read().strip()
            except OSError:
                return "?"

        rails = []
        for rail in range(self.config["rails"]):
            port = f"/sys/class/infiniband/rxe{rail}/ports/1"
            rails.append({"device": f"rxe{rail}", "netdev": f"rail{rail}", "address": rail_ip(self.index, rail),
                          "port": read(f"{port}/state").split(": ")[-1], "carrier": read(f"/sys/class/net/rail{rail}/carrier"),
                          "qdisc": sh("tc", "qdisc", "show", "dev", f"rail{rail}", check=False).split("\n")[0]})
        return {"ready": self.ready, "kernel": platform.release(), "uptime": float(read("/proc/uptime").split()[0]), "rails": rails}

    def environment(self, given):
        env = {"PATH": os.environ["PATH"], "HOME": "/root", "TERM": "dumb",
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_plm_rsh_agent": "/run/gdrx/rsh", "OMPI_MCA_orte_default_hostfile": "/run/gdrx/hosts",
               # MPI's own messages stay on the control network: a rail that loses packets must not stop the launcher.
               "OMPI_MCA_oob_tcp_if_include": "ctl", "OMPI_MCA_btl_tcp_if_include": "ctl", "OMPI_MCA_btl": "^openib,ofi",
               "GDRX_SOCKET_IFNAME": "=ctl", "NCCL_SOCKET_IFNAME": "=ctl",
               "OMPI_MCA_pml": "ob1", "OMPI_MCA_rmaps_base_mapping_policy": "node:oversubscribe", "OMPI_MCA_hwloc_base_binding_policy": "none"}
        if not any(name.startswith("UCX_") for name in given):
            # UCX's own wire-up over UD times out on soft-RoCE: TCP over the first rail unless the caller says otherwise.
            env.update(UCX_TLS="tcp,self,sm", UCX_NET_DEVICES="rail0")
        env.update(given)
        if "/sbin" not in env["PATH"]:
            env["PATH"] += ":/usr/sbin:/sbin"
        env.pop("OMPI_MCA_rmaps_base_oversubscribe", None)  # said by the mapping policy
        return env

    def run(self, sock, request):
        env = self.environment(request["env"])
        cwd = request["cwd"] if os.path.isdir(request["cwd"]) else "/"
        if request.get("tty"):
            master, slave = pty.openpty()
            columns, rows = request.get("size", (80, 24))
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            streams = dict(stdin=slave, stdout=slave, stderr=slave)
        else:
            streams = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def child():
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            if request.get("tty"):
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        try:
            process = subprocess.Popen(request["argv"], env=env, cwd=cwd, preexec_fn=child, **streams)
        except OSError as error:
            send_frame(sock, b"e", f"softroce-cluster: g{self.index}: {request['argv'][0]}: {error.strerror}\n".encode())
            send_frame(sock, b"x", struct.pack(">i", 127))
            return
        if request.get("tty"):
            os.close(slave)
            outputs, into = {master: b"o"}, master
        else:
            outputs = {process.stdout.fileno(): b"o", process.stderr.fileno(): b"e"}
            into = process.stdin.fileno()
        try:
            self.pump(sock, process, outputs, into, request.get("tty"))
        finally:
            if process.poll() is None:  # the client has gone: so does what it started
                self.stop(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                try:
                    if stream:
                        stream.close()
                except OSError:
                    pass
            if request.get("tty"):
                os.close(master)

    @staticmethod
    def stop(process):
        for number, seconds in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
            try:
                os.killpg(process.pid, number)
                process.wait(seconds)
                return
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass

    @staticmethod
    def pump(sock, process, outputs, into, is_tty):
        gone = os.pidfd_open(process.pid)
        try:
            ended = None
            while True:
                # A daemon that the program left may hold its output open: 0.3 s after its end is enough.
                watch = [*outputs, *([] if ended else [gone, sock])]
                ready, _, _ = select.select(watch, [], [], 0.3 if ended else None)
                for fd in [fd for fd in ready if fd in outputs]:
                    try:
                        data = os.read(fd, 65536)
                    except OSError:  # the terminal's last process has gone
                        data = b""
                    if data:
                        send_frame(sock, outputs[fd], data)
                    else:
                        del outputs[fd]
                if sock in ready:
                    kind, data = receive_frame(sock)
                    if kind is None:
                        return
                    if kind == b"i" and into is not None:
                        try:
                            if data:
                                write_all(into, data)
                            elif is_tty:
                                os.write(into, b"\x04")
                            else:
                                process.stdin.close()
                                into = None
                        except OSError:
                            into = None
                    elif kind == b"s":
                        os.killpg(process.pid, data[0])
                if gone in ready:
                    ended = True
                if ended and (not outputs or not ready):
                    status = process.wait()
                    send_frame(sock, b"x", struct.pack(">i", 128 - status if status < 0 else status))
                    return
        finally:
            os.close(gone)
