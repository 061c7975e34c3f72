#!/usr/bin/env python3
"""Times of a model layer's graphs on each backend that is here, as a table and as JSON.

Each row has the mean, the deviation and the extremes of its calls, what the operation has to compute, and how much of that
is done in a second by the mean: `throughput_gflops` is `flops / mean_ms / 1e6`.
"""

import argparse
import json
import statistics
import sys
import time

try:
    import yirage as yr
except ModuleNotFoundError as missing:
    if missing.name != "yirage":
        raise
    sys.exit("multi_backend_benchmark.py: the package yirage is not installed: run `pip install .` in the folder of its repository")


def graphs(asked, backend):
    """Name, shape, operations to compute, graph and inputs of each."""
    dtype = yr.dtype(asked.dtype)

    def build(dims, op):
        graph = yr.new_kernel_graph(backend=backend)
        graph.mark_output(op(graph, *[graph.new_input(list(d), dtype=dtype) for d in dims]))
        device = yr.get_backend(backend)
        return graph, [device.allocate_tensor(list(d), dtype) for d in dims]

    for hidden in asked.hidden_sizes:
        for batch in asked.batch_sizes:
            for length in asked.seq_lengths:
                m = batch * length
                matmul = build([(m, hidden), (hidden, hidden)], lambda g, x, w: g.matmul(x, w))
                yield "matmul", [m, hidden, hidden], 2 * m * hidden * hidden, *matmul
                norm = build([(m, hidden)], lambda g, x: g.rms_norm(x, [hidden]))
                yield "rms_norm", [m, hidden], 4 * m * hidden, *norm
                swiglu = build([(m, hidden)] * 2, lambda g, a, b: g.mul(g.silu(a), b))
                yield "swiglu", [m, hidden], 5 * m * hidden, *swiglu
            for vocabulary in asked.vocab_sizes:
                head = build([(batch, hidden), (hidden, vocabulary)], lambda g, x, w: g.matmul(x, w))
                yield "head", [batch, hidden, vocabulary], 2 * batch * hidden * vocabulary, *head


def timed(graph, inputs, warmup, iterations):
    """Milliseconds of each call."""
    for _ in range(max(warmup, 1)):
        graph(inputs=inputs)
    times = []
    for _ in range(iterations):
        began = time.perf_counter()
        graph(inputs=inputs)
        times.append((time.perf_counter() - began) * 1e3)
    return times


def rows(asked, backend):
    for name, shape, flops, graph, inputs in graphs(asked, backend):
        times = timed(graph, inputs, asked.warmup, asked.iterations)
        mean = statistics.fmean(times)
        yield {
            "backend": backend,
            "op": name,
            "shape": shape,
            "dtype": asked.dtype,
            "mean_ms": mean,
            "std_ms": statistics.pstdev(times),
            "min_ms": min(times),
            "max_ms": max(times),
            "flops": flops,
            "throughput_gflops": flops / mean / 1e6,
        }


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3, help="calls before those that count, one at least")
    parser.add_argument("--output", metavar="FILE", help="write the rows as JSON")
    parser.add_argument("--backends", nargs="+", metavar="NAME", help="instead of all that are here")
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--seq-lengths", nargs="+", type=int, default=[128])
    parser.add_argument("--hidden-sizes", nargs="+", type=int, default=[768])
    parser.add_argument("--vocab-sizes", nargs="+", type=int, default=[32000])
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16"])
    asked = parser.parse_args(given)
    if asked.iterations < 1:
        parser.error("--iterations: one or more")
    results, errors = [], {}
    for backend in asked.backends or yr.list_available_backends():
        try:
            for row in rows(asked, backend):
                results.append(row)
                shape = " x ".join(map(str, row["shape"]))
                spread = f"{row['mean_ms']:9.3f} ± {row['std_ms']:.3f} ms"
                print(f"{backend:10} {row['op']:9} {shape:22} {spread}  {row['throughput_gflops']:8.1f} GFLOP/s")
        except yr.YirageError as error:
            errors[backend] = str(error)
            print(f"{backend}: {error}", file=sys.stderr)
    if asked.output:
        with open(asked.output, "w") as file:
            json.dump({"version": yr.__version__, "results": results, "errors": errors}, file, indent=2)
            file.write("\n")
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
