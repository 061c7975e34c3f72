#!/usr/bin/env python3
"""Converts the single-node test cases of ONNX to the fixture of yirage-conformance.

Usage: pip install onnx==1.23.2; python3 tools/oracle/onnx_cases.py

Writes crates/yirage-conformance/tests/onnx/cases.txt: the numbers of every case of the ops below, except those that
excluded.txt beside it names, of which only the name is kept. The cases are those of the package's
`onnx.backend.test.case.node` (ONNX project, Apache-2.0).

A case is a line `case NAME OP OPSET`, then lines `attr NAME VALUE`, `in NAME TYPE SHAPE DATA` in the order of the
node's inputs (`in - absent` for one that is left out) and `out TYPE SHAPE DATA`. A shape is its sizes joined by commas,
`-` for none; so are lists of integers. Floats are bit patterns in hexadecimal digits without separators, eight of them
for f32, four for f16 and bf16; whole numbers and truth values are decimals joined by commas.
"""

import pathlib

import ml_dtypes
import numpy as np
import onnx
import onnx.backend.test.case.node as node_cases

NAMED = ["Attention", "RotaryEmbedding", "RMSNormalization", "LayerNormalization", "Softmax", "MatMul", "Gelu", "TopK"]
GENERAL = """Add Sub Mul Div Pow Min Max Neg Abs Exp Log Sqrt Reciprocal Tanh Sigmoid Relu Clip Where Cast ReduceSum
ReduceMean ReduceMax ReduceMin ReduceProd ReduceSumSquare ReduceL2 Reshape Transpose Slice Expand Squeeze Unsqueeze
Concat Gather Split Gemm Identity""".split()
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "crates/yirage-conformance/tests/onnx"
FLOATS = {np.dtype(np.float32): "f32", np.dtype(np.float16): "f16", np.dtype(ml_dtypes.bfloat16): "bf16"}
NUMBERS = {np.dtype(np.int32): "i32", np.dtype(np.uint32): "u32", np.dtype(np.int64): "i64", np.dtype(np.bool_): "bool"}
HEADER = "# Single-node test cases of ONNX (Apache-2.0) as numbers, written by tools/oracle/onnx_cases.py."


class NoTensor(Exception):
    """A value that the fixture has no type for."""


def tensor(value):
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    if isinstance(value, list):
        raise NoTensor("a list")
    value = np.asarray(value)
    shape = ",".join(map(str, value.shape)) or "-"
    if value.dtype in FLOATS:
        words = ">u4" if value.dtype == np.float32 else ">u2"
        bits = np.ascontiguousarray(value).view(words[1:]).astype(words)
        return f"{FLOATS[value.dtype]} {shape} {bits.tobytes().hex() or '-'}"
    if value.dtype == np.uint64 and (value < 2**63).all():
        value = value.astype(np.int64)
    if value.dtype in NUMBERS:
        items = value.ravel().astype(np.int64).tolist()
        return f"{NUMBERS[value.dtype]} {shape} {','.join(map(str, items)) or '-'}"
    raise NoTensor(f"a tensor of {value.dtype}")


def attribute(value):
    if isinstance(value, bytes):
        return value.decode()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def case_lines(name, node, opset, ins, outs):
    """The lines of one case; `ins` are by name."""
    lines = [f"case {name} {node.op_type} {opset}"]
    lines += [f"attr {a.name} {attribute(onnx.helper.get_attribute_value(a))}" for a in node.attribute if a.type]
    lines += [f"in {i} {tensor(ins[i])}" if i else "in - absent" for i in node.input]
    return lines + [f"out {tensor(value)}" for value in outs]


def main():
    excluded = {line.split("\t")[0] for line in (FOLDER / "excluded.txt").read_text().splitlines()}
    lines, without = [HEADER], []
    for case in node_cases.collect_testcases(None):
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].op_type not in NAMED + GENERAL:
            continue
        node, opset = nodes[0], case.model.opset_import[0].version
        if case.name in excluded:
            lines.append(f"case {case.name} {node.op_type} {opset}")
            continue
        ins, outs = case.data_sets[0]
        given = dict(zip((i.name for i in case.model.graph.input), ins, strict=True))
        try:
            lines += case_lines(case.name, node, opset, given, outs)
        except NoTensor as why:
            without.append(f"{case.name}: {why}")
    if without:
        raise SystemExit("exclude with the reason:\n" + "\n".join(without))
    (FOLDER / "cases.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
