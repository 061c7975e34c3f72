//! Activations are in layouts that the target names, and in no other.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod support;

use support::target;
use yirage_compile::{CompileError, Options, compile, plan_weights};
use yirage_ir::{ActivationLayout, Dims, Graph, text};
use yirage_plan::{LayoutFacts, Plan, Precision, Target, VerifiedPlan};

const BUCKET: Dims = Dims { tokens: 8, seqs: 1, blocks: 1, rows: 1 };

fn without_layouts() -> Target {
    Target { activation_layouts: Vec::new(), ..target() }
}

fn compiled(graph: &Graph, target: &Target, precision: Precision) -> Result<Plan, CompileError> {
    let weights = plan_weights(graph, target)?;
    compile(graph, BUCKET, target, &weights, &Options::new(precision)).map(VerifiedPlan::into_plan)
}

/// A product with a quantised weight.
fn product() -> Graph {
    text::parse(
        "graph g { slot %x: f32[Tokens, 64] weight %w: q4_0[16, 64]
         %n = hadamard{part=64}(%x): f32[Tokens, 64]
         %y = linear{groups=1}(%n, %w): f32[Tokens, 16] output %y }",
    )
    .unwrap()
}

/// The same with activations that are quantised already.
fn quantised() -> Graph {
    text::parse(
        "graph g { slot %x: f32[Tokens, 64] weight %w: q4_0[16, 64]
         %q = quantize{layout=q8a, parts=1}(%x): q8a[Tokens, 64]
         %y = linear{groups=1}(%q, %w): f32[Tokens, 16] output %y }",
    )
    .unwrap()
}

#[test]
fn fast_products_read_the_layout_that_the_target_wants() {
    let fast = compiled(&product(), &target(), Precision::Fast).unwrap();
    assert!(text::print(&fast.graph).contains("%n.q8 = quantize{layout=q8a, parts=1}"), "{}", text::print(&fast.graph));
    let exact = compiled(&product(), &target(), Precision::Exact).unwrap();
    assert!(!text::print(&exact.graph).contains("quantize"));
}

#[test]
fn activations_stay_floats_where_the_target_has_no_layout() {
    let fast = compiled(&product(), &without_layouts(), Precision::Fast).unwrap();
    let exact = compiled(&product(), &without_layouts(), Precision::Exact).unwrap();
    assert_eq!(text::print(&fast.graph), text::print(&exact.graph));
}

#[test]
fn a_layout_that_the_target_does_not_name_is_refused() {
    let wanted = "`q` is q8a[Tokens, 64]; of the layouts of activations the target has none";
    let refused = compiled(&quantised(), &without_layouts(), Precision::Fast).unwrap_err();
    assert!(matches!(&refused, CompileError::Unsupported { why, .. } if why == wanted), "{refused}");
    let plan = compiled(&quantised(), &target(), Precision::Fast).unwrap();
    let refused = VerifiedPlan::new(plan, &without_layouts()).unwrap_err().to_string();
    assert!(refused.contains(wanted), "{refused}");
}

#[test]
fn a_value_has_the_bytes_that_the_target_says_of_its_layout() {
    let bytes = |block_bytes, row_multiple| {
        let facts = LayoutFacts { layout: ActivationLayout::Q8A, block_bytes, row_multiple };
        let target = Target { activation_layouts: vec![facts], ..target() };
        let plan = compiled(&quantised(), &target, Precision::Fast).unwrap();
        plan.place(plan.graph.find("q").unwrap()).unwrap().bytes
    };
    assert_eq!([bytes(72, 32), bytes(72, 128), bytes(80, 32)], [8 * 2 * 72, 8 * 4 * 72, 8 * 2 * 80]);
}
