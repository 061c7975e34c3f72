//! Every operation of kernel graphs against what NumPy computes, by the reference evaluation.
#![allow(clippy::unwrap_used)]

#[path = "support/cases.rs"]
mod cases;

use std::collections::{BTreeSet, HashMap};
use yirage_ir::interp::evaluate;
use yirage_ir::{DType, verify};

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
