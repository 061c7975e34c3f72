//! Every named op is its general form, on all of its cases and within its tolerance; or it says why it has none.

use std::collections::{BTreeMap, HashMap};
use yirage_ir::op::{NoGeneralForm, OpCase};
use yirage_ir::{Graph, Op, Tensor, Type, interp, verify};

/// Ops of which cases have no general form, and how many: those with a cache, blocks of a quantised format, or a sort.
const WITHOUT: &[(&str, usize)] = &[
    ("attention", 84),
    ("causal_conv1d", 16),
    ("embed", 12),
    ("expert_linear", 28),
    ("gated_delta", 12),
    ("kv_append", 22),
    ("linear", 108),
    ("quantize", 10),
    ("route", 8),
    ("sample", 96),
    ("ssm_scan", 12),
    ("top_k", 26),
];

fn types(case: &OpCase) -> Vec<Type> {
    let mut types: Vec<Type> = case.ins.iter().map(Tensor::ty).collect();
    if let Op::Attention(op) = &case.op
        && op.cached
    {
        types[1].shape.remove(0);
    }
    types
}

fn evaluated(graph: &Graph, ins: &[Tensor]) -> Vec<Tensor> {
    let mut tensors: HashMap<String, Tensor> =
        ins.iter().enumerate().map(|(i, t)| (format!("x{i}"), t.clone())).collect();
    interp::evaluate(graph, &mut tensors).unwrap()
}

fn wide(t: &Tensor) -> Vec<f64> {
    t.scalars().iter().map(|x| x.as_f64()).collect()
}

#[test]
fn every_op_is_its_general_form() {
    let (mut equal, mut without) = (0, BTreeMap::new());
    for case in Op::all_cases() {
        let name = format!("{}: {}", case.op.name(), case.name);
        let graph = match case.op.lower(&types(&case)) {
            Ok(graph) => graph,
            Err(NoGeneralForm::General) => continue,
            Err(NoGeneralForm::Beyond(_)) => {
                *without.entry(case.op.name()).or_insert(0) += 1;
                continue;
            }
            Err(e) => panic!("{name}: {e}"),
        };
        verify(&graph).unwrap_or_else(|e| panic!("{name}: {e}"));
        let wanted = case.op.eval(&case.ins.iter().collect::<Vec<_>>());
        for (output, (got, want)) in evaluated(&graph, &case.ins).iter().zip(&wanted).enumerate() {
            assert_eq!((got.dtype, &got.shape), (want.dtype, &want.shape), "{name}");
            let (got, want) = (wide(got), wide(want));
            let bounds = case.bounds(output, &want);
            for (i, ((g, w), bound)) in got.iter().zip(&want).zip(bounds).enumerate() {
                let same = g == w || (g.is_nan() && w.is_nan());
                assert!(same || (g - w).abs() <= bound, "{name}: value {i} is {g}, the op gives {w}, within {bound:e}");
            }
        }
        equal += 1;
    }
    assert!(equal > 70, "{equal} cases");
    assert_eq!(without, WITHOUT.iter().copied().collect(), "cases without a general form");
}

/// In a model the rows are a symbol; a form for them is one for any number.
#[test]
fn rows_may_be_a_symbol() {
    let mut lowered = 0;
    for case in Op::all_cases() {
        let mut types = types(&case);
        for (i, ty) in types.iter_mut().enumerate() {
            use yirage_ir::op::Role;
            if matches!(case.op.role(i, &case.ins[i]), Role::Activation | Role::StepInput(_)) && !ty.shape.is_empty() {
                ty.shape[0] = yirage_ir::Dim::Sym(yirage_ir::Sym::Tokens);
            }
        }
        match case.op.lower(&types) {
            Ok(graph) => {
                verify(&graph).unwrap();
                lowered += 1;
            }
            Err(NoGeneralForm::General | NoGeneralForm::Beyond(_)) => {}
            Err(e) => panic!("{}: {}: {e}", case.op.name(), case.name),
        }
    }
    assert!(lowered > 60, "{lowered}");
}
