# SPDX-License-Identifier: Apache-2.0
"""The tests of the Python package, for the Python that runs this: it needs gdrx and torch.

run.py [TEST...]. Prints "ok NAME" or "FAILED NAME" for each; the exit status is 1 if any failed.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import ranks
from counted import Failure, Skip, alone, count

SIZES = (2, 3)
GROUPS = ("collectives", "elements", "messages", "groups")
TREE = pathlib.Path(__file__).resolve().parents[2]
SOON = 1.0


def outputs(size, function, survivors=None, seconds=180.0, env=None, module="faults"):
    """The text of each rank; those that should live must have ended well."""
    results = ranks.finish(ranks.start(size, module, function, env=env), seconds)
    for rank in range(size) if survivors is None else survivors:
        if results[rank][0] != 0:
            raise Failure(f"rank {rank} ended with {results[rank][0]}:\n{results[rank][1]}")
    return [text for _, text in results]


def raised(text):
    """(seconds, message) of each exception that a rank told of."""
    found = re.findall(r"^RAISED (-?[0-9.]+) (.*)$", text, re.M)
    if not found:
        raise Failure(f"no exception:\n{text}")
    return [(float(seconds), message) for seconds, message in found]


def expect(text, *words, soon=SOON):
    seconds, message = raised(text)[0]
    for word in words:
        if word not in message:
            raise Failure(f"{word!r} is not in: {message}")
    if seconds > soon:
        raise Failure(f"{seconds:.3f} s, not {soon} s: {message}")


def test_a_killed_rank_is_named_within_a_second():
    for size in SIZES:
        for scenario in ("killed", "killed_while_receiving", "killed_with_a_child_alive"):
            survivors = [r for r in range(size) if r != 1]
            texts = outputs(size, scenario, survivors)
            for rank in survivors:
                expect(texts[rank], "rank 1")


def test_a_mismatch_names_both_calls():
    for scenario, words in (("another_count", ("of 4 float", "of 6 float")),
                            ("another_call", ("allReduce", "broadcast", "rank 1")),
                            ("another_type", ("4 float", "4 int32"))):
        for size in SIZES:
            for text in outputs(size, scenario):
                expect(text, *words)


def test_a_late_rank_ends_the_call_at_its_deadline():
    text = outputs(2, "late")[0]
    seconds, message = raised(text)[0]
    if not 0.9 < seconds < 2.5 or "waits for rank(s) 1" not in message:
        raise Failure(f"{seconds} s: {message}")


def test_a_timeout_is_extended_for_one_call():
    text = outputs(2, "extended")[0]
    if "PASSED" not in text.splitlines():
        raise Failure(text)
    seconds, _ = raised(text)[0]
    if not 0.9 < seconds < 2:  # the group's own again
        raise Failure(text)


def test_a_stopped_rank_is_named_within_a_second():
    for size in SIZES:
        texts = outputs(size, "stopped", env={"TORCH_GDRX_SUMMARY": "1"})
        for rank in (r for r in range(size) if r != 1):
            lines = re.findall(r"^gdrx: rank (\d) of group \S+ waits for rank 1 since ([0-9.]+) s: allReduce.* 5 float.*$",
                               texts[rank], re.M)
            if len(lines) != 1 or int(lines[0][0]) != rank or not 0.5 < float(lines[0][1]) <= 1.0:
                raise Failure(texts[rank])
            if not re.search(r"^ASKED \[1\] (0\.9|1\.)", texts[rank], re.M):
                raise Failure(texts[rank])
            waited, count, seconds = re.search(r"^STATS (\S+) (\S+) (\S+)$", texts[rank], re.M).groups()
            if not 1.0 < float(waited) < 2.6 or int(count) != 4 or not 1.5 < float(seconds) < 3:
                raise Failure(texts[rank])
            if not re.search(r"^  all_reduce +4 +116 .*\n(.*\n)*  waited for rank 1: [12]\.\d s", texts[rank], re.M):
                raise Failure(texts[rank])


def test_torchfrtrace_reads_the_record_of_a_late_rank():
    if python("import torch.distributed.flight_recorder")[0] != 0:
        raise Skip("this PyTorch's wheel has no torchfrtrace")
    with tempfile.TemporaryDirectory() as folder:
        outputs(2, "late_of_many", env={"TORCH_FR_DUMP_TEMP_FILE": f"{folder}/trace_"})
        status, text = python("from torch.distributed.flight_recorder.fr_trace import main; main()", arguments=(folder,))
    found = re.findall(r"^missing ranks: .*$", text, re.M)
    if status != 0 or found != ["missing ranks: {1}"] or "collective: nccl:all_reduce" not in text:
        raise Failure(text)


def test_an_abort_reaches_all():
    for size in SIZES:
        texts = outputs(size, "aborted")
        for rank in range(size):
            expect(texts[rank], "abort")
        if "FINALLY" not in texts[0]:
            raise Failure("finally did not run")


def test_an_exception_of_a_rank_reaches_the_others():
    for size in SIZES:
        texts = outputs(size, "raises", [r for r in range(size) if r != 1])
        expect(texts[0], "rank 1", soon=3.0)


def test_an_end_without_destroy_harms_nobody():
    for text in outputs(3, "without_destroy"):
        if "PASSED" not in text:
            raise Failure(text)


def test_the_others_go_on_after_a_death():
    import torch.distributed as dist

    for scenario in ("goes_on", "shrinks")[:2 if hasattr(dist, "shrink_group") else 1]:
        texts = outputs(3, scenario, [0, 2])
        for rank in (0, 2):
            if "SUM 2" not in texts[rank]:
                raise Failure(texts[rank])


def test_a_group_is_reconfigured():
    import torch.distributed as dist

    if not hasattr(dist, "_reconfigure"):
        raise Skip("PyTorch has no reconfigure before 2.14")
    for size, function, said, survivors in ((3, "grows_and_shrinks", "GREW", [0, 2]), (3, "goes_wrong", "RIGHT", [0, 1, 2])):
        texts = outputs(size, function, survivors, module="changes")
        for rank in survivors:
            if said not in texts[rank]:
                raise Failure(texts[rank])


def test_a_forked_child_is_refused():
    for text in outputs(2, "forked"):
        if "CHILD 0" not in text:
            raise Failure(text)


def test_launchers():
    from gdrx import launcher

    home = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "77"}
    several = dict(home, OMPI_MCA_orte_hnp_uri="77.0;tcp://192.0.2.7,10.0.0.1:54077;tcp6://[fd00::2]:33467")
    srun = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0", "SLURM_NNODES": "2",
            "SLURM_LAUNCH_NODE_IPADDR": "192.0.2.9", "SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"}
    for env, rank, address in ((several, "3", "192.0.2.7"), (srun, "1", "192.0.2.9"),
                               (dict(srun, SLURM_NNODES="1"), "1", "127.0.0.1")):
        found = launcher.found(env)
        if (found["RANK"], found["MASTER_ADDR"]) != (rank, address) or found != launcher.found(env):
            raise Failure(f"{env}: {found}")
        if not 20000 <= int(found["MASTER_PORT"]) < 30000:
            raise Failure(f"{found}")
    if launcher.found({}) != {}:
        raise Failure("a launcher was found where there is none")
    try:
        launcher.found(home)
    except launcher.LauncherError as error:
        if "MASTER_ADDR" not in str(error):
            raise Failure(str(error)) from error
    else:
        raise Failure("ranks of several hosts, and no word of where")


def python(code, arguments=(), **env):
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=dict(os.environ, OMP_NUM_THREADS="1", **env),
                          capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_import_torch_finds_gdrx_and_survives_its_errors():
    status, text = python("import torch.distributed as d; from torch.distributed import "
                          "distributed_c10d as c; print('GDRX' in c.Backend._plugins)")
    if status != 0 or "True" not in text:
        raise Failure(text)
    broken = ("import sys, types; m = types.ModuleType('gdrx.launcher'); sys.modules['gdrx.launcher'] = m; "
              "import torch; print('alive')")
    status, text = python(broken)
    if status != 0 or "alive" not in text or "gdrx is not among" not in text:
        raise Failure(text)
    status, text = python("from torch.distributed import distributed_c10d as c; "
                          "c.Backend._plugins.pop('GDRX'); 'GDRX' in vars(c.Backend) and delattr(c.Backend, 'GDRX'); from gdrx import torch_backend as t; "
                          "t.register(); t.register(); print('GDRX' in c.Backend._plugins)",
                          TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    if status != 0 or "True" not in text:
        raise Failure(text)


GLOO_TRIES = 3  # PyTorch 2.15's Gloo aborts at its end, once in ten runs


def losses(backend, *launcher):
    for _ in range(GLOO_TRIES if backend == "gloo" else 1):
        done = subprocess.run([*launcher, str(TREE / "examples/train_ddp.py"), "--backend", backend,
                               "--steps", "20"], env=dict(os.environ, OMP_NUM_THREADS="1"),
                              capture_output=True, text=True, timeout=180, check=False)
        if done.returncode == 0:
            break
    found = re.findall(r"^step +\d+ +loss ([0-9a-fx.+p-]+)", done.stdout, re.M)
    if done.returncode != 0 or len(found) < 5:
        raise Failure(f"{launcher}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return [float.fromhex(value) for value in found]


def test_training_gives_the_losses_of_gloo():
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    wanted = losses("gloo", *torchrun)
    mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", sys.executable)
    for launcher in (torchrun, mpirun):
        got = losses("gdrx", *launcher)
        if any(abs(a - b) > 1e-5 * abs(b) for a, b in zip(got, wanted)) or got[-1] >= got[0]:
            raise Failure(f"{launcher[0]}: gdrx {got}, gloo {wanted}")


def ways_of_training(backend, size):
    """Name: losses. Of rank 0, which has the sums of all."""
    for _ in range(GLOO_TRIES if backend == "gloo" else 1):
        results = ranks.finish(ranks.start(size, "training", "all_ways", env={"TEST_BACKEND": backend}), 240)
        if all(status == 0 for status, _ in results):
            break
    else:
        raise Failure("\n".join(text for _, text in results))
    found = re.findall(r"^LOSSES (\w+) (.*)$", results[0][1], re.M)
    return {name: [float.fromhex(value) for value in re.findall(r"'([^']*)'", values)] for name, values in found}


def test_every_way_to_train_gives_the_losses_of_gloo():
    for size in SIZES:
        ours, theirs = ways_of_training("gdrx", size), ways_of_training("gloo", size)
        if len(ours) != 5:
            raise Failure(f"not all ways ran: {ours}")
        for name, losses in ours.items():
            if any(abs(a - b) > 1e-5 * abs(b) for a, b in zip(losses, theirs[name])):
                raise Failure(f"{name} with {size} ranks: gdrx {losses}, gloo {theirs[name]}")


def whole_groups():
    """The modules whose tests all run in one group: (name, what is wrong)."""
    for module in GROUPS:
        for size in SIZES:
            results = ranks.finish(ranks.start(size, module), 240)
            names = re.findall(r"^ok (\w+)", results[0][1], re.M)
            for name in names:
                yield f"{module}.{name} with {size} ranks", ""
            for name, why in re.findall(r"^skip (\w+): (.*)", results[0][1], re.M):
                print(f"skip {module}.{name} with {size} ranks: {why}", flush=True)
            bad = [text for status, text in results if status != 0]
            if bad or not names:
                yield f"{module} with {size} ranks", "\n".join(text for _, text in results)


def main():
    wanted = sys.argv[1:]  # names of tests, or none for all
    return count(whole_groups() if not wanted else (), alone(globals(), wanted))


if __name__ == "__main__":
    sys.exit(main())
