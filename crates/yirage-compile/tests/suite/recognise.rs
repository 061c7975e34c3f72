//! Named ops are found in their general forms, and nowhere else.

use crate::support;
use yirage_compile::{CompileOptions, Decisions, PIPELINE, plan_weights};
use yirage_ir::op::{OpCase, Role};
use yirage_ir::{Dim, Graph, GraphBuilder, NodeKind, Op, Sym, Type, ValueId, ValueSource, text};

/// The ops that are recognised.
const KNOWN: [&str; 7] = ["softmax", "rms_norm", "layer_norm", "linear", "embed", "matmul", "rope"];

fn recognised(graph: &Graph) -> Graph {
    let pass = PIPELINE.iter().find(|p| p.name == "recognise").unwrap();
    (pass.run)(graph, &support::target(), &CompileOptions::default(), &mut Decisions::unheard()).unwrap()
}

/// The inputs of a case as a model has them.
fn inputs(b: &mut GraphBuilder, case: &OpCase) -> Vec<ValueId> {
    let declare = |(i, t): (usize, &yirage_ir::Tensor)| {
        let mut ty = t.ty();
        if case.op.role(i, t) == Role::Weight {
            return b.weight(&format!("w{i}"), ty).unwrap();
        }
        ty.shape[0] = Dim::Sym(Sym::Tokens);
        b.step_input(&format!("x{i}"), ty).unwrap()
    };
    case.ins.iter().enumerate().map(declare).collect()
}

/// A graph of the op, and one of its general form.
fn both(case: &OpCase) -> Option<(Graph, Graph)> {
    let mut named = GraphBuilder::new("g");
    let ins = inputs(&mut named, case);
    let types: Vec<Type> = ins.iter().map(|&i| named.ty(i).clone()).collect();
    let form = case.op.lower(&types).ok()?;
    let y = named.op("y", case.op.clone(), &ins).unwrap();
    named.output(y);
    let mut general = GraphBuilder::new("g");
    let mut is: Vec<Option<ValueId>> = vec![None; form.values.len()];
    form.inputs.iter().zip(inputs(&mut general, case)).for_each(|(f, id)| is[f.index()] = Some(id));
    for node in &form.nodes {
        let ins: Vec<ValueId> = node.ins.iter().map(|i| is[i.index()].unwrap()).collect();
        let name = if form.outputs.contains(&node.outs[0]) { "y" } else { &form.value(node.outs[0]).name };
        is[node.outs[0].index()] = Some(general.node(node.kind.clone(), &ins, &[name.to_string()]).unwrap()[0]);
    }
    general.output(is[form.outputs[0].index()].unwrap());
    Some((named.finish(), general.finish()))
}

#[test]
fn the_general_form_of_an_op_is_that_op() {
    for name in KNOWN {
        let mut found = 0;
        for case in Op::all_cases().iter().filter(|case| case.op.name() == name) {
            let Some((named, general)) = both(case) else { continue };
            assert_eq!(text::print(&recognised(&general)), text::print(&named), "{name}: {}", case.name);
            let plan = |graph| plan_weights(graph, &support::target()).unwrap();
            assert_eq!(plan(&general), plan(&named), "{name}: {}", case.name);
            found += 1;
        }
        assert!(found >= 3, "{found} cases of {name}");
    }
}

#[test]
fn what_is_read_elsewhere_stays() {
    for case in Op::all_cases().iter().filter(|case| KNOWN.contains(&case.op.name())) {
        let Some((_, general)) = both(case) else { continue };
        for n in 0..general.nodes.len() - 1 {
            let mut seen = general.clone();
            seen.outputs.push(seen.nodes[n].outs[0]);
            let kept = recognised(&seen);
            let still = |name: &str| {
                kept.find(name).is_some_and(|id| matches!(kept.value(id).source, ValueSource::Node { .. }))
            };
            assert!(still(&general.value(general.nodes[n].outs[0]).name), "{}: {}", case.op.name(), case.name);
            yirage_ir::verify(&kept).unwrap();
        }
    }
}

#[test]
fn what_is_nearly_an_op_stays() {
    let near = [
        // Its weight is no weight, and not of the type that norms compute with.
        (
            r#"input %x: f32[Tokens, 8] input %w: bf16[8]
            %m = reduce{kind=mean_square, axes="[1]", keep=true}(%x): f32[Tokens, 1]
            %y = map{expr="mul(mul(x0, rsqrt(add(x1, 0.00001))), x2)"}(%x, %m, %w): f32[Tokens, 8]"#,
            "map",
        ),
        // The product of other rows, a look-up in what is computed, a norm of a sum of squares, a softmax that is not one.
        ("input %x: f32[Tokens, 8] weight %w: f32[8, 4] %y = contract(%x, %w): f32[Tokens, 4]", "contract"),
        ("input %x: f32[Tokens, 8] input %i: i32[Seqs] %y = gather{axis=0}(%x, %i): f32[Seqs, 8]", "gather"),
        (
            r#"input %x: f32[Tokens, 8]
            %m = reduce{kind=sum, axes="[1]", keep=true}(%x): f32[Tokens, 1]
            %y = map{expr="mul(x0, rsqrt(add(x1, 0.1)))"}(%x, %m): f32[Tokens, 8]"#,
            "map",
        ),
        (
            r#"input %x: f32[Tokens, 8] input %z: f32[Tokens, 8]
            %m = reduce{kind=max, axes="[1]", keep=true}(%z): f32[Tokens, 1]
            %e = map{expr="exp(sub(x0, x1))"}(%x, %m): f32[Tokens, 8]
            %s = reduce{kind=sum, axes="[1]", keep=true}(%e): f32[Tokens, 1]
            %y = map{expr="div(x0, x1)"}(%e, %s): f32[Tokens, 8]"#,
            "map",
        ),
        (
            // The weight is read as it lies, too.
            r#"input %x: f32[Tokens, 8] weight %w: f32[4, 8]
            %n = map{expr="neg(x0)"}(%w): f32[4, 8]
            %t = view{form="permute(1, 0)"}(%w): f32[8, 4]
            %y = contract(%x, %t): f32[Tokens, 4]
            output %n"#,
            "contract",
        ),
    ];
    for (body, last) in near {
        let graph = text::parse(&format!("graph g {{ {body} output %y }}")).unwrap();
        let kept = recognised(&graph);
        assert_eq!(text::print(&kept), text::print(&graph));
        assert!(matches!(&kept.nodes[kept.nodes.len() - 1].kind, NodeKind::Op(op) if op.name() == last));
    }
}
