# SPDX-License-Identifier: Apache-2.0
"""Faults."""
from .common import link, load, records, sources, table


def faults():
    kills = ("kill-8", "kill-8-loaded", "gpu-kill-2", "gpu-kill-4")
    rows = [(link(name), load(name)["ranks"], row["kind"], row["rounds"], row["named"],
             row["median_ms"], row["worst_ms"], row["limit_ms"]) for name in kills for row in load(name)["rows"]]
    flaps, swarm, outsider = load("flaps-softroce")["rows"][0], load("swarm"), load("outsider")
    repeats = load("softroce-repeat")
    repeat = next(run for run in repeats["runs"] if run["label"] == "beside a build")
    assert flaps["wrong"] == 0 and not swarm["wrong"] and repeat["wrong"] == 0
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
        ["`scripts/softroce-repeat` runs every algorithm of allreduce over two rails again and again.",
         f"{repeat['runs_right']} of {repeat['runs_right'] + repeat['runs_failed']} runs were right: "
         f"{link('softroce-repeat')}, {repeats['machine']}; commit {repeat['commit']}, "
         f"`{repeats['command']}`.", "",
         "## Strangers", "", "`tests/mpi/outsider.py` floods each open port while a program runs. The ratio is the time it takes then",
         "to the time beside a program that only burns the processor, as much and when the outsider did.",
         "*Host and Open MPI*: two of a rank's three ports are Open MPI's, which are not gdrx's to defend.",
         "The machine was shared with other work: its load average stands beside.", ""] + \
        table(["<program", "median ratio", "load", "<command"],
              [(row["program"], row["median_ratio"], row["load_average"], f"`{row['command']}`")
               for row in outsider["rows"]]) + \
        [f"Measured: {link('outsider')}, {outsider['machine']}; commit {outsider['commit']}", ""]
