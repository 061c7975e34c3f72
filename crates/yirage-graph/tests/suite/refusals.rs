//! Wrong use of the builder: each refusal says what was given and what is wanted, and leaves the graph as it was.

use yirage_graph::{GraphError, KernelGraph, SplitBy};
use yirage_ir::{DType, Format, ValueId};

const F16: DType = DType::Stored(Format::F16);

fn refused<T: std::fmt::Debug>(result: Result<T, GraphError>, wanted: &[&str]) {
    let message = result.unwrap_err().to_string();
    wanted.iter().for_each(|part| assert!(message.contains(part), "`{part}` is not in: {message}"));
}

#[test]
fn inputs_say_what_they_take() {
    let mut g = KernelGraph::new("g");
    refused(g.new_input(&[1; 5], None, DType::F32), &["5 dimensions", "4 are the most"]);
    refused(
        g.new_input(&[2, 3], Some(&[3, 2]), DType::F32),
        &["[3, 2]", "[3, 1] (row-major)", "[1, 2] (column-major)"],
    );
    refused(g.new_input(&[2, 3], Some(&[1]), DType::F32), &["strides [1]", "[2, 3]"]);
    refused(g.new_input(&[2, 3, 4], Some(&[12, 1, 3]), DType::F32), &["[12, 1, 3]", "[1, 2, 6]"]);
    for dtype in [DType::I32, DType::Bool, DType::I8, DType::Stored(Format::Q4_0)] {
        refused(g.new_input(&[32], None, dtype), &[dtype.name(), "f32, f16 and bf16"]);
    }
    refused(g.new_input(&[u32::MAX; 4], None, DType::F32), &["bytes"]);
    refused(g.named_input("", &[1], None, DType::F32), &["letters"]);
    refused(g.named_input("a b", &[1], None, DType::F32), &["a b"]);
    g.named_input("a", &[1], None, DType::F32).unwrap();
    refused(g.named_input("a", &[1], None, DType::F32), &["`a` is taken"]);
    refused(g.finish(), &["`g`", "mark_output"]);
}

#[test]
fn what_was_declared_is_read_back() {
    let mut g = KernelGraph::new("g");
    let row = g.new_input(&[2, 3, 4], Some(&[12, 4, 1]), F16).unwrap();
    let column = g.new_input(&[2, 3, 4], Some(&[1, 2, 6]), F16).unwrap();
    let scalar = g.new_input(&[], None, DType::F32).unwrap();
    let one = g.new_weight("w", &[4, 1], Some(&[1, 4]), DType::F32).unwrap();
    assert_eq!(
        (g.dims(row).unwrap(), g.strides(row).unwrap(), g.dtype(row).unwrap()),
        (vec![2, 3, 4], vec![12, 4, 1], F16)
    );
    assert_eq!((g.dims(column).unwrap(), g.strides(column).unwrap()), (vec![2, 3, 4], vec![1, 2, 6]));
    assert_eq!((g.dims(scalar).unwrap(), g.strides(scalar).unwrap()), (vec![], vec![]));
    assert_eq!(g.strides(one).unwrap(), [1, 4]);
    refused(g.dims(ValueId(9)), &["value 9", "4 of this graph"]);
    let sum = g.add(row, column).unwrap();
    g.mark_output(sum, Some(&[12, 4, 1])).unwrap();
    let graph = g.finish().unwrap();
    assert_eq!(graph.ty(graph.inputs[1]).to_string(), "f16[2, 3, 4]/[1, 2, 6]");
    assert_eq!(graph.ty(graph.outputs[0]).to_string(), "f16[2, 3, 4]");
}

#[test]
fn outputs_lie_dense_and_have_one_name() {
    let mut g = KernelGraph::new("g");
    let x = g.named_input("x", &[2, 3], None, DType::F32).unwrap();
    let y = g.exp(x).unwrap();
    refused(g.mark_output(y, Some(&[1, 2])), &["[1, 2]", "not supported", "[3, 1]", "permute"]);
    refused(g.mark_output(ValueId(7), None), &["value 7"]);
    refused(g.mark_output(x, None), &["the input `x`", "not supported"]);
    refused(g.named_output("x", y, None), &["`x` is taken"]);
    refused(g.named_output("a b", y, None), &["a b"]);
    refused(g.named_output("z", x, None), &["called `x`"]);
    g.named_output("y", y, None).unwrap();
    refused(g.named_output("z", y, None), &["called `y`"]);
    refused(g.new_weight("y", &[1], None, DType::F32), &["`y` is taken"]);
    let graph = g.finish().unwrap();
    assert_eq!(graph.find("y"), Some(y));
    yirage_ir::verify(&graph).unwrap();
}

