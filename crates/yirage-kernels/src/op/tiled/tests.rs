//! Tiled regions by the interpreter: against their reference, and the same bytes whatever the threads of a block may share.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

use crate::node_kernel::{BufferSource, NodeKernel};
use crate::op::{PlanSite, lower};
use yirage_hal::driver::GridExtent;
use yirage_ir::{Dims, Graph, Tensor, text};
use yirage_kir::MAX_SHARED_BYTES;
use yirage_kir::interpret::{InterpretedKernel, InterpreterSettings};
use yirage_plan::DeviceLimits;

const BUCKET: Dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };

/// A norm and a product in one loop, whose sums and partial results go on from tile to tile.
const NORM_LINEAR: &str = "graph g { input %x: f32[6, 256] input %w: f32[256, 20]
    %y = region tiled{grid=\"[2, 1, 1]\", loops=4, ins=\"[- - - loop 1, 1 - - loop 0]\", outs=\"[1 - -]\",
      accumulate=\"[continue, continue]\", running=\"[]\", reads=\"[]\"}(%x, %w): f32[6, 20]
      graph body { input %x: f32[6, 64] input %w: f32[64, 10] %p = contract(%x, %w): f32[6, 10]
        %q = reduce{kind=mean_square, axes=\"[1]\", keep=true}(%x): f32[6, 1] output %p, %q }
      graph block { input %p: f32[6, 10] input %q: f32[6, 1]
        %y = map{expr=\"div(x0, sqrt(add(x1, 1e-5)))\"}(%p, %q): f32[6, 10] output %y }
    output %y }";

/// Softmax and a product, with the largest score so far: what a block holds is read by the next iteration.
const ONLINE: &str = "graph g { input %s: f32[6, 48] input %v: f32[48, 5]
    %y = region tiled{grid=\"[3, 1, 1]\", loops=3, ins=\"[0 - - loop 1, - - - loop 0]\", outs=\"[0 - -]\",
      accumulate=\"[max, rescaled 3, rescaled 3]\", running=\"[0]\", reads=\"[]\"}(%s, %v): f32[6, 5]
      graph body { input %s: f32[2, 16] input %v: f32[16, 5] input %before: f32[2, 1]
        %m = reduce{kind=max, axes=\"[1]\", keep=true}(%s): f32[2, 1]
        %now = map{expr=\"max(x0, x1)\"}(%m, %before): f32[2, 1]
        %e = map{expr=\"exp(sub(x0, x1))\"}(%s, %now): f32[2, 16]
        %l = reduce{kind=sum, axes=\"[1]\", keep=true}(%e): f32[2, 1]
        %o = contract(%e, %v): f32[2, 5]
        %f = map{expr=\"exp(sub(x0, x1))\"}(%before, %now): f32[2, 1] output %m, %l, %o, %f }
      graph block { input %m: f32[2, 1] input %l: f32[2, 1] input %o: f32[2, 5]
        %y = map{expr=\"div(x0, x1)\"}(%o, %l): f32[2, 5] output %y }
    output %y }";

/// Sums of whole numbers and of 16-bit floats, one of which the body gives as it stood before.
const SUMS: &str = "graph g { input %a: f32[8, 6] input %b: i32[8, 6]
    %y, %z = region tiled{grid=\"[2, 1, 1]\", loops=4, ins=\"[1 - - loop 0, 1 - - loop 0]\", outs=\"[1 - -, 1 - -]\",
      accumulate=\"[sum, sum, sum]\", running=\"[0]\", reads=\"[]\"}(%a, %b): bf16[2, 6], i32[2, 6]
      graph body { input %a: f32[2, 3] input %b: i32[2, 3] input %before: bf16[2, 3]
        %h = map{expr=\"cast.bf16(x0)\"}(%a): bf16[2, 3] output %h, %before, %b }
      graph block { input %h: bf16[2, 3] input %before: bf16[2, 3] input %b: i32[2, 3]
        %y = map{expr=\"cast.bf16(add(x0, x1))\"}(%h, %before): bf16[2, 3]
        %z = map{expr=\"add(x0, x0)\"}(%b): i32[2, 3] output %y, %z }
    output %y output %z }";

fn parsed(graph: &str) -> Graph {
    text::parse(graph).unwrap_or_else(|why| panic!("{why}\n{graph}"))
}

/// Numbers between -1 and 1, and small whole ones.
fn input(graph: &Graph, at: usize) -> Tensor {
    let ty = graph.ty(graph.inputs[at]);
    let shape: Vec<usize> = ty.shape.iter().map(|dim| dim.get(&BUCKET)).collect();
    let count = shape.iter().product::<usize>();
    let whole = move |i: usize| (i * 7919 + at * 31) % 257;
    match ty.dtype {
        yirage_ir::DType::I32 => Tensor::i32(shape, (0..count).map(|i| whole(i) as i32 - 128).collect()),
        _ => Tensor::f32(shape, (0..count).map(|i| (whole(i) as f32 - 128.0) / 128.0).collect()),
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |part: &[u8]| part.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    bytes.chunks(4).map(word).collect()
}

/// The kernels of the graph's one node.
fn kernels(graph: &Graph, shared_bytes: u64) -> Vec<NodeKernel> {
    let limits = DeviceLimits { block_bytes: Some(shared_bytes), ..DeviceLimits::aligned(256) };
    lower(PlanSite { graph, bucket: BUCKET, limits: &limits, products: None, attention: None }, &graph.nodes[0])
        .unwrap()
}

/// The words of the outputs that the kernels make.
fn run(graph: &Graph, kernels: &[NodeKernel]) -> Vec<Vec<u32>> {
    let bytes = kernels.iter().map(|made| made.workspace).max().unwrap_or(0);
    let mut values: Vec<Vec<u32>> = (0..graph.inputs.len()).map(|at| words(&input(graph, at).memory())).collect();
    values.extend(graph.outputs.iter().map(|&out| vec![!0; graph.ty(out).bytes(&BUCKET).div_ceil(4)]));
    let mut workspace = vec![!0u32; bytes as usize / 4];
    for made in kernels {
        yirage_kir::verify(&made.kernel).unwrap();
        let mut lent: Vec<Option<&mut [u32]>> = values.iter_mut().map(|words| Some(words.as_mut_slice())).collect();
        let mut workspace = Some(workspace.as_mut_slice());
        let bound = made.sources.iter().map(|source| match source {
            BufferSource::Sizes => panic!("a tiled region has no sizes of a step"),
            BufferSource::Value(id) => lent[id.index()].take().unwrap(),
            BufferSource::Part { .. } => panic!("a tiled region reads no weight in parts"),
            BufferSource::Workspace => workspace.take().unwrap(),
        });
        let mut bound: Vec<&mut [u32]> = bound.collect();
        let grid = made.grid.map(|extent| match extent {
            GridExtent::Fixed(groups) => groups,
            GridExtent::Of { .. } => panic!("a tiled region has a fixed grid"),
        });
        let kernel = InterpretedKernel::new(made.kernel.clone()).unwrap();
        kernel.run(grid, &mut bound, &InterpreterSettings::default()).unwrap_or_else(|why| panic!("{why}"));
    }
    values.split_off(graph.inputs.len())
}

#[test]
fn regions_are_what_the_reference_says_wherever_tiles_lie() {
    for text in [NORM_LINEAR, ONLINE, SUMS] {
        let graph = parsed(text);
        let given = graph.inputs.iter().enumerate().map(|(at, &id)| (graph.value(id).name.clone(), input(&graph, at)));
        let wanted = yirage_ir::interp::evaluate(&graph, &mut given.collect()).unwrap();
        let made = run(&graph, &kernels(&graph, MAX_SHARED_BYTES));
        for ((want, got), &out) in wanted.iter().zip(&made).zip(&graph.outputs) {
            let bytes: Vec<u8> = got.iter().flat_map(|word| word.to_le_bytes()).collect();
            let ty = graph.ty(out);
            let got = Tensor::from_memory(ty, &BUCKET, &bytes[..ty.bytes(&BUCKET)]);
            for (got, want) in got.scalars().iter().zip(want.scalars()) {
                let (got, want) = (got.as_f64(), want.as_f64());
                let bound = if ty.dtype.name() == "bf16" { 0.01 } else { 1e-5 };
                assert!((got - want).abs() <= bound * (1.0 + want.abs()), "{got}, {want} wanted:\n{text}");
            }
        }
        for shared_bytes in [0, 64, 512, 2048, 8192] {
            assert_eq!(run(&graph, &kernels(&graph, shared_bytes)), made, "{shared_bytes} bytes:\n{text}");
        }
    }
}

#[test]
fn what_a_block_shares_stays_within_the_limit() {
    for (text, limit) in [NORM_LINEAR, ONLINE, SUMS].into_iter().flat_map(|text| [0, 100, 4096].map(|n| (text, n))) {
        let graph = parsed(text);
        for made in kernels(&graph, limit) {
            assert!(made.kernel.shared_bytes() <= limit, "{} of {limit}", made.kernel.shared_bytes());
            assert_eq!(made.uses_workspace(), made.workspace > 0, "{}", made.kernel.name);
        }
    }
}

#[test]
fn tiles_that_products_read_again_and_again_are_shared() {
    let graph = parsed(NORM_LINEAR);
    let [little, much] = [2048, MAX_SHARED_BYTES].map(|limit| kernels(&graph, limit)[0].kernel.shared_bytes());
    // Two tiles of 6 by 64 and 64 by 10, beside sums of 6 by 10, partial results and sums of 6.
    assert!(little <= 2048 && much == 4 * (6 * 64 + 64 * 10 + 6 * 10 + 6 * 64 + 6), "{little} and {much}");
}

/// More blocks than devices have groups along an axis: a group has several, one after the other.
#[test]
fn a_group_takes_several_blocks_of_a_large_grid() {
    let graph = parsed(
        "graph g { input %x: f32[70000, 2] %y = region tiled{grid=\"[70000, 1, 1]\", loops=1, ins=\"[0 - -]\",
           outs=\"[0 - -]\", accumulate=\"[]\", running=\"[]\", reads=\"[0]\"}(%x): f32[70000, 1]
           graph body { input %x: f32[1, 2] } graph block { input %x: f32[1, 2]
             %q = reduce{kind=sum, axes=\"[1]\", keep=true}(%x): f32[1, 1]
             %y = map{expr=\"add(x0, 1.0)\"}(%q): f32[1, 1] output %y } output %y }",
    );
    let made = run(&graph, &kernels(&graph, MAX_SHARED_BYTES));
    let x = input(&graph, 0);
    let x = x.floats();
    for (at, word) in made[0].iter().enumerate() {
        assert_eq!(f32::from_bits(*word), x[2 * at] + x[2 * at + 1] + 1.0, "element {at}");
    }
}
