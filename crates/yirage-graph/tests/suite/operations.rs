//! Every operation of kernel graphs against what NumPy computes, by the reference evaluation.

#[path = "support/cases.rs"]
mod cases;

use std::collections::{BTreeSet, HashMap};
use yirage_graph::{GraphError, KernelGraph, SplitBy};
use yirage_ir::interp::evaluate;
use yirage_ir::{DType, ValueId, verify};

#[test]
fn operations_give_what_numpy_gives() {
    let cases = cases::all();
    for case in &cases {
        let graph = case.graph();
        verify(&graph).unwrap();
        let names = graph.inputs.iter().map(|&id| graph.value(id).name.clone());
        let mut tensors: HashMap<_, _> = names.zip(case.ins.iter().cloned()).collect();
        let outs = evaluate(&graph, &mut tensors).unwrap();
        for (got, want) in outs.iter().zip(&case.outs) {
            assert_eq!((got.dtype, &got.shape), (want.dtype, &want.shape), "{}", case.line);
        }
        case.check(&outs.into_iter().map(|t| t.data).collect::<Vec<_>>(), 1.0);
    }
}

#[test]
fn every_operation_has_cases_of_every_type() {
    let have: BTreeSet<(String, DType)> =
        cases::all().iter().map(|case| (case.line.split(' ').next().unwrap().to_owned(), case.ins[0].dtype)).collect();
    let operations = "exp silu gelu relu sqrt square sigmoid log add sub mul div pow clamp mul_scalar reduction max matmul \
                      split chunk concat reshape permute rms_norm scaled_rms_norm layer_norm softmax attention";
    for operation in operations.split_whitespace() {
        for dtype in ["f32", "f16", "bf16"] {
            assert!(have.contains(&(operation.to_owned(), DType::parse(dtype).unwrap())), "{operation} {dtype}");
        }
    }
}

#[test]
fn dimensions_are_counted_from_the_last_one_below_zero() {
    type Operation = fn(&mut KernelGraph, ValueId, i64) -> Result<Vec<ValueId>, GraphError>;
    let operations: [(&str, Operation); 8] = [
        ("reduction", |g, x, dim| Ok(vec![g.reduction(x, dim)?])),
        ("max", |g, x, dim| Ok(vec![g.max(x, dim)?])),
        ("softmax", |g, x, dim| Ok(vec![g.softmax(x, dim)?])),
        ("concat", |g, x, dim| Ok(vec![g.concat(&[x, x], dim)?])),
        ("split", |g, x, dim| g.split(x, SplitBy::Sizes(&[1, 3]), dim)),
        ("chunk", |g, x, dim| g.chunk(x, 2, dim)),
        ("interleave", |g, x, dim| Ok(vec![g.interleave(&[x, x], 2, dim)?])),
        ("permute", |g, x, dim| Ok(vec![g.permute(x, &[dim, if dim < 0 { -dim - 3 } else { 1 - dim }])?])),
    ];
    let made = |operation: Operation, dim: i64| {
        let mut g = KernelGraph::new("g");
        let x = g.new_input(&[4, 4], None, DType::F32).unwrap();
        let x = g.exp(x).unwrap();
        operation(&mut g, x, dim).unwrap().into_iter().for_each(|y| g.mark_output(y, None).unwrap());
        g.finish().unwrap().structural_hash()
    };
    for (name, operation) in operations {
        assert_eq!(made(operation, -1), made(operation, 1), "{name}");
        assert_eq!(made(operation, -2), made(operation, 0), "{name}");
        assert_ne!(made(operation, -2), made(operation, -1), "{name}");
    }
}

#[test]
fn a_size_that_is_left_out_is_what_the_others_leave() {
    let mut g = KernelGraph::new("g");
    let x = g.new_input(&[2, 3, 4], None, DType::F32).unwrap();
    let none = g.new_input(&[0, 3], None, DType::F32).unwrap();
    for (of, given, wanted) in
        [(x, &[-1][..], &[24][..]), (x, &[6, -1], &[6, 4]), (x, &[-1, 8, 1], &[3, 8, 1]), (none, &[-1, 5], &[0, 5])]
    {
        let made = g.reshape(of, given).unwrap();
        assert_eq!(g.dims(made).unwrap(), wanted, "{given:?}");
    }
}
