//! Tiled regions in plans: what a target has room for, what it runs, and what is counted.

use crate::support::target;
use yirage_compile::{CompileError, CompileOptions, compile, plan_weights};
use yirage_ir::{Dims, Graph, NodeKind, ValueSource, text};
use yirage_plan::work::{Costs, ResidentSizes, SequenceSpan};
use yirage_plan::{DeviceLimits, Plan, Precision, Refusal, Target, VerifiedPlan};

const BUCKET: Dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };

/// A product of `[8, 256]` and `[256, 96]`: three blocks of four iterations.
fn product() -> Graph {
    text::parse(
        "graph g { input %x: f32[8, 256] weight %w: f32[256, 96]
         %y = region tiled{grid=\"[3, 1, 1]\", loops=4, ins=\"[- - - loop 1, 1 - - loop 0]\", outs=\"[1 - -]\",
         accumulate=\"[continue]\", running=\"[]\", reads=\"[]\"}(%x, %w): f32[8, 96]
         graph body { input %x: f32[8, 64] input %w: f32[64, 32] %n = map{expr=\"tanh(x0)\"}(%x): f32[8, 64]
         %p = contract(%n, %w): f32[8, 32] output %p }
         graph block { input %p: f32[8, 32] %y = map{expr=\"relu(x0)\"}(%p): f32[8, 32] output %y } output %y }",
    )
    .unwrap()
}

fn compiled(target: &Target, options: &CompileOptions) -> Result<Plan, CompileError> {
    let graph = product();
    let weights = plan_weights(&graph, target)?;
    compile(&graph, BUCKET, target, &weights, options).map(VerifiedPlan::into_plan)
}

#[test]
fn a_block_has_room_or_is_refused_with_the_numbers() {
    let exact = CompileOptions::new(Precision::Exact);
    // What is made of x is part of the product then, so that it takes nothing.
    let needed = 4 * (8 * 64 + 64 * 32 + 8 * 32 + 8 * 32);
    let with = |bytes: u64| Target {
        limits: DeviceLimits { block_bytes: Some(bytes), right_side_piece: Some(4096), ..DeviceLimits::aligned(64) },
        ..target()
    };
    compiled(&with(needed), &exact).unwrap();
    let refused = compiled(&with(needed - 1), &exact).unwrap_err();
    let CompileError::NoKernel { why, .. } = &refused else { panic!("{refused}") };
    let Refusal::Block { grid: [3, 1, 1], wanted, limit, .. } = **why else { panic!("{refused}") };
    assert_eq!((wanted, limit), (needed, needed - 1));
    let told = format!("a block of [3, 1, 1] takes {needed} bytes, test/tiled@1 has {} for one", needed - 1);
    assert!(refused.to_string().contains(&told), "{refused}");
    // Op by op more lives at a time.
    assert!(compiled(&with(needed), &exact.unfused()).is_err());
}

#[test]
fn a_plan_for_a_larger_block_is_not_proved_for_a_smaller_one() {
    let plan = compiled(&target(), &CompileOptions::new(Precision::Exact)).unwrap();
    let small = Target {
        limits: DeviceLimits { block_bytes: Some(64), right_side_piece: Some(4096), ..DeviceLimits::aligned(64) },
        ..target()
    };
    let error = VerifiedPlan::new(plan, &small).unwrap_err().to_string();
    assert!(error.contains("has 64 for one"), "{error}");
}

#[test]
fn a_target_without_such_a_kernel_says_what_is_missing() {
    let mut without = target();
    without.kernels.retain(|facts| facts.kernel.name != "test/tiled@1");
    let refused = compiled(&without, &CompileOptions::new(Precision::Exact)).unwrap_err().to_string();
    assert!(refused.contains("no kernel runs it with map, contract, map"), "{refused}");
}

#[test]
fn the_ops_of_tiles_are_the_program_and_nothing_else_joins_them() {
    let plan = compiled(&target(), &CompileOptions::new(Precision::Exact)).unwrap();
    let [node] = &plan.graph.nodes[..] else { panic!("{}", text::print(&plan.graph)) };
    let NodeKind::Region(region) = &node.kind else { panic!("no region") };
    assert_eq!(region.graph.nodes.len(), 1, "the map joins the product:\n{}", text::print(&plan.graph));
    let printed = yirage_plan::text::print(&plan);
    assert_eq!(yirage_plan::text::parse(&printed).unwrap(), plan);
}

struct AsStored<'a>(&'a Graph);

impl ResidentSizes for AsStored<'_> {
    fn weight(&self, name: &str) -> u64 {
        let id = self.0.inputs_of(ValueSource::Weight).find(|&id| self.0.value(id).name == name).unwrap();
        self.0.ty(id).bytes(&Dims::default()) as u64
    }
    fn position(&self, _: &str) -> f64 {
        0.0
    }
}

#[test]
fn work_is_that_of_all_tiles_and_weights_are_read_once() {
    let graph = product();
    let work = Costs::new(&graph, &AsStored(&graph)).step(&[SequenceSpan { start: 0, tokens: 1, rows: 1 }]);
    assert_eq!(work.f32_ops, 2.0 * 8.0 * 256.0 * 96.0);
    assert_eq!(work.weight_bytes, 4.0 * 256.0 * 96.0);
}
