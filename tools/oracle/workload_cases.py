#!/usr/bin/env python3
"""Computes what the workloads of yirage-graph give at their small sizes, with NumPy alone.

Usage: pip install numpy; python3 tools/oracle/workload_cases.py

Writes crates/yirage-graph/tests/golden/workloads.txt: a line `NAME BATCH SHAPE DATA` for each, data in hexadecimal digits
of f32. Element i of input number j is `(at(j, i) >> 56) - 128` in 256ths, with `at` of counter_rng.py: a number that f32,
f16 and bf16 hold exactly. Results are computed in 64 bits and rounded once.
"""

import pathlib

import numpy as np

from counter_rng import at

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/yirage-graph/tests/golden/workloads.txt"


def drawn(*shapes):
    """The inputs of these shapes, in order."""
    def one(number, shape):
        words = at(number, np.arange(int(np.prod(shape)), dtype=np.uint64)) >> np.uint64(56)
        return ((words.astype(np.int64) - 128) / 256).reshape(shape)
    return [one(number, shape) for number, shape in enumerate(shapes)]


def norm(x):
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True))


def attention(q, k, v):
    e = np.exp(q @ k)
    return (e / e.sum(-1, keepdims=True)) @ v


def heads(count, queries, norms=False):
    def run():
        q, k, v = drawn((count, queries, 8), (count, 8, 32), (count, 32, 8))
        return attention(norm(q), k, norm(v)) if norms else attention(q, k, v)
    return run


def rmsnorm(rows):
    x, w = drawn((rows, 32), (32, 48))
    return norm(x) @ w


def lora(rows):
    x, w, a, b = drawn((rows, 32), (32, 48), (32, 4), (4, 48))
    return x @ w + (x @ a) @ b


def gated_mlp(rows):
    x, w1, w2 = drawn((rows, 32), (32, 48), (32, 48))
    o = x @ w1
    return o / (1 + np.exp(-o)) * (x @ w2)


def norm_transformer(rows):
    h, x, alpha = drawn((rows, 32), (rows, 32), (rows, 32))
    return norm(x + alpha * (norm(h) + x))


def moe(rows):
    x, a, b = drawn((3, rows, 32), (3, 32, 32), (3, 32, 32))
    return np.exp(x @ a) @ b


lines = ["# What NumPy computes, written by tools/oracle/workload_cases.py."]
for batch in (1, 3):
    results = {
        "group_query_attention": heads(2 * batch, 8)(),
        "qknorm_gqa": heads(2 * batch, 8, norms=True)(),
        "rmsnorm": rmsnorm(2 * batch),
        "lora": lora(4 * batch),
        "gated_mlp": gated_mlp(4 * batch),
        "norm_transformer": norm_transformer(4 * batch),
        "moe": moe(4 * batch),
        "multi_head_attention": heads(4 * batch, 4)(),
        "multi_query_attention": heads(batch, 16)(),
    }
    for name, y in results.items():
        shape = ",".join(map(str, y.shape))
        data = "".join(f"{w:08x}" for w in np.ravel(y).astype(np.float32).view(np.uint32))
        lines.append(f"{name} {batch} {shape} {data}")
OUT.write_text("\n".join(lines) + "\n")
print(OUT, OUT.stat().st_size, "bytes")
