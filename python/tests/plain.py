# SPDX-License-Identifier: Apache-2.0
"""The tests of gdrx.Communicator, for the Python that runs this: it needs gdrx and numpy, not torch.

plain.py [TEST...]. Prints "ok NAME" or "FAILED NAME" for each; the exit status is 1 if any failed.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from counted import Failure, Skip, alone, count

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
SIZES = (2, 3)


def start(size, *arguments, **env):
    """A process a rank, told as torchrun tells them."""
    return [subprocess.Popen([sys.executable, str(HERE / "plain_ranks.py"), *arguments], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), OMP_NUM_THREADS="1", **env))
            for rank in range(size)]


def finish(processes, seconds=60.0):
    """(exit status, output) of each; who is late is killed, and has -9."""
    end, results = time.monotonic() + seconds, []
    for process in processes:
        try:
            output, _ = process.communicate(timeout=max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0] + f"\n(killed: it had not ended within {seconds:.0f} s)"
        results.append((process.returncode, output))
    return results


def outputs(size, function, survivors=None, **env):
    results = finish(start(size, function, **env))
    for rank in range(size) if survivors is None else survivors:
        if results[rank][0] != 0:
            raise Failure(f"rank {rank} ended with {results[rank][0]}:\n{results[rank][1]}")
    return [text for _, text in results]


def expect(text, code, *words, rank=None, soon=1.0):
    """The first Error that a rank told of."""
    found = re.search(r"^RAISED (-?[0-9.]+) (\w+) (\w+) (.*)$", text, re.M)
    if not found:
        raise Failure(f"no error:\n{text}")
    seconds, got, of, message = found.groups()
    if got != code or of != str(rank) or float(seconds) > soon or any(word not in message for word in words):
        raise Failure(f"{found.group(0)}: not {code} of rank {rank} with {words} within {soon} s")


def test_a_dead_peer_is_named():
    for size in SIZES:
        survivors = [r for r in range(size) if r != 1]
        texts = outputs(size, "killed", survivors)
        for rank in survivors:
            expect(texts[rank], "PEER_LOST", "rank 1", rank=1)


def test_finalize_names_a_dead_peer():
    text = outputs(2, "killed_unnoticed", [0])[0]
    expect(text, "PEER_LOST", "rank 1", rank=1)
    if "PASSED" not in text:
        raise Failure(text)


def test_a_dead_peer_of_a_group_is_named():
    expect(outputs(2, "killed_in_a_group", [0])[0], "PEER_LOST", "rank 1", rank=1, soon=1.3)


def test_a_request_outlives_its_communicator():
    for size in SIZES:
        outputs(size, "leaves_a_request_open")


def test_a_forked_child_is_refused():
    for text in outputs(2, "forked"):
        expect(text, "INVALID_ARGUMENT", "forked")
        if text.count("forked") != 5:
            raise Failure(text)


def test_a_second_thread_is_refused():
    text = outputs(2, "used_by_two_threads")[0]
    expect(text, "INVALID_ARGUMENT", "another thread")
    if text.count("another thread") != 3 or "PASSED" not in text:
        raise Failure(text)


def test_an_exception_in_with_waits_for_another_thread():
    for text in outputs(2, "raises_beside_a_thread"):
        expect(text, "ABORTED", soon=5.0)


def test_ctrl_c_during_a_wait_loses_no_failure():
    expect(outputs(2, "interrupted_while_a_peer_dies", [0])[0], "PEER_LOST", rank=1)


def test_ctrl_c_in_a_group_ends_the_group():
    if "INTERRUPTED" not in outputs(2, "interrupted_in_a_group")[0]:
        raise Failure("it was not interrupted")


def test_an_interpreter_ends_with_live_communicators():
    outputs(2, "left_alive")


def test_a_mismatch_is_named():
    for size in SIZES:
        for text in outputs(size, "mismatch"):
            expect(text, "MISMATCH", "4 double", "6 double")


def test_who_is_late_is_named():
    text = outputs(2, "late")[0]
    if "LATE (1,)" not in text:
        raise Failure(text)
    expect(text, "TIMEOUT", "rank(s) 1", soon=3.0)


def test_an_abort_of_another_thread_ends_a_call():
    for text in outputs(2, "aborted"):
        expect(text, "ABORTED", soon=2.0)


def test_an_exception_in_with_reaches_the_others():
    texts = outputs(2, "raises", [0])
    expect(texts[0], "ABORTED", soon=2.0)
    if "KeyError" not in texts[1]:
        raise Failure(texts[1])


def test_the_others_go_on_after_a_death():
    texts = outputs(3, "shrinks", [0, 2])
    for rank in (0, 2):
        if "SUM 2" not in texts[rank]:
            raise Failure(texts[rank])


def test_a_finalized_communicator_is_refused():
    for text in outputs(2, "finalized"):
        expect(text, "INVALID_ARGUMENT", "finalized")


def test_an_mpi_communicator():
    outputs(2, "like_mpi")


def test_an_mpi4py_communicator():
    if not importlib.util.find_spec("mpi4py"):
        raise Skip("there is no mpi4py")
    mpirun(str(HERE / "plain_ranks.py"), "from_mpi4py")


def test_the_environment_of_mpirun():
    mpirun(str(HERE / "plain_ranks.py"), "from_launcher")


def mpirun(*program):
    if not shutil.which("mpirun"):
        raise Skip("there is no mpirun")
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", sys.executable, *program],
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise Failure(f"{program}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def test_an_id_file():
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):  # it is gone after the first
            outputs(2, "id_file", TEST_ID=str(pathlib.Path(folder) / "id"))
        left = os.listdir(folder)
        if left:
            raise Failure(f"left behind: {left}")


def on_emulated_cuda(function):
    """(size, what each rank said) for each size."""
    from gdrx import library

    emulated = TREE / "build/release/emulated"
    if not (emulated / "libcuda.so.1").exists():
        raise Skip(f"there is no {emulated}")
    with tempfile.TemporaryDirectory() as folder:
        # libgdrx takes the kernels that are beside it.
        for file in [library.path(), *library.path().parent.glob("libgdrx-fabric-*.so"), *emulated.glob("lib*.so*")]:
            shutil.copy(file, folder)
        return [(size, outputs(size, function, TORCH_GDRX_LIBRARY=folder, LD_LIBRARY_PATH=folder)) for size in SIZES]


def test_cuda_memory_and_streams_on_emulated_cuda():
    on_emulated_cuda("on_emulated_cuda")


def test_who_is_late_for_a_kernel_is_named_on_emulated_cuda():
    for size, texts in on_emulated_cuda("late_on_emulated_cuda"):
        for rank in range(size):
            if rank != 1 and "LATE (1,) 1 " not in texts[rank]:
                raise Failure(texts[rank])


def test_launchers():
    from gdrx import Error, environment

    srun = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_NNODES": "2", "SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"}
    torchrun = dict(srun, RANK="3", WORLD_SIZE="4", LOCAL_WORLD_SIZE="4")
    for env, wanted in ((srun, (1, 2, False)), (dict(srun, SLURM_NNODES="1"), (1, 2, True)), (torchrun, (3, 4, True))):
        if environment.place(env)[:3] != wanted:
            raise Failure(f"{env}: {environment.place(env)}")
    for words, call in (("no launcher", lambda: environment.place({})),
                        ("several hosts", lambda: environment._note(environment.place(srun), None))):
        try:
            call()
        except Error as error:
            if words not in str(error):
                raise Failure(str(error)) from error
        else:
            raise Failure(f"no error: {words}")


def test_the_example():
    text = mpirun(str(TREE / "examples/numpy_allreduce.py"))
    for rank in range(2):
        if f"rank {rank} of 2: sum [3. 3. 3. 3.]" not in text:
            raise Failure(text)


def test_neither_torch_nor_numpy_is_imported():
    code = "import sys, gdrx; gdrx.unique_id(); print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    if done.stdout.strip() != "[]":
        raise Failure(done.stdout + done.stderr)


def whole_groups():
    for size in SIZES:
        results = finish(start(size, "every_call"))
        names = re.findall(r"^ok (\w+)", results[0][1], re.M)
        for name in names:
            yield f"plain.{name} with {size} ranks", ""
        if any(status != 0 for status, _ in results) or not names:
            yield f"plain with {size} ranks", "\n".join(text for _, text in results)


def main():
    wanted = sys.argv[1:]  # names of tests, or none for all
    return count(whole_groups() if not wanted else (), alone(globals(), wanted, "plain."))


if __name__ == "__main__":
    sys.exit(main())
