#!/usr/bin/env python3
"""Computes what the operations of kernel graphs give, with NumPy alone, for the tests of yirage-graph.

Usage: pip install numpy; python3 tools/oracle/kernel_graph_cases.py

Writes crates/yirage-graph/tests/golden/operations.txt. A case is a line `case OPERATION ARGUMENT=VALUE ...`, then a line
`in TYPE SHAPE DATA` for each operand and `out TYPE SHAPE DATA` for each result. A shape is its sizes joined by commas;
data are bit patterns in hexadecimal digits, eight for an f32, four for f16 and bf16. Results are computed in 64 bits from
the rounded operands, and rounded once.
"""

import math
import pathlib

import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/yirage-graph/tests/golden/operations.txt"
rng = np.random.default_rng(19)
np.seterr(all="ignore")
lines = ["# What NumPy computes, written by tools/oracle/kernel_graph_cases.py."]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 20.0, -88.0, 1e-3, 300.0, np.inf, -np.inf, np.nan]
TYPES = ["f32", "f16", "bf16"]


def bits(x, dtype):
    """Rounded to the type, as words."""
    x = np.asarray(x, np.float64).astype(np.float32)
    if dtype == "f32":
        return x.view(np.uint32)
    if dtype == "f16":
        return x.astype(np.float16).view(np.uint16)
    words = x.view(np.uint32)
    rounded = ((words.astype(np.uint64) + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def value(words, dtype):
    if dtype == "f32":
        return words.view(np.float32).astype(np.float64)
    if dtype == "f16":
        return words.view(np.float16).astype(np.float64)
    return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def draw(shape, dtype, scale=1.0, positive=False):
    x = rng.standard_normal(shape) * scale
    x = np.abs(x) + 0.1 if positive else x
    return value(np.ascontiguousarray(bits(x, dtype)), dtype)


def row(kind, x, dtype):
    words = bits(x, dtype)
    digits = 8 if dtype == "f32" else 4
    shape = ",".join(map(str, np.shape(x))) or "-"
    data = "".join(f"{w:0{digits}x}" for w in np.ravel(words)) or "-"
    lines.append(f"{kind} {dtype} {shape} {data}")


def case(name, dtype, operands, results, **arguments):
    text = " ".join(f"{k}={','.join(map(str, v)) if isinstance(v, (list, tuple)) else v}" for k, v in arguments.items())
    lines.append(f"case {name} {text}".rstrip())
    for x in operands:
        row("in", x, dtype)
    for y in results if isinstance(results, list) else [results]:
        row("out", y, dtype)


def gelu(x):
    return 0.5 * x * np.vectorize(lambda v: math.erfc(-v / math.sqrt(2.0)), otypes=[np.float64])(x)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def attention(q, k, v, causal, scale):
    group = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
    scores = scale * (q @ np.swapaxes(k, -1, -2))
    if causal:
        n, m = scores.shape[-2:]
        hidden = np.arange(m)[None, :] > np.arange(n)[:, None] + (m - n)
        scores = np.where(hidden, -np.inf, scores)
    return softmax(scores, -1) @ v


UNARY = {
    "exp": np.exp,
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "gelu": gelu,
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0.0)),
    "sqrt": np.sqrt,
    "square": np.square,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "log": np.log,
}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power}
MEETINGS = [((3, 5), (3, 1)), ((1, 7), (3, 1)), ((2, 1, 3), (1, 5, 3)), ((1,), (9,)), ((2, 1, 1, 3), (1, 3, 2, 1))]

