#!/usr/bin/env python3
"""A kernel graph on each backend that is here: the same results, and how long they take."""

import argparse
import array
import math
import random
import statistics
import sys
import time

try:
    import yirage as yr
except ModuleNotFoundError as missing:
    if missing.name != "yirage":
        raise
    sys.exit("demo_multi_backend.py: the package yirage is not installed: run `pip install .` in the folder of its repository")

ROWS, WIDTH = 64, 256


def graph_of(backend):
    """A gated layer: silu(norm(x) @ w)."""
    graph = yr.new_kernel_graph(backend=backend)
    x, w = (graph.new_input(dims, dtype=yr.float32) for dims in ([ROWS, WIDTH], [WIDTH, WIDTH]))
    graph.mark_output(graph.silu(graph.matmul(graph.rms_norm(x, [WIDTH]), w)))
    return graph


def numbers(rows, width):
    """The same numbers on every machine."""
    values = [((i * 7919) % 2001 - 1000) / 1000 for i in range(rows * width)]
    view = memoryview(bytearray(4 * len(values))).cast("f")
    for at, value in enumerate(values):
        view[at] = value
    return view.cast("B").cast("f", [rows, width])


def shown(backend, iterations):
    """Runs the graph, and gives its first row."""
    yr.set_backend(backend)
    print(f"== {yr.get_backend().value}")
    graph, inputs = graph_of(backend), [numbers(ROWS, WIDTH), numbers(WIDTH, WIDTH)]
    (result,) = graph(inputs=inputs)
    times = []
    for _ in range(iterations):
        began = time.perf_counter()
        graph(inputs=inputs)
        times.append(time.perf_counter() - began)
    if times:
        print(f"  silu(norm(x) @ w), {ROWS} x {WIDTH} x {WIDTH}: median {statistics.median(times) * 1e3:.3f} ms")
    try:
        print(f"  memory: {yr.get_memory_info(backend)}")
    except yr.Unsupported as error:
        # Not every driver tells; what is computed does not depend on it.
        print(f"  memory: {error}")
    return result.tolist()[0]


def persistent(backend):
    """A model of one layer with made-up weights, as a persistent kernel: its tokens, and the time of one."""
    words, width, head, rows = 64, 32, 16, 8
    kernel = yr.PersistentKernel(**yr.auto_configure_backend(backend), max_seq_length=64, max_num_batched_tokens=rows)
    drawn = random.Random(0)

    def given(name, *sizes):
        values = array.array("f", (drawn.gauss(0, 0.2) for _ in range(math.prod(sizes))))
        return kernel.attach_input(memoryview(values).cast("B").cast("f", sizes), name)

    def made(name, size, dtype=yr.float32):
        return kernel.new_tensor((rows, size), dtype=dtype, name=name)

    table, ids, x = given("table", words, width), made("ids", 1, yr.int64), made("x", width)
    qkv, attended, y, logits = made("qkv", 3 * width), made("attended", width), made("y", width), made("logits", words)
    kernel.embed_layer(ids, table, x)
    kernel.rmsnorm_linear_layer(x, given("norm", width), given("w_qkv", 3 * width, width), qkv)
    caches = [given(name, 1, 64, width // head, head) for name in ["keys", "values"]]
    kernel.attention_layer(qkv, *caches, None, None, None, None, attended)
    kernel.linear_with_residual_layer(attended, given("w_out", width, width), x, y)
    kernel.rmsnorm_linear_layer(y, given("norm_out", width), table, logits)
    kernel.argmax_layer(logits, made("next", 1, yr.int64))
    kernel.compile()
    began = time.perf_counter()
    report = kernel()
    milliseconds = (time.perf_counter() - began) * 1e3 / report.new_tokens
    tokens = kernel.meta_tensors["tokens"].tolist()[0]
    print(f"  PersistentKernel: {report.new_tokens} tokens, {milliseconds:.3f} ms each: {tokens[:8]} ..")


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="all", help="a backend, or all that are here")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--skip-persistent", action="store_true", help="kernel graphs alone")
    asked = parser.parse_args(given)
    backends = yr.list_available_backends() if asked.backend == "all" else [asked.backend]
    first, failed = {}, 0
    for backend in backends:
        try:
            first[backend] = shown(backend, asked.iterations)
            if not asked.skip_persistent:
                persistent(backend)
        except yr.YirageError as error:
            failed += 1
            print(f"{backend}: {error}", file=sys.stderr)
    rows = list(first.values())
    off = max((abs(a - b) for row in rows[1:] for a, b in zip(rows[0], row, strict=True)), default=0.0)
    print(f"{len(first)} backends; largest difference between them: {off:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
