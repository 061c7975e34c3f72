//! Graphs of a thread block: each gives what plain operations give, and wrong use is told.

use std::collections::HashMap;
use yirage_graph::{BlockGraph, BlockValue, ForloopAccum, GraphError, KernelGraph};
use yirage_graph::{dot, from_json, svg, to_json};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Dims, Format, Graph, NodeKind, Tensor, ValueId, interp, text, verify};

const NONE: [i32; 3] = [-1; 3];

/// What a graph gives, in f64; inputs of one name have the same elements.
fn run(graph: &Graph) -> Vec<Vec<f64>> {
    verify(graph).unwrap();
    assert_eq!(text::print(&text::parse(&text::print(graph)).unwrap()), text::print(graph));
    let again = from_json(&to_json(graph)).unwrap();
    assert_eq!((text::print(&again), again.structural_hash()), (text::print(graph), graph.structural_hash()));
    let picture = dot(graph) + &svg(graph).unwrap();
    assert!(picture.contains("region tiled") || keeps_order(graph), "{picture}");
    let mut tensors = HashMap::new();
    for &id in &graph.inputs {
        let value = graph.value(id);
        let mut rng = Rng::new(value.name.bytes().map(u64::from).sum());
        let shape: Vec<usize> = value.ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
        let x: Vec<_> = (0..shape.iter().product()).map(|_| rng.signed_f32().into()).collect();
        tensors.insert(value.name.clone(), Tensor::from_scalars(value.ty.dtype, shape, &x));
    }
    let made = interp::evaluate(graph, &mut tensors).unwrap();
    made.iter().map(|t| t.scalars().into_iter().map(|x| x.as_f64()).collect()).collect()
}

fn far(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f64::max)
}

fn inputs(g: &mut KernelGraph, dtype: DType, list: &[(&str, &[u32])]) -> Vec<ValueId> {
    list.iter().map(|(name, dims)| g.named_input(name, dims, None, dtype).unwrap()).collect()
}

fn keeps_order(graph: &Graph) -> bool {
    let mut regions = graph.nodes.iter().filter_map(|n| match &n.kind {
        NodeKind::Region(region) => region.tiled.as_ref(),
        NodeKind::Op(_) => None,
    });
    regions.all(|tiled| tiled.keeps_order())
}

const MLP: &[(&str, &[u32])] = &[("x", &[8, 256]), ("gate", &[256, 96]), ("up", &[256, 96])];

#[test]
fn a_gated_mlp_is_its_plain_operations_bit_for_bit() {
    for dtype in [DType::F32, Format::F16.into(), Format::BF16.into()] {
        let mut g = KernelGraph::new("mlp");
        let [x, gate, up] = inputs(&mut g, dtype, MLP)[..] else { unreachable!() };
        let mut b = BlockGraph::new([3, 1, 1], [128, 1, 1], 4, 64).unwrap();
        let tx = b.new_input(&g, x, NONE, 1, false).unwrap();
        let tg = b.new_input(&g, gate, [1, -1, -1], 0, false).unwrap();
        let tu = b.new_input(&g, up, [1, -1, -1], 0, false).unwrap();
        let (pg, pu) = (b.matmul(tx, tg).unwrap(), b.matmul(tx, tu).unwrap());
        let (ag, au) = (b.forloop_accum(pg, None).unwrap(), b.forloop_accum(pu, None).unwrap());
        let silu = b.silu(ag).unwrap();
        let y = b.mul(silu, au).unwrap();
        b.new_output(y, [1, -1, -1], -1).unwrap();
        let made = g.customized(&[x, gate, up], &b).unwrap();
        g.mark_output(made[0], None).unwrap();
        let tiled = g.finish().unwrap();
        assert!(keeps_order(&tiled));

        let mut g = KernelGraph::new("mlp");
        let [x, gate, up] = inputs(&mut g, dtype, MLP)[..] else { unreachable!() };
        let (pg, pu) = (g.matmul(x, gate).unwrap(), g.matmul(x, up).unwrap());
        let silu = g.silu(pg).unwrap();
        let y = g.mul(silu, pu).unwrap();
        g.mark_output(y, None).unwrap();
        assert_eq!(run(&tiled), run(&g.finish().unwrap()), "{dtype}");
    }
}

