#!/usr/bin/env python3
"""Converts the single-node test cases of ONNX to the fixture of yirage-conformance.

Usage: pip install onnx==1.23.2; python3 tools/oracle/onnx_cases.py

Writes crates/yirage-conformance/tests/onnx/cases.txt: the numbers of every case of the ops below, except those that
excluded.txt beside it names, of which only the name is kept. The cases are those of the package's
`onnx.backend.test.case.node` (ONNX project, Apache-2.0).

A case is a line `case NAME OP`, then lines `attr NAME VALUE`, `in NAME TYPE SHAPE DATA` and `out TYPE SHAPE DATA`. A
shape is its sizes joined by commas, `-` for none. f32 data are bit patterns of eight hexadecimal digits without
separators; integers are decimals joined by commas.
"""

import pathlib

import numpy as np
import onnx
import onnx.backend.test.case.node as node_cases

OPS = ["Attention", "RotaryEmbedding", "RMSNormalization", "LayerNormalization", "Softmax", "MatMul", "Gelu", "TopK"]
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "crates/yirage-conformance/tests/onnx"


def tensor(value):
    value = np.asarray(value)
    shape = ",".join(map(str, value.shape)) or "-"
    if value.dtype == np.float32:
        return f"f32 {shape} {value.astype('>f4').tobytes().hex()}"
    if value.dtype.kind in "iu":
        return f"int {shape} {','.join(map(str, value.ravel().tolist()))}"
    raise SystemExit(f"a tensor of {value.dtype}: exclude the case, with the reason")


def attribute(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def main():
    excluded = {line.split("\t")[0] for line in (FOLDER / "excluded.txt").read_text().splitlines()}
    lines = ["# Single-node test cases of ONNX (Apache-2.0) as numbers, written by tools/oracle/onnx_cases.py."]
    for case in node_cases.collect_testcases(None):
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].op_type not in OPS:
            continue
        node = nodes[0]
        lines.append(f"case {case.name} {node.op_type}")
        if case.name in excluded:
            continue
        lines += [f"attr {a.name} {attribute(onnx.helper.get_attribute_value(a))}" for a in node.attribute]
        ins, outs = case.data_sets[0]
        names = [name for name in node.input if name]
        lines += [f"in {name} {tensor(value)}" for name, value in zip(names, ins, strict=True)]
        lines += [f"out {tensor(value)}" for value in outs]
    (FOLDER / "cases.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
