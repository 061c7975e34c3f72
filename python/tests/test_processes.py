"""Ranks that are processes: those that a model starts for itself, and those that a program is one of."""

import os
import pathlib
import shutil
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
    assert answers(pp=2) == alone
    assert answers(pipeline_parallel_size=3, pp=3) == alone
    for wrong in [{"tp": 0}, {"tp": 2, "tensor_parallel_size": 4}, {"tp": 100_000}, {"pp": 0}, {"pp": 2, "tp": 2},
                  {"pp": 2, "pipeline_parallel_size": 3}]:  # fmt: skip
        with pytest.raises(yr.OptionError):
            answers(**wrong)
    with pytest.raises(yr.OptionError, match=r"as many stages as the model has layers at most \(\d+\), got 60"):
        answers(pp=60)
    with pytest.raises(yr.OptionError, match="expected a model with experts, got one without"):
        answers(tp=2, enable_expert_parallel=True)
    with pytest.raises(yr.OptionError, match="say how many by tp"):
        answers(enable_expert_parallel=True)
    for ranks in [3, 8]:
        with pytest.raises(yr.OptionError, match=rf"KV heads of the model \(4\), got {ranks}; use 1, 2 or 4"):
            answers(tp=ranks)
        with pytest.raises(yr.OptionError, match=rf"KV heads of the model \(4\), got {ranks}; use 1, 2 or 4"):
            yr.InferEngine(bedtime, device="cpu", distributed_config=yr.DistConfig(ranks))


@pytest.mark.parametrize("ranks", [2, 4])
def test_an_engine_on_several_ranks_gives_the_logits_of_one(yr, bedtime, ranks):
    np = pytest.importorskip("numpy", reason="NumPy is not installed here")
    rows = [[3, 5, 7, 11, 13], [17, 19, 23, 29, 31]]

    def answers(**options):
        with yr.InferEngine(bedtime, device="cpu", **options) as model:
            first = np.array(model.forward(rows).numpy())
            second = np.array(model.forward([[2], [4]], [[5], [5]]).numpy())
            return first, second, model.generate(rows, max_new_tokens=6, temperature=0, stop_on_eos=False)

    alone, several = answers(), answers(distributed_config=yr.DistConfig(ranks))
    assert (alone[0] == several[0]).all() and (alone[1] == several[1]).all() and alone[2] == several[2]
    with pytest.raises(yr.OptionError, match="one rank or more"):
        yr.DistConfig(0)


KERNEL = """
    import numpy as np
    import yirage
    from layer_models import alone, golden, metadata
    from test_ranks import rank

    comm = yirage.CommunicationBackend()
    comm.init_process_group()
    own, world = comm.rank, comm.world_size
    for case in golden("llama")["cases"]:
        prompt, wanted = case["ids"], case["greedy16"]
        positions = len(prompt) + len(wanted)
        step, tokens = metadata([prompt], positions)
        kernel = rank(yirage, own, world, [step, tokens], positions)
        kernel.compile()
        assert kernel().finished and tokens[0].tolist() == prompt + wanted, (own, tokens)
    prompts = [[3 + (t * 5 + i) % 240 for t in range(3 + 8 * i)] for i in range(4)]
    meta = metadata(prompts, 48)
    kernel = rank(yirage, own, world, meta, 48, rows=8, max_num_batched_requests=2)
    kernel.compile(output_dir=sys.argv[2])
    kernel()
    again = metadata(prompts, 48)
    loaded = rank(yirage, own, world, again, 48, rows=8, layers=False, max_num_batched_requests=2)
    loaded.load_mpk_kernel(sys.argv[2])
    loaded()
    # Plans of ranks are made anew: none is kept on disk.
    assert (again[1] == meta[1]).all() and loaded.plan_counts()["read"] == 0
    assert meta[1][3, len(prompts[3]) :].tolist() == alone(yirage, "llama", prompts[3], 48)
    comm.barrier()
    print(f"rank {own} is done\\n", end="", flush=True)
"""


def test_kernels_whose_ranks_are_processes_give_the_tokens_of_transformers(tmp_path):
    pytest.importorskip("numpy", reason="NumPy is not installed here")
    ended = started(2, KERNEL, tmp_path / "saved", tmp_path=tmp_path)
    assert ended.returncode == 0 and ended.stdout.count("is done") == 2, ended.stdout + ended.stderr