#[test]
fn rms_norm_with_a_linear_is_its_plain_operations() {
    let list: &[(&str, &[u32])] = &[("x", &[16, 512]), ("w", &[512, 128])];
    let mut g = KernelGraph::new("norm");
    let [x, w] = inputs(&mut g, DType::F32, list)[..] else { unreachable!() };
    let mut b = BlockGraph::new([4, 1, 1], [128, 1, 1], 8, 64).unwrap();
    let tx = b.new_input(&g, x, NONE, 1, false).unwrap();
    let tw = b.new_input(&g, w, [1, -1, -1], 0, false).unwrap();
    let product = b.matmul(tx, tw).unwrap();
    let (sum, rms) = (b.forloop_accum(product, None).unwrap(), b.forloop_accum(tx, Some(ForloopAccum::Rms)).unwrap());
    let y = b.div(sum, rms).unwrap();
    b.new_output(y, [1, -1, -1], -1).unwrap();
    let made = g.customized(&[x, w], &b).unwrap();
    g.mark_output(made[0], None).unwrap();
    let tiled = g.finish().unwrap();
    assert!(keeps_order(&tiled));

    let mut g = KernelGraph::new("norm");
    let [x, w] = inputs(&mut g, DType::F32, list)[..] else { unreachable!() };
    let norm = g.rms_norm(x, &[512]).unwrap();
    let y = g.matmul(norm, w).unwrap();
    g.mark_output(y, None).unwrap();
    assert!(far(&run(&tiled)[0], &run(&g.finish().unwrap())[0]) < 1e-5);
}

#[test]
fn attention_with_online_softmax_is_its_plain_operations() {
    let list: &[(&str, &[u32])] = &[("q", &[2, 16, 32]), ("k", &[2, 32, 128]), ("v", &[2, 128, 32])];
    let mut g = KernelGraph::new("attention");
    let [q, k, v] = inputs(&mut g, DType::F32, list)[..] else { unreachable!() };
    let mut b = BlockGraph::new([2, 2, 1], [128, 1, 1], 4, 64).unwrap();
    let tq = b.new_input(&g, q, [0, 1, -1], -1, false).unwrap();
    let tk = b.new_input(&g, k, [0, -1, -1], 2, false).unwrap();
    let tv = b.new_input(&g, v, [0, -1, -1], 1, false).unwrap();
    let scores = b.matmul(tq, tk).unwrap();
    let (max, grown) = b.reduction_max(scores, 2).unwrap();
    let scale = b.exp(grown).unwrap();
    let less = b.sub(scores, max).unwrap();
    let e = b.exp(less).unwrap();
    let sum = b.forloop_accum_rescale(e, scale, Some(ForloopAccum::Sum)).unwrap();
    let ev = b.matmul(e, tv).unwrap();
    let values = b.forloop_accum_rescale(ev, scale, None).unwrap();
    let y = b.div(values, sum).unwrap();
    b.new_output(y, [0, 1, -1], -1).unwrap();
    let most = b.forloop_accum_max(max).unwrap();
    b.new_output(most, [0, 1, -1], -1).unwrap();
    let made = g.customized(&[q, k, v], &b).unwrap();
    made.iter().for_each(|&y| g.mark_output(y, None).unwrap());
    let tiled = g.finish().unwrap();
    assert!(!keeps_order(&tiled));

    let mut g = KernelGraph::new("attention");
    let [q, k, v] = inputs(&mut g, DType::F32, list)[..] else { unreachable!() };
    let scores = g.matmul(q, k).unwrap();
    let p = g.softmax(scores, 2).unwrap();
    let y = g.matmul(p, v).unwrap();
    let most = g.max(scores, 2).unwrap();
    [y, most].iter().for_each(|&y| g.mark_output(y, None).unwrap());
    let (made, wanted) = (run(&tiled), run(&g.finish().unwrap()));
    assert!(far(&made[0], &wanted[0]) < 1e-5 && far(&made[1], &wanted[1]) < 1e-6);
}

