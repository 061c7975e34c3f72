//! What is fused, from named ops and from plain ones: the same plan from both.

use crate::support::target;
use std::collections::HashMap;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_ir::{Dims, Graph, GraphBuilder, NodeKind, Op, RegionKind, Type, ValueId, text};
use yirage_plan::{Precision, VerifiedPlan};

const BUCKET: Dims = Dims { tokens: 33, seqs: 2, blocks: 4, rows: 2 };
/// Named ops that plain ones become.
const KNOWN: [&str; 6] = ["softmax", "rms_norm", "layer_norm", "linear", "embed", "rope"];

fn planned(graph: &Graph) -> VerifiedPlan {
    let (target, options) = (target(), CompileOptions::new(Precision::Exact));
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
const PRODUCTS: &str = "matmul_group";

#[test]
fn a_model_layer_in_plain_ops_gets_its_kernels() {
    let file = include_str!("../filetests/layer_fuse.txt").split("--- ").next().unwrap();
    let plan = both(file);
    let found = steps(&plan);
    assert_eq!(found[0], (ROWS, vec!["embed", "rms_norm"]));
    assert_eq!(found[1], (PRODUCTS, vec!["linear"; 3]));
    assert_eq!(found[2], (ROWS, vec!["rope", "rope", "kv_append"]), "rotation and cache append");
    assert_eq!(found[3].1, ["attention"]);
    assert_eq!(found[4], (PRODUCTS, vec!["linear", "map"]), "a product and the residual behind it");
}

#[test]
fn a_gated_mlp_is_two_products_made_together_and_a_product() {
    let plan = both(
        r#"graph mlp {
          input %x: f32[Tokens, 64] weight %norm: f32[64] weight %wg: q8_0[96, 64] weight %wu: q8_0[96, 64]
          weight %wd: q8_0[64, 96]
          %n = rms_norm{eps=1e-5, width=64, unit_offset=false}(%x, %norm): f32[Tokens, 64]
          %g = linear{groups=1}(%n, %wg): f32[Tokens, 96] %u = linear{groups=1}(%n, %wu): f32[Tokens, 96]
          %s = map{expr="silu(x0)"}(%g): f32[Tokens, 96] %h = map{expr="mul(x0, x1)"}(%s, %u): f32[Tokens, 96]
          %d = linear{groups=1}(%h, %wd): f32[Tokens, 64]
          %y = map{expr="add(x0, x1)"}(%x, %d): f32[Tokens, 64]
          output %y }"#,
    );
    let want =
        [("op", vec!["rms_norm"]), (PRODUCTS, vec!["linear", "linear", "map"]), (PRODUCTS, vec!["linear", "map"])];
    assert_eq!(steps(&plan), want);
}

