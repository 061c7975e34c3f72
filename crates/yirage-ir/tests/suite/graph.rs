//! Graphs: text form, verification, evaluation.

use std::collections::HashMap;
use yirage_ir::expr::Func;
use yirage_ir::op::{Linear, Map, OpCase, RmsNorm, Role};
use yirage_ir::{Dim, F32, Format, GraphBuilder, Op, Sym, Tensor, Type, text, verify};

fn mlp() -> yirage_ir::Graph {
    let mut b = GraphBuilder::new("mlp");
    let x = b.step_input("x", Type::rows(Sym::Tokens, 32)).unwrap();
    let norm = b.weight("norm", Type::new(Format::F32.into(), [32u32])).unwrap();
    let gate = b.weight("gate", Type::new(Format::Q4_0.into(), [64u32, 32])).unwrap();
    let up = b.weight("up", Type::new(Format::F32.into(), [64u32, 32])).unwrap();
    let n = b.op("n", RmsNorm { eps: F32(1e-5), width: 32, unit_offset: false }, &[x, norm]).unwrap();
    let g = b.op("g", Linear { groups: 1 }, &[n, gate]).unwrap();
    let u = b.op("u", Linear { groups: 1 }, &[n, up]).unwrap();
    let y = b.op("y", Map::gated(Func::Silu), &[g, u]).unwrap();
    b.output(y);
    b.finish()
}

#[test]
fn text_round_trips_and_hash_is_stable() {
    let graph = mlp();
    verify(&graph).unwrap();
    let printed = text::print(&graph);
    let again = text::parse(&printed).unwrap();
    assert_eq!(text::print(&again), printed);
    assert_eq!(again.stable_hash(), graph.stable_hash());
}

#[test]
fn bad_texts_are_typed_errors_with_lines() {
    let good = text::print(&mlp());
    for (from, to, want) in [
        ("rms_norm", "rmsnorm", "there is no op"),
        ("width=32", "width=31", "do not divide"),
        ("eps=1e-5", "eps=x", "cannot be"),
        ("f32[Tokens, 64]", "f32[Tokens, 65]", "is declared"),
        ("input %x", "input %norm", "is taken"),
        ("output %y", "output %z", "nothing is called"),
        ("q4_0[64, 32]", "q4_0[64, 31]", "multiple of 32"),
    ] {
        let bad = good.replacen(from, to, 1);
        let error = text::parse(&bad).unwrap_err();
        assert!(error.to_string().contains(want), "{from} -> {to}: {error}");
    }
    for cut in 0..good.len() - 3 {
        assert!(text::parse(&good[..cut]).is_err(), "a text cut at {cut} must not parse");
    }
}

/// Its words are no word of this form, so that a text says which form it has.
#[test]
fn texts_of_form_1_are_refused_with_the_remedy() {
    for (old, new, line) in [
        ("graph g {\n  slot %x: f32[4]\n  output %x\n}\n", "input", 2),
        ("graph g {\n  weight %w: f32[4]\n  state %kv: f32[4]\n  output %w\n}\n", "kv_cache", 3),
        (
            "graph g {\n  input %x: f32[Tokens, 8]\n  weight %w: f32[8, 8]\n  %y = region products(%x, %w): f32[Tokens, 8]\n",
            "matmul_group",
            4,
        ),
    ] {
        let error = text::parse(old).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        for says in ["text form 1, form 2 says", new, "cargo xtask migrate-text FILE"] {
            assert!(error.what.contains(says), "{error}");
        }
    }
    // As names they are as good as others.
    let named = "graph slot {\n  input %slot: f32[4]\n  input %state: f32[4]\n  output %slot, %state\n}\n";
    assert_eq!(text::print(&text::parse(named).unwrap()), named);
}