/// What an accumulator makes of `[3, 4 * width]` numbers in four tiles, by a formula of a row's numbers.
fn accumulated(
    width: u32,
    build: impl Fn(&mut BlockGraph, BlockValue) -> BlockValue,
    wanted: impl Fn(&[f64]) -> Vec<f64>,
) {
    let mut g = KernelGraph::new("g");
    let x = g.named_input("x", &[3, 4 * width], None, DType::F32).unwrap();
    let mut b = BlockGraph::new([3, 1, 1], [32, 1, 1], 4, 8).unwrap();
    let tx = b.new_input(&g, x, [0, -1, -1], 1, false).unwrap();
    let y = build(&mut b, tx);
    b.new_output(y, [0, -1, -1], -1).unwrap();
    let made = g.customized(&[x], &b).unwrap();
    g.mark_output(made[0], None).unwrap();
    let same = g.mul_scalar(x, 1.0).unwrap();
    g.mark_output(same, None).unwrap();
    let made = run(&g.finish().unwrap());
    let wanted: Vec<f64> = made[1].chunks(4 * width as usize).flat_map(wanted).collect();
    assert!(far(&made[0], &wanted) < 1e-5, "{:?} {wanted:?}", made[0]);
}

#[test]
fn every_accumulator_is_its_formula() {
    // Tiles of 64 elements are continued, those of 24 have an order of their own.
    for width in [64, 24] {
        let tiles = |x: &[f64]| x.chunks(width as usize).map(<[f64]>::to_vec).collect::<Vec<_>>();
        let acc = |acc| move |b: &mut BlockGraph, x| b.forloop_accum(x, acc).unwrap();
        let along = |x: &[f64]| (0..width as usize).map(|j| tiles(x).iter().map(|t| t[j]).sum()).collect();
        accumulated(width, acc(None), along);
        accumulated(width, acc(Some(ForloopAccum::Sum)), |x| vec![x.iter().sum()]);
        accumulated(width, acc(Some(ForloopAccum::Mean)), |x| vec![x.iter().sum::<f64>() / x.len() as f64]);
        accumulated(width, acc(Some(ForloopAccum::Rms)), |x| {
            vec![(x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64).sqrt()]
        });
        accumulated(width, acc(Some(ForloopAccum::SumToDimx)), |x| {
            (0..8).map(|j| x.iter().skip(j).step_by(8).sum()).collect()
        });
        let largest =
            |x: &[f64]| (0..width as usize).map(|j| tiles(x).iter().map(|t| t[j]).fold(-9.0, f64::max)).collect();
        accumulated(width, |b, x| b.forloop_accum_max(x).unwrap(), largest);
        let rescaled = |b: &mut BlockGraph, x| {
            let half = b.mul_scalar(x, 0.5).unwrap();
            b.forloop_accum_rescale(x, half, None).unwrap()
        };
        let wanted = |x: &[f64]| {
            let step =
                |sum: Vec<f64>, t: Vec<f64>| sum.iter().zip(&t).map(|(s, t)| s * t * 0.5 + t).collect::<Vec<_>>();
            tiles(x).into_iter().reduce(step).unwrap()
        };
        accumulated(width, rescaled, wanted);
        let summed = |b: &mut BlockGraph, x| {
            let first = b.reduction(x, 1).unwrap();
            b.forloop_accum_rescale(x, first, Some(ForloopAccum::Sum)).unwrap()
        };
        let wanted = |x: &[f64]| {
            let sums = tiles(x).into_iter().map(|t| t.iter().sum::<f64>());
            vec![sums.reduce(|sum, t| sum * t + t).unwrap()]
        };
        accumulated(width, summed, wanted);
    }
}

#[test]
fn operations_work_on_both_sides_of_the_loop() {
    let mut g = KernelGraph::new("g");
    let x = g.named_input("x", &[4, 8], None, DType::F32).unwrap();
    let c = g.named_input("c", &[4, 1], None, DType::F32).unwrap();
    let mut b = BlockGraph::new([2, 1, 1], [32, 1, 1], 2, 4).unwrap();
    let tx = b.new_input(&g, x, [0, -1, -1], 1, true).unwrap();
    let tc = b.new_input(&g, c, [0, -1, -1], -1, false).unwrap();
    let near = b.clamp(tx, -0.5, 0.5).unwrap();
    let joined = b.concat(near, tx, 1).unwrap();
    let root = b.square(joined).unwrap();
    let sum = b.forloop_accum(root, Some(ForloopAccum::Sum)).unwrap();
    // A tile that no iteration changes is there after the loop as well.
    let y = b.add(sum, tc).unwrap();
    let y = b.sqrt(y).unwrap();
    let y = b.relu(y).unwrap();
    let y = b.gelu(y).unwrap();
    b.new_output(y, [0, -1, -1], -1).unwrap();
    let made = g.customized(&[x, c], &b).unwrap();
    g.mark_output(made[0], None).unwrap();
    assert!(run(&g.finish().unwrap())[0].len() == 4);
    assert_eq!((b.grid_dim(), b.block_dim(), b.forloop_range(), b.reduction_dimx()), ([2, 1, 1], [32, 1, 1], 2, 4));
    let notes = b.notes().join("\n");
    assert!(notes.contains("block_dim [32, 1, 1]") && notes.contains("store_in_dmem of 1 inputs"), "{notes}");
}

