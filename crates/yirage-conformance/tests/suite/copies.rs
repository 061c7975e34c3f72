//! Operands that a kernel takes only computed are copied, in a step that the plan shows.

use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cpu::Cpu;
use yirage_hal::{Backend, OpenOptions};
use yirage_ir::{Dims, text};

#[test]
fn a_copy_stands_in_the_plan() {
    let device = Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).unwrap().0;
    let target = device.target();
    let compiled = |body: &str| {
        let graph = text::parse(&format!("graph g {{ {body} }}")).unwrap();
        let weights = plan_weights(&graph, &target).unwrap();
        let bucket = Dims { tokens: 4, seqs: 1, blocks: 1, rows: 1 };
        yirage_plan::text::print(&compile(&graph, bucket, &target, &weights, &CompileOptions::default()).unwrap())
    };
    // A weight of 16 bits is held as f32, which is not how its elements are joined with others.
    let plan = compiled(
        "weight %w: f16[4, 2] input %w.copy: f32[4, 2] %h = map{expr=\"cast.f16(x0)\"}(%w.copy): f16[4, 2]
         %j = concat{axis=0}(%h, %w): f16[8, 2] %y = map{expr=\"cast.f32(x0)\"}(%j): f32[8, 2] output %y",
    );
    assert!(plan.contains("%w.copy_ = view{form=\"reshape(4, 2)\"}(%w): f16[4, 2]"), "{plan}");
    let plan = compiled("weight %w: f32[4, 2] %j = concat{axis=0}(%w, %w): f32[8, 2] output %j");
    assert!(!plan.contains(".copy"), "{plan}");
}