#[test]
fn a_residual_and_the_norm_behind_it_are_one_pass() {
    let plan = both(
        r#"graph residual {
          input %x: f32[Tokens, 64] input %d: f32[Tokens, 64] weight %norm: f32[64] weight %w: q8_0[96, 64]
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
          input %x: f32[Tokens, 64] weight %router: f32[8, 64] input %bias: f32[Tokens, 8]
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
/// Heads of queries over keys that are turned around, softmax over a matrix of all rows.
const ATTENTION: &str = r#"graph attention {
  input %q: f32[4, 16, 8] input %k: f32[4, 16, 8] input %v: f32[4, 16, 8]
  %t = view{form="permute(0, 2, 1)"}(%k): f32[4, 8, 16]
  %s = contract(%q, %t): f32[4, 16, 16]
  %c = map{expr="mul(x0, 0.35)"}(%s): f32[4, 16, 16]
  %f = view{form="reshape(64, 16)"}(%c): f32[64, 16]
  %p = softmax(%f): f32[64, 16]
  %r = view{form="reshape(4, 16, 16)"}(%p): f32[4, 16, 16]
  %y = contract(%r, %v): f32[4, 16, 8]
  output %y }"#;

/// Grouped heads in rows of tokens, with a causal mask, an unshifted softmax of 16 bits, and the heads together again.
const GROUPED: &str = r#"graph grouped {
  input %q: bf16[2, 3, 16, 8] input %k: bf16[32, 16] input %v: bf16[2, 1, 32, 8]
  %own = iota{shape="[16, 1]", axis=0}(): i32[16, 1] %at = iota{shape="[1, 32]", axis=1}(): i32[1, 32]
  %kh = view{form="reshape(32, 2, 1, 8)"}(%k): bf16[32, 2, 1, 8]
  %kt = view{form="permute(1, 2, 3, 0)"}(%kh): bf16[2, 1, 8, 32]
  %s = contract(%q, %kt): bf16[2, 3, 16, 32]
  %c = map{expr="cast.bf16(select(le(x2, add(x1, 16i)), mul(x0, 0.35), -inf))"}(%s, %own, %at): bf16[2, 3, 16, 32]
  %e = map{expr="cast.bf16(exp(x0))"}(%c): bf16[2, 3, 16, 32]
  %z = reduce{kind=sum, axes="[3]", keep=true}(%e): bf16[2, 3, 16, 1]
  %w = map{expr="cast.bf16(div(x0, x1))"}(%e, %z): bf16[2, 3, 16, 32]
  %vg = view{form="expand(2, 3, 32, 8)"}(%v): bf16[2, 3, 32, 8]
  %o = contract(%w, %vg): bf16[2, 3, 16, 8]
  %p = view{form="permute(2, 0, 1, 3)"}(%o): bf16[16, 2, 3, 8]
  %y = view{form="reshape(16, 48)"}(%p): bf16[16, 48]
  output %y }"#;

#[test]
fn plain_attention_is_one_region_without_its_scores() {
    both(ATTENTION);
    // Keys are turned around by a copy; of heads in groups the result is one too, as no grid lays two axes along one dimension.
    for (text, copies) in [(ATTENTION, 1), (GROUPED, 2)] {
        let graph = text::parse(text).unwrap();
        let plan = planned(&graph);
        let tiled: Vec<_> = plan.graph.nodes.iter().filter_map(region).filter_map(|r| r.tiled.as_ref()).collect();
        let [tiled] = tiled[..] else { panic!("{}", text::print(&plan.graph)) };
        assert!(tiled.keeps_order(), "no bit changes");
        let count = |node: &yirage_ir::Node| match &node.kind {
            NodeKind::Region(chain) => chain.ops().filter(|op| matches!(op, Op::Contract(_))).count(),
            NodeKind::Op(op) => usize::from(matches!(op, Op::Contract(_))),
        };
        assert_eq!(tiled.block.nodes.iter().map(count).sum::<usize>(), 2, "both products are inside");
        let largest = plan.graph.nodes.iter().flat_map(|n| &n.outs).map(|&o| plan.graph.ty(o).elems(&BUCKET)).max();
        let made = plan.graph.outputs.iter().map(|&o| plan.graph.ty(o).elems(&BUCKET)).max();
        assert_eq!(largest, made, "nothing larger than the result is in memory:\n{}", text::print(&plan.graph));
        let views = steps(&plan).iter().filter(|(_, ops)| ops.iter().all(|op| *op == "view")).count();
        assert_eq!(views, copies, "all other views are strides");
    }
}

fn region(node: &yirage_ir::Node) -> Option<&yirage_ir::Region> {
    if let NodeKind::Region(region) = &node.kind { Some(region) } else { None }
}

/// Where a target has no attention without scores, its softmax is one kernel and views are none.
#[test]
fn plain_attention_has_no_views_in_memory_and_one_softmax() {
    let mut target = target();
    target.capabilities.flash_attention = false;
    let graph = text::parse(ATTENTION).unwrap();
    let weights = plan_weights(&graph, &target).unwrap();
    let plan = compile(&graph, BUCKET, &target, &weights, &CompileOptions::new(Precision::Exact)).unwrap();
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
