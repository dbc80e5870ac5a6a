# SPDX-License-Identifier: Apache-2.0
"""Names, addresses and failures that every part uses, in guests and on the host."""
import os, re, sys

SELF = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "softroce-cluster")
MGMT, CTL, RAIL = 0, 1, 2  # the numbers of a guest's NICs: to the host, between guests, rails from 2
AGENT_PORT = 7017
ROCE_PORT = 4791
NET = "10.77"
KEPT = re.compile(r"^(PATH|LD_LIBRARY_PATH|LD_PRELOAD|HOME|TERM|LANG|LC_\w+|TZ)$|^(GDRX|UCX|NCCL|OMPI|PMIX|IBV|RDMAV|RXE|MLX\w*|ASAN|UBSAN|TSAN|LSAN)_")
OURS = {"GDRX_CLUSTER", "OMPI_MCA_plm"}  # the host's alone: mpirun in a guest starts its daemons by the agent


class Failure(Exception):
    """What stops a command: one line for the user."""


def say(text):
    print(f"softroce-cluster: {text}", file=sys.stderr, flush=True)


def ctl_ip(guest):
    return f"{NET}.1.{guest + 1}"


def mgmt_ip(guest):
    """Each guest is alone with the host there; the addresses differ so that nobody mixes guests up."""
    return f"{NET}.200.{guest + 10}"


def rail_ip(guest, rail):
    return f"{NET}.{10 + rail}.{guest + 1}"


def mac(guest, nic):
    return f"52:54:00:77:{guest:02x}:{nic:02x}"


class Unable(Failure):
    """This machine cannot have guests: exit status 77, as test runners know it."""


def kept_environment():
    return {name: value for name, value in os.environ.items() if KEPT.search(name) and name not in OURS}
