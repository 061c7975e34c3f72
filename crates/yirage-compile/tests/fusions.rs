//! What is fused, from named ops and from plain ones: the same plan from both.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod support;

use std::collections::HashMap;
use support::target;
use yirage_compile::{Options, compile, plan_weights};
use yirage_ir::{Dims, Graph, GraphBuilder, NodeKind, Op, RegionKind, Type, ValueId, text};
use yirage_plan::{Precision, VerifiedPlan};

const BUCKET: Dims = Dims { tokens: 33, seqs: 2, blocks: 4, rows: 2 };
/// Named ops that plain ones become.
const KNOWN: [&str; 6] = ["softmax", "rms_norm", "layer_norm", "linear", "embed", "rope"];

fn planned(graph: &Graph) -> VerifiedPlan {
    let (target, options) = (target(), Options::new(Precision::Exact));
    let weights = plan_weights(graph, &target).unwrap();
    compile(graph, BUCKET, &target, &weights, &options).unwrap()
}

/// The graph with plain ops where it has named ones, and how many it had.
fn plain(graph: &Graph) -> (Graph, usize) {
    let mut b = GraphBuilder::new(graph.name.clone());
    let mut is: HashMap<ValueId, ValueId> = HashMap::new();
    for &i in &graph.inputs {
        let v = graph.value(i);
        is.insert(i, b.declare(&v.name, v.ty.clone(), v.source).unwrap());
    }
    let mut expanded = 0;
    for node in &graph.nodes {
        let ins: Vec<ValueId> = node.ins.iter().map(|i| is[i]).collect();
        let types: Vec<Type> = node.ins.iter().map(|&i| graph.ty(i).clone()).collect();
        let NodeKind::Op(op) = &node.kind else { panic!("a region") };
        let names: Vec<String> = node.outs.iter().map(|&o| graph.value(o).name.clone()).collect();
        let form = if KNOWN.contains(&op.name()) { op.lower(&types).ok() } else { None };
        let made = match form {
            Some(form) => {
                expanded += 1;
                vec![inlined(&form, &ins, &names[0], &mut b)]
            }
            None => b.node(node.kind.clone(), &ins, &names).unwrap(),
        };
        is.extend(node.outs.iter().copied().zip(made));
    }
    graph.outputs.iter().for_each(|o| b.output(is[o]));
    (b.finish(), expanded)
}

fn inlined(form: &Graph, ins: &[ValueId], name: &str, b: &mut GraphBuilder) -> ValueId {
    let mut is: HashMap<ValueId, ValueId> = form.inputs.iter().copied().zip(ins.iter().copied()).collect();
    for node in &form.nodes {
        let ins: Vec<ValueId> = node.ins.iter().map(|i| is[i]).collect();
        let made = node.outs[0];
        let own = if form.outputs == [made] { name.to_owned() } else { format!("{name}.{}", form.value(made).name) };
        is.insert(made, b.node(node.kind.clone(), &ins, &[own]).unwrap()[0]);
    }
    is[&form.outputs[0]]
}

/// The plan of a graph, which is the plan of the same graph in plain ops.
fn both(body: &str) -> VerifiedPlan {
    let graph = text::parse(body).unwrap();
    let plan = planned(&graph);
    let (plain, expanded) = plain(&graph);
    assert!(expanded > 0 && plain.nodes.len() > graph.nodes.len());
    assert_eq!(yirage_plan::text::print(&planned(&plain)), yirage_plan::text::print(&plan));
    plan
}

/// Each step in words: the kind of region, and its ops.
fn steps(plan: &VerifiedPlan) -> Vec<(&str, Vec<&str>)> {
    let step = |node: &'_ yirage_ir::Node| match &node.kind {
        NodeKind::Op(op) => ("op", vec![op_name(op)]),
        NodeKind::Region(region) => (region.kind.name(), region.ops().map(op_name).collect()),
    };
    plan.graph.nodes.iter().map(step).collect()
}

fn op_name(op: &Op) -> &'static str {
    Op::NAMES.iter().copied().find(|name| *name == op.name()).unwrap()
}

const ROWS: &str = "rows";
const PRODUCTS: &str = "products";

#[test]
fn a_model_layer_in_plain_ops_gets_its_kernels() {
    let file = include_str!("filetests/layer_fuse.txt").split("--- ").next().unwrap();
    let plan = both(file);
    let found = steps(&plan);
    assert_eq!(found[0], (ROWS, vec!["embed", "rms_norm"]));
    assert_eq!(found[1], (PRODUCTS, vec!["linear"; 3]));
    assert_eq!(found[2], (ROWS, vec!["rope", "rope", "kv_append"]), "rotation and cache append");
    assert_eq!(found[3].1, ["attention"]);
    assert_eq!(found[4], (PRODUCTS, vec!["linear", "map"]), "a product and the residual behind it");
}