@pytest.mark.parametrize("launcher", ["mpirun.openmpi", "mpirun.mpich"])
def test_kernels_whose_ranks_mpirun_has_started_give_the_same_tokens(tmp_path, launcher):
    pytest.importorskip("numpy", reason="NumPy is not installed here")
    if shutil.which(launcher) is None:
        pytest.skip(f"{launcher} is not installed here")
    script = tmp_path / "script.py"
    script.write_text("import sys\nsys.path.insert(0, sys.argv[1])\n" + textwrap.dedent(KERNEL))
    allowed = ["--oversubscribe", "--allow-run-as-root"] if launcher.endswith("openmpi") else []
    command = [launcher, *allowed, "-n", "2", sys.executable, script, HERE, tmp_path / "saved"]
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and ended.stdout.count("is done") == 2, ended.stdout + ended.stderr


def test_sums_of_processes_are_those_of_one_and_what_differs_is_named(yr, tmp_path):
    pytest.importorskip("numpy", reason="NumPy is not installed here")
    code = """
    import yirage
    from test_ranks import summand

    comm = yirage.CommunicationBackend()
    comm.init_process_group()
    own, world = comm.rank, comm.world_size
    parts = [[1e8, 1.0, 0.1, 3.0, 1e-3, 7.0], [1.0, 1e8, 0.2, -3.0, 1e-8, 0.5], [-1e8, -1e8, 0.3, 1e-7, 1.0, 1.0], [0.5] * 6]
    out = summand(yirage, world, own, parts[own]).run_test_mode()["out"].numpy().tolist()
    print(f"sum {own} {out}\\n", end="", flush=True)
    try:
        summand(yirage, world, own, parts[own], rms_norm_eps=0.5 if own == 1 else 1e-6).run_test_mode()
    except yirage.RanksError as error:
        print(f"rank {own} heard: {error}\\n", end="", flush=True)
    try:
        summand(yirage, world, 0, parts[own])
    except yirage.OptionError as error:
        print(f"rank {own} is refused: {error}\\n", end="", flush=True)
    """
    from test_ranks import summand

    parts = [[1e8, 1.0, 0.1, 3.0, 1e-3, 7.0], [1.0, 1e8, 0.2, -3.0, 1e-8, 0.5], [-1e8, -1e8, 0.3, 1e-7, 1.0, 1.0], [0.5] * 6]
    for ranks in [2, 4]:
        one = yr.PersistentKernel.ranks([summand(yr, ranks, own, parts[own]) for own in range(ranks)]).run_test_mode()
        ended = started(ranks, code, tmp_path=tmp_path)
        said = ended.stdout
        assert ended.returncode == 0, said + ended.stderr
        assert "rank 1 heard: " in said and "rms_norm_eps of rank 1 is 0.5, of rank 0 0.000001" in said, said
        assert said.count("heard: ") == ranks and said.count("another rank differs from rank 0") == ranks - 1, said
        assert said.count("is refused: ") == ranks - 1 and f"rank 0 of {ranks} is asked for" in said, said
        sums = {line.split(" ", 2)[2] for line in said.splitlines() if line.startswith("sum ")}
        assert sums == {str(one["rank0.out"].numpy().tolist())}, said


def test_no_process_of_a_rank_outlives_its_model(yr, bedtime):
    def children():
        found = pathlib.Path(f"/proc/{os.getpid()}/task").glob("*/children")
        return {pid for task in found for pid in task.read_text().split()}

    before = children()
    model = yr.LLM(bedtime, threads=1, tp=4)
    assert len(children() - before) == 3
    model.close()
    assert children() <= before


def test_the_program_that_starts_ranks_says_what_it_wants(tmp_path):
    asked = subprocess.run([sys.executable, "-m", "yirage.ranks", "-n", "2"], capture_output=True, text=True, timeout=60)
    assert asked.returncode == 2 and "program" in asked.stderr
    none = started(0, "", tmp_path=tmp_path)
    assert none.returncode == 1 and "RanksError" in none.stderr and "1 to" in none.stderr