for dtype in TYPES:
    special = value(np.ascontiguousarray(bits(np.array(SPECIAL), dtype)), dtype)
    for name, f in UNARY.items():
        case(name, dtype, [special], f(special))
        x = draw([(3, 5), (1, 7, 1), (2, 3, 1, 3)][len(lines) % 3], dtype)
        case(name, dtype, [x], f(x))
    for name, f in BINARY.items():
        left, right = np.meshgrid(special[::2], special[::2])
        case(name, dtype, [left, right], f(left, right))
        for a, b in MEETINGS if dtype == "f32" else MEETINGS[1:3]:
            x, y = draw(a, dtype, positive=name == "pow"), draw(b, dtype)
            case(name, dtype, [x, y], f(x, y))
    case("clamp", dtype, [special], np.clip(special, -0.5, 2.5), min_val=-0.5, max_val=2.5)
    case("clamp", dtype, [special], np.where(np.isnan(special), special, -1.0), min_val=1.0, max_val=-1.0)
    case("mul_scalar", dtype, [special], special * 0.375, scalar=0.375)
    for shape, dim in [((3, 5), 0), ((3, 5), 1), ((2, 1, 7), 1), ((2, 3, 2, 3), 2), ((1, 70), 1)]:
        x = draw(shape, dtype)
        case("reduction", dtype, [x], x.sum(dim, keepdims=True), dim=dim)
        case("max", dtype, [x], x.max(dim, keepdims=True), dim=dim)
    case("max", dtype, [special[None]], np.array([[np.nan]]), dim=1)
    for a, b in [((1, 1), (1, 1)), ((3, 17), (17, 5)), ((2, 3, 4), (2, 4, 1)), ((1, 2, 3, 5), (1, 2, 5, 3))]:
        x, y = draw(a, dtype), draw(b, dtype)
        case("matmul", dtype, [x, y], x @ y)
    x = draw((2, 7, 3), dtype)
    case("split", dtype, [x], [x[:, :1], x[:, 1:5], x[:, 5:]], sizes=[1, 4, 2], dim=1)
    case("split", dtype, [x], [x[:, :3], x[:, 3:6], x[:, 6:]], size=3, dim=1)
    x = draw((2, 6), dtype)
    case("chunk", dtype, [x], np.split(x, 3, 1), chunks=3, dim=1)
    parts = [draw(s, dtype) for s in [(2, 1, 3), (2, 4, 3), (2, 2, 3)]]
    case("concat", dtype, parts, np.concatenate(parts, 1), dim=1)
    case("reshape", dtype, [x], x.reshape(3, 1, 4), dims=[3, 1, 4])
    x = draw((2, 3, 5), dtype)
    case("permute", dtype, [x], x.transpose(2, 0, 1), dims=[2, 0, 1])
    for shape, normalized in [((3, 16), [16]), ((2, 3, 5), [3, 5]), ((1, 1), [1]), ((2, 1, 2, 9), [9])]:
        x = draw(shape, dtype, 3.0)
        axes = tuple(range(len(shape) - len(normalized), len(shape)))
        mean = np.square(x).mean(axes, keepdims=True)
        case("rms_norm", dtype, [x], x / np.sqrt(mean), shape=normalized)
        w, b = draw(normalized, dtype), draw(normalized, dtype)
        case("scaled_rms_norm", dtype, [x, w], x / np.sqrt(mean + 1e-5) * w, shape=normalized, eps="1e-5")
        centred = x - x.mean(axes, keepdims=True)
        normal = centred / np.sqrt(np.square(centred).mean(axes, keepdims=True) + 1e-5)
        case("layer_norm", dtype, [x], normal, shape=normalized, eps="1e-5")
        case("layer_norm", dtype, [x, w, b], normal * w + b, shape=normalized, eps="1e-5")
    for shape, dim in [((3, 7), 1), ((3, 7), 0), ((2, 5, 3), 1), ((9,), 0), ((1, 2, 3, 1), 3)]:
        x = draw(shape, dtype, 5.0)
        case("softmax", dtype, [x], softmax(x, dim), dim=dim)
    for q, k, width, causal, scale in [
        ((2, 3, 4), (2, 3, 4), 4, 0, None),
        ((4, 3, 4), (2, 5, 4), 3, 1, None),
        ((2, 4, 1, 3), (2, 1, 6, 3), 3, 1, 0.75),
    ]:
        operands = [draw(q, dtype), draw(k, dtype), draw((*k[:-1], width), dtype)]
        factor = 1 / math.sqrt(q[-1]) if scale is None else scale
        extra = {} if scale is None else {"scale": scale}
        case("attention", dtype, operands, attention(*operands, causal, factor), causal=causal, **extra)

OUT.parent.mkdir(parents=True, exist_ok=True)
OUT.write_text("\n".join(lines) + "\n")
print(OUT, OUT.stat().st_size, "bytes", sum(l.startswith("case") for l in lines), "cases")
