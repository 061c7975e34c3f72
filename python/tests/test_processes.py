"""Ranks that are processes: those that a model starts for itself, and those that a program is one of."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).parent


def started(ranks, code, *words, tmp_path, deadline=60):
    """A program as ranks: how it has ended, with what all of them said."""
    script = tmp_path / "script.py"
    script.write_text("import sys\nsys.path.insert(0, sys.argv[1])\n" + textwrap.dedent(code))
    command = [sys.executable, "-m", "yirage.ranks", "-n", str(ranks), "--deadline", str(deadline), script, HERE, *words]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("YIRAGE_")}
    return subprocess.run([str(word) for word in command], env=kept, capture_output=True, text=True, timeout=300)


COLLECTIVES = """
    import numpy as np
    import yirage

    comm = yirage.CommunicationBackend()
    comm.init_process_group("auto", timeout=60)
    rank, ranks = comm.rank, comm.world_size

    def of(rank, dtype):
        return (np.arange(12).reshape(6, 2) * 3 + rank * 7 - 5).astype(dtype)

    for dtype in ["float32", "float16", "int32"]:
        all = [of(other, dtype) for other in range(ranks)]
        wide = np.stack(all).astype("float64")
        for op, wanted in {"sum": wide.sum(0), "prod": wide.prod(0), "max": wide.max(0), "min": wide.min(0)}.items():
            got = np.asarray(comm.all_reduce(all[rank], op).numpy())
            assert (got == wanted.astype("float32").astype(dtype)).all() and got.dtype == dtype, (dtype, op, got, wanted)
            part = comm.reduce_scatter(all[rank], op).numpy()
            assert (part == got[rank * 6 // ranks : (rank + 1) * 6 // ranks]).all(), (dtype, op)
        assert (comm.all_gather(all[rank], ranks).numpy() == np.concatenate(all)).all()
        for root in range(ranks):
            assert (comm.broadcast(all[rank], root).numpy() == all[root]).all()
        if rank == 0:
            for other in range(1, ranks):
                comm.send(all[0] * 2, other)
        else:
            assert (comm.recv((6, 2), all[0].dtype, 0).numpy() == all[0] * 2).all()
        comm.barrier()
    for wrong in [{"rank": ranks}, {"world_size": ranks + 1}]:
        try:
            yirage.CommunicationBackend().init_process_group("shm", **wrong)
        except yirage.OptionError as error:
            assert f"started as rank {rank} of {ranks}" in str(error), error
        else:
            raise AssertionError(wrong)
    for call in [lambda: comm.all_reduce(all[0], "median"), lambda: comm.broadcast(all[0], ranks), lambda: comm.send(all[0], rank)]:
        try:
            call()
        except yirage.OptionError:
            continue
        raise AssertionError("an argument that fits no rank was taken")
    print(f"rank {rank} is done\\n", end="", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_collectives_among_processes_have_the_values_of_numpy(tmp_path, ranks):
    pytest.importorskip("numpy", reason="NumPy is not installed here")
    ended = started(ranks, COLLECTIVES, tmp_path=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.split("\n"))[1:] == [f"rank {rank} is done" for rank in range(ranks)]


def test_a_rank_that_is_gone_or_does_something_else_is_an_error_of_its_own_class(tmp_path):
    pytest.importorskip("numpy", reason="NumPy is not installed here")
    code = """
    import os
    import numpy as np
    import yirage

    comm = yirage.CommunicationBackend()
    comm.init_process_group()
    comm.barrier()
    if comm.rank == 1 and sys.argv[2] == "dies":
        os._exit(9)
    size = 4 if comm.rank == 0 else 5
    try:
        comm.all_reduce(np.zeros(size, np.float32))
    except yirage.RanksError as error:
        print("rank", comm.rank, "heard:", error)
    """
    dies = started(2, code, "dies", tmp_path=tmp_path)
    assert dies.returncode == 9 and "rank 1 has ended with 9" in dies.stderr, dies.stderr
    assert "rank 0 heard: rank 1 is gone" in dies.stdout and "all_reduce" in dies.stdout, dies.stdout
    differs = started(2, code, "differs", tmp_path=tmp_path)
    assert differs.returncode == 0 and differs.stdout.count("of 4 f32") == differs.stdout.count("of 5 f32") == 2, differs.stdout


def test_a_process_that_nobody_started_is_told_how(yr):
    comm = yr.CommunicationBackend()
    with pytest.raises(yr.RanksError, match="python -m yirage.ranks -n N script.py"):
        comm.init_process_group("nccl", world_size=2, rank=0)
    with pytest.raises(yr.RanksError, match="init_process_group first"):
        comm.all_reduce([1.0])
    with pytest.raises(yr.OptionError, match="backend='smoke'"):
        comm.init_process_group("smoke")
    with pytest.raises(TypeError, match="colour"):
        comm.init_process_group(colour="red")


def test_a_model_on_two_ranks_gives_the_tokens_of_one(yr, bedtime, golden):
    params = yr.SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)
    sampled = yr.SamplingParams(temperature=0.9, max_tokens=12, seed=5)
    prompts = ["In the deep forest", "Once upon a time"]

    def answers(**options):
        with yr.LLM(bedtime, precision="exact", threads=1, **options) as model:
            return [
                [output.outputs[0].token_ids for output in model.generate(prompts, of, use_tqdm=False)]
                for of in [params, sampled]
            ]

    alone = answers()
    assert answers(tp=2) == alone
    assert answers(tensor_parallel_size=2, tp=2) == alone
    for wrong in [{"tp": 0}, {"tp": 2, "tensor_parallel_size": 4}, {"tp": 100_000}]:
        with pytest.raises(yr.OptionError):
            answers(**wrong)


def test_an_engine_on_several_ranks_is_refused_with_what_takes_them(yr, bedtime):
    with pytest.raises(yr.Unsupported, match=r"LLM\(model, tp=2\)"):
        yr.InferEngine(bedtime, device="cpu", distributed_config=yr.DistConfig(2))
    with pytest.raises(yr.OptionError, match="one rank or more"):
        yr.DistConfig(0)


def test_no_process_of_a_rank_outlives_its_model(yr, bedtime):
    def children():
        found = pathlib.Path(f"/proc/{os.getpid()}/task").glob("*/children")
        return {pid for task in found for pid in task.read_text().split()}

    before = children()
    model = yr.LLM(bedtime, threads=1, tp=3)
    assert len(children() - before) == 2
    model.close()
    assert children() <= before


def test_the_program_that_starts_ranks_says_what_it_wants(tmp_path):
    asked = subprocess.run([sys.executable, "-m", "yirage.ranks", "-n", "2"], capture_output=True, text=True, timeout=60)
    assert asked.returncode == 2 and "program" in asked.stderr
    none = started(0, "", tmp_path=tmp_path)
    assert none.returncode == 1 and "RanksError" in none.stderr and "1 to" in none.stderr