#[test]
fn a_gated_mlp_is_two_products_one_pass_and_a_product() {
    let plan = both(
        r#"graph mlp {
          slot %x: f32[Tokens, 64] weight %norm: f32[64] weight %wg: q8_0[96, 64] weight %wu: q8_0[96, 64]
          weight %wd: q8_0[64, 96]
          %n = rms_norm{eps=1e-5, width=64, unit_offset=false}(%x, %norm): f32[Tokens, 64]
          %g = linear{groups=1}(%n, %wg): f32[Tokens, 96] %u = linear{groups=1}(%n, %wu): f32[Tokens, 96]
          %s = map{expr="silu(x0)"}(%g): f32[Tokens, 96] %h = map{expr="mul(x0, x1)"}(%s, %u): f32[Tokens, 96]
          %d = linear{groups=1}(%h, %wd): f32[Tokens, 64]
          %y = map{expr="add(x0, x1)"}(%x, %d): f32[Tokens, 64]
          output %y }"#,
    );
    let want = [
        ("op", vec!["rms_norm"]),
        (PRODUCTS, vec!["linear", "linear"]),
        ("op", vec!["map"]),
        (PRODUCTS, vec!["linear", "map"]),
    ];
    assert_eq!(steps(&plan), want);
}

#[test]
fn a_residual_and_the_norm_behind_it_are_one_pass() {
    let plan = both(
        r#"graph residual {
          slot %x: f32[Tokens, 64] slot %d: f32[Tokens, 64] weight %norm: f32[64] weight %w: q8_0[96, 64]
          %r = map{expr="add(x0, x1)"}(%x, %d): f32[Tokens, 64]
          %n = rms_norm{eps=1e-5, width=64, unit_offset=false}(%r, %norm): f32[Tokens, 64]
          %y = linear{groups=1}(%n, %w): f32[Tokens, 96]
          output %y, %r }"#,
    );
    assert_eq!(steps(&plan), [(ROWS, vec!["map", "rms_norm"]), ("op", vec!["linear"])]);
}

#[test]
fn routing_is_one_pass_behind_its_scores() {
    let graph = text::parse(
        r#"graph routing {
          slot %x: f32[Tokens, 64] weight %router: f32[8, 64] slot %bias: f32[Tokens, 8]
          %scores = linear{groups=1}(%x, %router): f32[Tokens, 8]
          %biased = map{expr="add(x0, x1)"}(%scores, %bias): f32[Tokens, 8]
          %w, %e = route{top_k=2, scoring=softmax, normalize=true, scale=1.0, groups=1, top_groups=1}(%biased): f32[Tokens, 2], i32[Tokens, 2]
          %h = map{expr="mul(x0, 0.5)"}(%w): f32[Tokens, 2]
          output %h, %e }"#,
    )
    .unwrap();
    let plan = planned(&graph);
    assert_eq!(steps(&plan), [(PRODUCTS, vec!["linear", "map"]), (ROWS, vec!["route", "map"])]);
}

/// Scores, softmax and sums of plain attention: the softmax is one op, and the views are no steps.
#[test]
fn plain_attention_has_no_views_in_memory_and_one_softmax() {
    let plan = both(
        r#"graph attention {
          slot %q: f32[4, 16, 8] slot %k: f32[4, 16, 8] slot %v: f32[4, 16, 8]
          %t = view{form="permute(0, 2, 1)"}(%k): f32[4, 8, 16]
          %s = contract(%q, %t): f32[4, 16, 16]
          %c = map{expr="mul(x0, 0.35)"}(%s): f32[4, 16, 16]
          %f = view{form="reshape(64, 16)"}(%c): f32[64, 16]
          %p = softmax(%f): f32[64, 16]
          %r = view{form="reshape(4, 16, 16)"}(%p): f32[4, 16, 16]
          %y = contract(%r, %v): f32[4, 16, 8]
          output %y }"#,
    );
    let found = steps(&plan);
    assert_eq!(found.iter().filter(|(_, ops)| ops.contains(&"softmax")).count(), 1, "{found:?}");
    assert!(!found.iter().any(|(kind, ops)| *kind == "op" && ops[0] == "view"), "{found:?}");
    assert!(found.len() <= 3, "{found:?}");
    let chain = RegionKind::Chain.name();
    assert!(
        found.iter().any(|(kind, ops)| *kind == chain && ops.contains(&"contract") && ops.contains(&"map")),
        "{found:?}"
    );
}
