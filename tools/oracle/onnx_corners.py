#!/usr/bin/env python3
"""Draws single nodes of ONNX at the corners that its own cases leave out, for yirage-conformance.

Usage: pip install onnx==1.23.2; python3 tools/oracle/onnx_corners.py

Writes crates/yirage-conformance/tests/onnx/corners.txt in the format of cases.txt (see onnx_cases.py): any rank,
broadcasting, negative axes, steps and indices, attributes left out, sizes of 0, 16-bit floats, versions of the operator
sets that give as an attribute what is an input now. The expected numbers are those of `onnx.reference`; of 16-bit floats
they are computed in 32 bits and rounded once, and softmax before version 13 as its text says: of all dimensions from the
axis on. Values are multiples of 1/8, so that the order of additions does not matter.
"""

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import FOLDER, case_lines

HEADER = "# Single nodes of ONNX at their corners, expected by onnx.reference, written by tools/oracle/onnx_corners.py."
BF16 = np.dtype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(16)
LINES = [HEADER]
COUNTS = {}


def case(op, ins, opset=21, outputs=1, **attrs):
    """One node; inputs that are None are left out."""
    node = helper.make_node(op, [f"i{n}" if x is not None else "" for n, x in enumerate(ins)],
                            [f"o{n}" for n in range(outputs)], **attrs)
    given = {f"i{n}": np.asarray(x) for n, x in enumerate(ins) if x is not None}
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for name, x in given.items()]
    outs = [onnx.ValueInfoProto(name=f"o{n}") for n in range(outputs)]
    model = helper.make_model(helper.make_graph([node], op, infos, outs),
                              opset_imports=[helper.make_opsetid("", opset)])
    made = expected(op, model, given, opset, attrs.get("axis", 1))
    COUNTS[op] = COUNTS.get(op, 0) + 1
    LINES.extend(case_lines(f"corner_{op.lower()}_{COUNTS[op]}", node, opset, given, made))


def expected(op, model, given, opset, axis):
    """What the reference evaluator gives, where it computes as the text of ONNX says."""
    narrow = op != "Cast" and any(x.dtype == np.float16 for x in given.values())
    if narrow:
        given = {name: x.astype(np.float32) if x.dtype == np.float16 else x for name, x in given.items()}
        for info in model.graph.input:
            if info.type.tensor_type.elem_type == TensorProto.FLOAT16:
                info.type.tensor_type.elem_type = TensorProto.FLOAT
    shape = given["i0"].shape
    early = op == "Softmax" and opset < 13
    if early:
        given = {"i0": given["i0"].reshape(int(np.prod(shape[:axis])), -1)}
        model.graph.node[0].ClearField("attribute")
        model.graph.node[0].attribute.append(helper.make_attribute("axis", 1))
        model.graph.input[0].type.tensor_type.ClearField("shape")
    with np.errstate(all="ignore"):
        made = ReferenceEvaluator(model).run(None, given)
    if early:
        made = [y.reshape(shape) for y in made]
    return [y.astype(np.float16) for y in made] if narrow else made


def eighths(*shape, dtype=np.float32):
    return (RNG.integers(-16, 17, shape) / 8).astype(dtype)


def ints(*items):
    return np.array(items, dtype=np.int64)


def elementwise():
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0, 100.0], np.float32)
    for op in ["Neg", "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Tanh", "Sigmoid", "Relu"]:
        case(op, [special])
        case(op, [eighths()])
        case(op, [eighths(2, 1, 3, 1, 1, 2)])
        case(op, [eighths(0, 3)])
        case(op, [eighths(5, dtype=np.float16)])
    for op in ["Add", "Sub", "Mul", "Div", "Pow"]:
        case(op, [eighths(2, 1, 3), eighths(4, 1)])
        case(op, [eighths(), eighths(2, 0, 3)])
        case(op, [np.abs(eighths(3, 1, 1, 2)) + 1, eighths(1, 2, 1, 1)])
        case(op, [eighths(4, dtype=np.float16), eighths(1, dtype=np.float16)])
    for op in ["Add", "Sub", "Mul"]:
        case(op, [np.array([2**31 - 1, -7], np.int32), np.array([1, 3], np.int32)])
    for op in ["Min", "Max"]:
        case(op, [special, np.float32(0.5)])
        case(op, [eighths(2, 3), eighths(1), eighths(2, 1), eighths(3)])
        case(op, [np.array([1, -5, 9], np.int32), np.array([2], np.int32)])
    case("Where", [np.array([[True], [False]]), eighths(3), eighths(2, 3)])
    case("Where", [np.array(True), eighths(2, 2, dtype=np.float16), np.float16(1)])
    case("Where", [np.array([True, False]), np.array([1, 2], np.int32), np.array([[3], [4]], np.int32)])
    case("Clip", [special, np.float32(-1), np.float32(1)])
    case("Clip", [eighths(4), None, np.float32(0.5)])
    case("Clip", [eighths(4), np.float32(0.5), None])
    case("Clip", [eighths(2, 3)], opset=6, min=-0.5, max=0.75)
    case("Clip", [np.array([-9, 3, 9], np.int32), np.array(-4, np.int32), np.array(4, np.int32)])
    for to in [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16]:
        for source in [np.float32, np.float16, BF16, np.int32, np.bool_]:
            case("Cast", [np.array([0, 1, 300, -2.5, 65519]).astype(source)], to=to)
    case("Cast", [np.array([1.9, -1.9, 0.0], np.float32)], to=TensorProto.INT32)
    case("Cast", [np.array([0.0, np.nan, -3], np.float32)], to=TensorProto.BOOL)