#[test]
fn operands_must_fit() {
    let mut g = KernelGraph::new("g");
    let mut input = |dims: &[u32], dtype| g.new_input(dims, None, dtype).unwrap();
    let (m, v, t) = (input(&[2, 3], DType::F32), input(&[3], DType::F32), input(&[4, 2, 3], DType::F32));
    let (half, other, batch) = (input(&[2, 3], F16), input(&[2, 4], DType::F32), input(&[1, 3, 2], DType::F32));
    let none = input(&[0, 3], DType::F32);
    let before = g.clone().finish().map_err(|e| e.to_string());
    refused(g.add(m, v), &["add of f32[2, 3], f32[3]", "equal ranks"]);
    refused(g.sub(m, other), &["along dimension 1"]);
    refused(g.mul(m, half), &["f32[2, 3], f16[2, 3]", "one element type"]);
    refused(g.pow(m, ValueId(99)), &["value 99"]);
    refused(g.matmul(m, m), &["matmul of f32[2, 3], f32[2, 3]", "[..., m, k]"]);
    refused(g.matmul(v, v), &["[..., m, k]"]);
    refused(g.matmul(t, batch), &["equal leading dimensions"]);
    refused(g.matmul(half, m), &["one element type"]);
    refused(g.reduction(m, 2), &["no dimension 2", "0 to 1"]);
    refused(g.max(m, 9), &["no dimension 9"]);
    refused(g.clamp(m, f32::NAN, 1.0), &["min_val", "NaN"]);
    refused(g.concat(&[], 0), &["concat"]);
    refused(g.concat(&[m, other], 0), &["differ"]);
    refused(g.concat(&[m, half], 0), &["one element type"]);
    refused(g.concat(&[m, m], 2), &["no dimension 2"]);
    refused(g.concat(&[m; 65], 0), &["65"]);
    refused(g.split(m, SplitBy::Sizes(&[1, 1]), 1), &["together 3", "Sizes([1, 1])"]);
    refused(g.split(m, SplitBy::Sizes(&[u32::MAX, 4]), 1), &["together 3"]);
    refused(g.split(m, SplitBy::Sizes(&[0, 3]), 1), &["above 0"]);
    refused(g.split(m, SplitBy::Size(0), 1), &["Size(0)"]);
    refused(g.split(m, SplitBy::Size(1), 2), &["no dimension 2"]);
    refused(g.chunk(m, 2, 1), &["divides 3", "2 given"]);
    refused(g.chunk(m, 0, 1), &["0 given"]);
    refused(g.reshape(m, &[7]), &["as many elements"]);
    refused(g.reshape(m, &[-2, 3]), &["reshape of f32[2, 3]", "sizes from 0", "[-2, 3] given"]);
    refused(g.reshape(m, &[1 << 32, 1]), &["sizes from 0 to 2^32 - 1", "[4294967296, 1] given"]);
    refused(g.reshape(m, &[-1, -1]), &["at most one -1", "[-1, -1] given"]);
    refused(g.reshape(m, &[4, -1]), &["divides the number of elements", "[4, -1] given"]);
    refused(g.reshape(none, &[0, -1]), &["above 0", "[0, -1] given"]);
    refused(g.permute(m, &[0, 0]), &["each dimension"]);
    refused(g.permute(m, &[0, -2]), &["each dimension"]);
    assert_eq!(g.finish().map_err(|e| e.to_string()), before, "a refusal leaves no trace");
}

#[test]
fn a_dimension_out_of_range_is_named_with_those_that_there_are() {
    let mut g = KernelGraph::new("g");
    let (x, s) = (g.new_input(&[2, 3], None, DType::F32).unwrap(), g.new_input(&[], None, DType::F32).unwrap());
    for dim in [2, -3, i64::MIN, i64::MAX] {
        let there_are = "its rank is 2, so dimensions are 0 to 1, or -2 to -1 from the last one";
        let wanted = |what: &str| format!("{what}: f32[2, 3] has no dimension {dim}; {there_are}");
        refused(g.reduction(x, dim), &[&wanted("reduction")]);
        refused(g.max(x, dim), &[&wanted("max")]);
        refused(g.softmax(x, dim), &[&wanted("softmax")]);
        refused(g.concat(&[x, x], dim), &[&wanted("concat")]);
        refused(g.split(x, SplitBy::Size(1), dim), &[&wanted("split")]);
        refused(g.chunk(x, 1, dim), &[&wanted("chunk")]);
        refused(g.interleave(&[x, x], 1, dim), &[&wanted("chunk")]);
        refused(g.permute(x, &[0, dim]), &[&wanted("permute")]);
    }
    for dim in [0, -1] {
        refused(g.softmax(s, dim), &[&format!("softmax: f32[] has no dimension {dim}; its rank is 0")]);
    }
    // Of operands of two ranks it is another dimension of each.
    let y = g.new_input(&[1, 2, 3], None, DType::F32).unwrap();
    refused(g.concat(&[x, y], -1), &["concat", "differ"]);
}

#[test]
fn norms_and_attention_say_what_they_take() {
    let mut g = KernelGraph::new("g");
    let mut input = |dims: &[u32]| g.new_input(dims, None, DType::F32).unwrap();
    let (x, w) = (input(&[2, 3, 4]), input(&[4]));
    let (q, k, v, short) = (input(&[4, 3, 8]), input(&[2, 5, 8]), input(&[2, 5, 6]), input(&[2, 2, 8]));
    refused(g.rms_norm(x, &[3]), &["normalized_shape", "[3] given"]);
    refused(g.rms_norm(x, &[]), &["[] given"]);
    refused(g.rms_norm(x, &[1, 2, 3, 4]), &["innermost"]);
    refused(g.scaled_rms_norm(x, &[3, 4], Some(w), 0.0), &["f32[4]", "[3, 4]"]);
    refused(g.scaled_rms_norm(x, &[4], None, -1.0), &["eps", "-1"]);
    refused(g.layer_norm(x, &[4], None, None, f32::NAN), &["eps", "NaN"]);
    refused(g.layer_norm(x, &[4], None, Some(x), 0.0), &["weight or bias"]);
    refused(g.softmax(x, 3), &["no dimension 3"]);
    refused(g.attention(w, w, w, false, None), &["[batch.., heads, len, dim]"]);
    refused(g.attention(q, k, short, false, None), &["equal heads and lengths"]);
    refused(g.attention(k, q, q, false, None), &["multiple of the key heads"]);
    refused(g.attention(q, short, short, true, None), &["at least as many keys"]);
    refused(g.attention(q, k, v, false, Some(f32::INFINITY)), &["scale", "inf"]);
    let y = g.attention(q, k, v, true, None).unwrap();
    assert_eq!(g.dims(y).unwrap(), [4, 3, 6]);
}