#[test]
fn every_case_infers_evaluates_and_round_trips() {
    let cases = Op::all_cases();
    assert!(cases.len() > 150, "{} cases", cases.len());
    let mut names = std::collections::HashSet::new();
    for OpCase { name, op, ins, .. } in &cases {
        assert!(names.insert(format!("{} {name}", op.name())), "two cases of {} are called {name}", op.name());
        let types: Vec<Type> = ins.iter().enumerate().map(|(i, t)| model_type(op.role(i, t), t)).collect();
        let outs = op
            .infer(&types)
            .or_else(|_| op.infer(&with_tokens(&types)))
            .unwrap_or_else(|e| panic!("{} {name}: {e}", op.name()));
        let values = op.eval(&ins.iter().collect::<Vec<_>>());
        assert_eq!(outs.len(), values.len());
        let attrs = op.attrs().into_iter().map(|(n, v)| (n.to_string(), v)).collect();
        assert_eq!(Op::from_attrs(op.name(), attrs).unwrap().unwrap(), *op);
    }
    for name in Op::NAMES {
        assert!(cases.iter().any(|c| c.op.name() == *name), "{name} has no case");
    }
}

/// The type that an input has in a model.
fn model_type(role: Role, t: &Tensor) -> Type {
    let mut ty = t.ty();
    let symbols: &[Sym] = match role {
        Role::Activation => &[Sym::Tokens],
        Role::StepInput(symbols) => symbols,
        Role::Weight | Role::Any => &[],
        Role::KvCache => {
            // The type of a state is that of one block.
            ty.shape.remove(0);
            &[]
        }
    };
    ty.shape.iter_mut().zip(symbols).for_each(|(dim, &sym)| *dim = Dim::Sym(sym));
    ty
}

/// A view names the symbol that its input begins with.
fn with_tokens(types: &[Type]) -> Vec<Type> {
    let mut types = types.to_vec();
    types.iter_mut().filter_map(|t| t.shape.first_mut()).for_each(|dim| *dim = Dim::Sym(Sym::Tokens));
    types
}

#[test]
fn evaluation_follows_the_ops() {
    let graph = mlp();
    let weight = |n: usize| Tensor::f32([n, 32], (0..n * 32).map(|i| (i % 7) as f32 - 3.0).collect::<Vec<_>>());
    let mut tensors: HashMap<String, Tensor> = HashMap::new();
    tensors.insert("x".into(), Tensor::f32([2, 32], (0..64).map(|i| i as f32 * 0.1 - 3.0).collect::<Vec<_>>()));
    tensors.insert("norm".into(), Tensor::f32([32], vec![1.0; 32]));
    tensors.insert("gate".into(), weight(64));
    tensors.insert("up".into(), weight(64));
    let out = yirage_ir::interp::evaluate(&graph, &mut tensors).unwrap();
    assert_eq!(out[0].shape, [2, 64]);
    assert!(out[0].floats().iter().all(|v| v.is_finite()));
    let error = yirage_ir::interp::evaluate(&graph, &mut tensors).unwrap_err();
    assert_eq!(error.0, "x", "step inputs are consumed: the next step must give them anew");
}

#[test]
fn general_ops_round_trip_as_text() {
    let text = r#"graph general {
  input %x: f32[Tokens, 12]
  weight %w: f16[4]
  %h = view{form="reshape(Tokens, 3, 4)"}(%x): f32[Tokens, 3, 4]
  %e = map{expr="t0 = exp(x0); cast.bf16(div(t0, add(t0, mul(x1, 1.5))))"}(%h, %w): bf16[Tokens, 3, 4]
  %s = reduce{kind=sum, axes="[1, 2]", keep=true}(%e): bf16[Tokens, 1, 1]
  %i = iota{shape="[3, 4]", axis=1}(): i32[3, 4]
  %f = fill{value=-3i, shape="[3, 4]"}(): i32[3, 4]
  %m = map{expr="lt(x0, x1)"}(%i, %f): bool[3, 4]
  %p = view{form="permute(0, 2, 1)"}(%h): f32[Tokens, 4, 3]
  %c = view{form="slice(0:1:Tokens, 3:-2:2, 0:1:3)"}(%p): f32[Tokens, 2, 3]
  %y = contract(%c, %h): f32[Tokens, 2, 4]
  %j = concat{axis=1}(%y, %h): f32[Tokens, 5, 4]
  output %s, %m, %j
}
"#;
    let graph = text::parse(text).unwrap();
    verify(&graph).unwrap();
    assert_eq!(text::print(&graph), text);
}