def reductions():
    ops = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL2"]
    for op in ops:
        case(op, [eighths(2, 3, 2, 2), ints(-1, 0)], keepdims=0)
        case(op, [eighths(2, 3, 2, 2), ints(1, -2)])
        case(op, [eighths(70, 2), ints(0)], keepdims=0)
        case(op, [eighths(3, 4)], keepdims=0)
        case(op, [eighths(2, 3), ints()], noop_with_empty_axes=1)
        case(op, [eighths(2, 3, dtype=np.float16), ints(1)])
        case(op, [np.array([[1, np.nan], [np.inf, 2]], np.float32), ints(1)])
        case(op, [eighths(2, 3)], opset=11, axes=[-1], keepdims=0)
    case("ReduceSum", [np.array([[2**31 - 1, 1], [5, 6]], np.int32), ints(1)])
    case("ReduceMax", [np.array([[-3, 1], [5, 6]], np.int32), ints(0)])
    for shape, axis in [((2, 3, 4), -2), ((5,), 0), ((2, 1, 3), 1)]:
        case("Softmax", [eighths(*shape)], axis=axis)
        case("Softmax", [eighths(*shape)], opset=11, axis=axis % len(shape))
    case("Softmax", [eighths(2, 3, 2)], opset=11)
    case("Softmax", [eighths(2, 3, dtype=np.float16)])


def shapes():
    case("Reshape", [eighths(2, 3, 4), ints(-1)])
    case("Reshape", [eighths(2, 3, 4), ints(0, -1, 1, 2)])
    case("Reshape", [eighths(1, 1), ints()])
    case("Reshape", [eighths(0, 3), ints(3, 0, 2)], allowzero=1)
    case("Transpose", [eighths(2, 1, 3, 2, 2)], perm=[4, 0, 3, 1, 2])
    case("Transpose", [eighths()])
    case("Transpose", [eighths(3, 2, dtype=np.float16)])
    case("Slice", [eighths(5, 4), ints(-1), ints(-100), ints(0), ints(-2)])
    case("Slice", [eighths(5, 4), ints(1, 3), ints(2**63 - 1, -(2**63)), ints(-2, -1), ints(2, -1)])
    case("Slice", [eighths(5, 4), ints(0, 4), ints(5, 1)])
    case("Slice", [eighths(6), ints(1), ints(-1), None, ints(3)])
    case("Slice", [eighths(5, 4), ints(2), ints(3), ints(1), ints(2**40)])
    case("Slice", [eighths(3, 4)], opset=9, starts=[1, -2], ends=[100, -1], axes=[0, 1])
    case("Slice", [eighths(3, 4)], opset=9, starts=[1], ends=[2])
    case("Expand", [eighths(3, 1), ints(1)])
    case("Expand", [eighths(1), ints(2, 0, 3)])
    case("Expand", [eighths(), ints(2, 2)])
    case("Expand", [eighths(2, 3, 1), ints(3, 4)])
    case("Squeeze", [eighths(1, 2, 1)])
    case("Squeeze", [eighths(1, 2, 1)], opset=11, axes=[-1])
    case("Unsqueeze", [eighths(2), ints(-1, 0)])
    case("Unsqueeze", [eighths(2, 2)], opset=11, axes=[1])
    case("Concat", [eighths(2, 1), eighths(2, 0), eighths(2, 3)], axis=-1)
    case("Concat", [eighths(3)], axis=0)
    case("Concat", [eighths(1, 2, dtype=np.float16), eighths(2, 2, dtype=np.float16)], axis=-2)
    case("Gather", [eighths(2, 3, 2), ints(-1, 0)], axis=-2)
    case("Gather", [eighths(4), np.array(-3)])
    case("Gather", [eighths(3, 2), np.array([[0, 2], [-1, 1]], np.int32)])
    case("Gather", [eighths(3, 2), np.zeros((0, 2), np.int64)], axis=1)
    case("Split", [eighths(2, 7)], outputs=3, axis=-1, num_outputs=3)
    case("Split", [eighths(4, 2), ints(0, 3, 1)], outputs=3)
    case("Split", [eighths(6)], opset=11, outputs=2, split=[5, 1])
    case("Split", [eighths(6)], opset=11, outputs=3)
    for x in [eighths(), eighths(2, 0), eighths(2, 3, dtype=np.float16), np.array([True, False])]:
        case("Identity", [x])


def products():
    for a, b in [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 1, 2, 3), (4, 3, 2)), ((2, 0), (0, 3)),
                 ((3,), (2, 3, 4)), ((5, 2, 3), (3,)), ((1, 70), (70, 1))]:
        case("MatMul", [eighths(*a), eighths(*b)])
    case("MatMul", [eighths(2, 3, dtype=np.float16), eighths(3, 2, dtype=np.float16)])
    case("Gemm", [eighths(3, 2), eighths(4, 3), eighths(2, 1)], transA=1, transB=1, alpha=0.5, beta=2.0)
    case("Gemm", [eighths(2, 3), eighths(3, 4), np.float32(0.5)])
    case("Gemm", [eighths(2, 3), eighths(3, 4), eighths(4)], beta=0.0)
    case("Gemm", [eighths(2, 3), eighths(3, 4)], alpha=0.25)
    case("Gelu", [eighths(2, 1, 3)], approximate="tanh")
    case("Gelu", [eighths()])


def main():
    elementwise()
    reductions()
    shapes()
    products()
    (FOLDER / "corners.txt").write_text("\n".join(LINES) + "\n")
    print(sum(COUNTS.values()), "cases")


if __name__ == "__main__":
    main()
