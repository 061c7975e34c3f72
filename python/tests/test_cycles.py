"""Thousands of cycles of creating, calling and dropping leave memory as it was. ``.ci/long`` says how many: they take minutes."""

import gc
import os

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from layer_models import build, golden, metadata, state_dict  # noqa: E402 - it needs NumPy

CYCLES = int(os.environ.get("YIRAGE_CYCLES", "0"))
pytestmark = pytest.mark.skipif(CYCLES == 0, reason="YIRAGE_CYCLES says how many, which .ci/long sets")

MOST = 8 << 20


def resident():
    """Bytes of this process in memory."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def flat(cycle, count):
    """Runs a tenth of the cycles, and then the others, which may take no memory for good."""
    first = max(count // 10, 1)
    for _ in range(first):
        cycle()
    before = resident()
    for _ in range(count - first):
        cycle()
    assert resident() - before < MOST, f"{count} cycles"


def test_graphs_leave_memory_as_it_was(yr):
    x = np.linspace(-1, 1, 64, dtype=np.float32)

    def cycle():
        graph = yr.new_kernel_graph()
        graph.mark_output(graph.exp(graph.new_input([64], dtype="float32")))
        (y,) = graph(inputs=[x])
        assert y[0] < y[63]

    flat(cycle, CYCLES)


def test_kernels_in_test_mode_leave_memory_as_it_was(yr):
    values = np.ones((4, 64), np.float32)

    def cycle():
        kernel = yr.PersistentKernel(test_mode=True)
        kernel.identity_layer(kernel.attach_input(values, "x"), kernel.new_tensor((4, 64), dtype="float32", name="y"))
        assert kernel.run_test_mode()["y"].tolist()[3][63] == 1

    flat(cycle, CYCLES)


def test_joined_ranks_leave_memory_as_they_found_it(yr):
    values = np.ones((4, 64), np.float32)

    def rank(own):
        kernel = yr.PersistentKernel(world_size=2, mpi_rank=own, test_mode=True)
        buffer = kernel.new_tensor((2, 4, 64), dtype="float32", name="buffer")
        x, y = kernel.attach_input(values, "x"), kernel.new_tensor((4, 64), dtype="float32", name="y")
        copy = kernel.new_tensor((4, 64), dtype="float32", name="copy")
        kernel.identity_layer(x, copy)
        kernel.allreduce_layer(copy, buffer, y)
        return kernel

    def cycle():
        kernel = yr.PersistentKernel.ranks([rank(0), rank(1)])
        assert kernel.run_test_mode()["rank0.y"].tolist()[3][63] == 2

    flat(cycle, CYCLES)


def test_compiled_kernels_leave_memory_as_it_was(yr):
    of = golden("llama")
    state, prompt = state_dict(of), of["cases"][0]["ids"]
    wanted = prompt + of["cases"][0]["greedy16"][:2]

    def cycle():
        step, tokens = metadata([prompt], len(wanted))
        options = {"rms_norm_eps": of["config"]["rms_norm_eps"], "max_num_batched_tokens": 4}
        kernel = yr.PersistentKernel(meta_tensors=[step, tokens], max_seq_length=len(wanted), **options)
        build(kernel, of["config"], state, 4, len(wanted))
        kernel.compile()
        assert kernel().finished and tokens[0].tolist() == wanted

    flat(cycle, CYCLES // 10)


def test_engines_leave_memory_as_it_was(yr, bedtime):
    def cycle():
        with yr.FusedInferEngine(bedtime) as engine:
            engine.forward([[1, 2, 3]])

    flat(cycle, CYCLES // 100)