#[test]
fn a_layer_norm_of_tiles_is_that_of_rows() {
    let rows = [("x", &[4, 8][..])];
    let mut g = KernelGraph::new("g");
    let x = inputs(&mut g, DType::F32, &rows)[0];
    let mut b = BlockGraph::new([2, 1, 1], [32, 1, 1], 1, 4).unwrap();
    let tx = b.new_input(&g, x, [0, -1, -1], -1, false).unwrap();
    let y = b.layer_norm(tx, 1e-3).unwrap();
    refused(b.layer_norm(tx, f32::NAN), "eps");
    b.new_output(y, [0, -1, -1], -1).unwrap();
    let made = g.customized(&[x], &b).unwrap();
    g.mark_output(made[0], None).unwrap();
    let mut plain = KernelGraph::new("g");
    let x = inputs(&mut plain, DType::F32, &rows)[0];
    let y = plain.layer_norm(x, &[8], None, None, 1e-3).unwrap();
    plain.mark_output(y, None).unwrap();
    let [tiled, plain] = [g, plain].map(|g| run(&g.finish().unwrap()));
    assert!(far(&tiled[0], &plain[0]) < 1e-6);
}

fn refused<T: std::fmt::Debug>(result: Result<T, GraphError>, wanted: &str) {
    let message = result.unwrap_err().to_string();
    assert!(message.contains(wanted), "`{wanted}` is not in: {message}");
}

#[test]
fn wrong_use_is_told() {
    refused(BlockGraph::new([1, 0, 1], [1; 3], 1, 1), "grid_dim is [1, 0, 1]");
    refused(BlockGraph::new([1; 3], [1; 3], 0, 1), "forloop_range is [0]");
    let mut g = KernelGraph::new("g");
    let x = g.named_input("x", &[4, 16], None, DType::F32).unwrap();
    let mut b = BlockGraph::new([2, 1, 1], [1; 3], 4, 3).unwrap();
    refused(b.new_input(&g, x, [2, -1, -1], -1, false), "no dimension 2");
    refused(b.new_input(&g, x, [-2, -1, -1], -1, false), "input_map is -2");
    refused(b.new_input(&g, x, [0, -1, -1], 0, false), "the loop cuts 2 elements of dimension 0 into 4 parts");
    refused(b.new_input(&g, x, [0, 0, -1], -1, false), "two axes of the grid cut dimension 0");
    let tx = b.new_input(&g, x, [0, -1, -1], 1, false).unwrap();
    refused(b.new_output(tx, [0, -1, -1], -1), "is accumulated before");
    refused(b.new_output(tx, [0, -1, -1], 1), "forloop_dim 1");
    refused(b.forloop_accum(tx, Some(ForloopAccum::SumToDimx)), "multiple of reduction_dimx, 3");
    refused(b.forloop_accum_rescale(tx, tx, Some(ForloopAccum::Rms)), "acc is Rms");
    let sum = b.forloop_accum(tx, None).unwrap();
    refused(b.forloop_accum(sum, None), "what follows an accumulator is made once");
    refused(b.add(sum, tx), "is accumulated before it meets");
    refused(b.matmul(tx, tx), "equal leading dimensions");
    refused(g.customized(&[x], &b), "no output");
    b.new_output(sum, [-1, -1, -1], -1).unwrap();
    refused(g.customized(&[x], &b), "write the same elements");
    refused(g.customized(&[], &b), "f32[4, 16] wanted");
}
