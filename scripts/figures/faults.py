# SPDX-License-Identifier: Apache-2.0
"""Faults."""
import collections, statistics

from .common import link, load, records, sources, table


def series():
    """Every allreduce over two rails, again and again."""
    made = load("softroce-series")
    of = collections.defaultdict(list)
    for run in made["rows"]:
        if not run["env"]:  # the command as it stands
            of[run["setting"], run["ranks"]].append(run)
    rows = []
    for (setting, ranks), runs in sorted(of.items()):
        whole = [run["seconds"] for run in runs if not run["failed"]]
        rows.append((setting, ranks, len(whole), len(runs) - len(whole), *(sum(run[key] for run in runs) for key in ("lost", "wrong", "resent")),
                     round(statistics.median(whole)) if whole else "-", f"{min(run['load'] for run in runs):g} to {max(run['load'] for run in runs):g}"))
    failed = [f"- {run['ranks']} ranks, load {run['load']:g}, commit {run['commit']}: {run['failed']}"
              for runs in of.values() for run in runs if run["failed"]]
    return ["## Every allreduce over two rails", "",
            "`scripts/softroce-repeat` runs every algorithm of allreduce between two guests, with 4 ranks and with 8 in turn.",
            "It adds to what it has: thirty right runs of each row are wanted.", ""] + \
        table(["<setting", "ranks", "right", "failed", "ranks lost", "wrong elements", "sent again", "median (s)", "load"], rows) + \
        (["The runs that failed:", "", *failed, ""] if failed else []) + \
        [f"Measured: {link('softroce-series')}, {made['machine']}; commits "
         f"{', '.join(dict.fromkeys(run['commit'] for run in made['rows']))}, `{made['command']}`", ""]


def faults():
    kills = ("kill-8", "kill-8-loaded", "gpu-kill-2", "gpu-kill-4")
    rows = [(link(name), load(name)["ranks"], row["kind"], row["rounds"], row["named"],
             row["median_ms"], row["worst_ms"], row["limit_ms"]) for name in kills for row in load(name)["rows"]]
    flaps, swarm, outsider = load("flaps-softroce")["rows"][0], load("swarm"), load("outsider")
    assert flaps["wrong"] == 0 and not swarm["wrong"]
    return ["## Ranks that are killed", "",
            "`scripts/kill-test` kills a random rank at a random moment. *Plain* is plain mpirun, which ends the survivors itself.",
            "*Recovery* is mpirun with recovery on. *Named* counts the rounds in which all of this holds:",
            "every survivor names the dead rank within the limit, ends as it should, and leaves nothing behind.",
            "`kill-8-loaded` ran beside other work.", ""] + \
        table(["<run", "ranks", "<kind", "rounds", "named", "median (ms)", "worst (ms)", "limit (ms)"], rows) + sources(*kills) + \
        records((("gpu-kill-8-on-2-mps", "8 ranks on 2 GPUs: plain rounds, and rounds that did not end"),
                 ("gpu-tests-on-1", "4 ranks on one GPU"))) + \
        ["## Calls that fail", "", "`scripts/swarm` makes any call of the system fail at a seed's moment in a communicator's life.", ""] + \
        table(["<flavour", "seeds", "with faults", "with errors", "failed"],
              [(row["flavour"], row["seeds"], row["with_faults"], row["with_errors"], row["failed"])
               for row in swarm["rows"]]) + sources("swarm") + \
        ["## Rails that flap", "", f"A rail of two guests flapped {flaps['flaps']} times. {flaps['counted']} flaps caused a resend.",
         f"gdrx sent {flaps['resent']} parts again. No sum was wrong.", ""] + sources("flaps-softroce") + \
        series() + \
        ["## Strangers", "", "`tests/mpi/outsider.py` floods each open port while a program runs. The ratio is the time it takes then",
         "to the time beside a program that only burns the processor, as much and when the outsider did.",
         "*Host and Open MPI*: two of a rank's three ports are Open MPI's, which are not gdrx's to defend.",
         "The machine was shared with other work: its load average stands beside.", ""] + \
        table(["<program", "median ratio", "load", "<command"],
              [(row["program"], row["median_ratio"], row["load_average"], f"`{row['command']}`")
               for row in outsider["rows"]]) + \
        [f"Measured: {link('outsider')}, {outsider['machine']}; commit {outsider['commit']}", ""]
