//! Tiled regions: what they mean, what they must be, and their text form.

use std::collections::HashMap;
use yirage_ir::region::{Tiled, block_bytes, in_place, unrolled};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Dims, Graph, NodeKind, Tensor, interp, text, verify};

fn parse(body: &str) -> Graph {
    let graph = text::parse(&format!("graph g {{\n{body}\n}}\n")).unwrap_or_else(|e| panic!("{e}:\n{body}"));
    verify(&graph).unwrap();
    graph
}

/// Outputs of a graph whose slots hold random numbers, the same for slots of one name.
fn run(graph: &Graph) -> Vec<Tensor> {
    let mut tensors = HashMap::new();
    for &id in &graph.inputs {
        let value = graph.value(id);
        let mut rng = Rng::new(value.name.bytes().map(u64::from).sum());
        let shape: Vec<usize> = value.ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
        let n = shape.iter().product();
        let t = match value.ty.dtype {
            DType::I32 => Tensor::i32(shape, (0..n).map(|_| rng.index(2000) as i32 - 1000).collect()),
            dtype => {
                let x: Vec<_> = (0..n).map(|_| rng.signed_f32().into()).collect();
                Tensor::from_scalars(dtype, shape, &x)
            }
        };
        tensors.insert(value.name.clone(), t);
    }
    interp::evaluate(graph, &mut tensors).unwrap()
}

fn far(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!((a.dtype, &a.shape), (b.dtype, &b.shape));
    let pairs = a.scalars().into_iter().zip(b.scalars());
    pairs.map(|(x, y)| (x.as_f64() - y.as_f64()).abs() / (1.0 + y.as_f64().abs())).fold(0.0, f64::max)
}

/// A product whose columns are blocks and whose sums go on from tile to tile.
const MATMUL: &str = "input %x: f32[4, 12]\n input %w: f32[12, 6]
 %y = region tiled{grid=\"[3, 1, 1]\", loops=4, ins=\"[- - - loop 1, 1 - - loop 0]\", outs=\"[1 - -]\",
   accumulate=\"[continue]\", running=\"[]\", reads=\"[]\"}(%x, %w): f32[4, 6]
 graph body {
  input %a: f32[4, 3]
  input %b: f32[3, 2]
  %p = contract(%a, %b): f32[4, 2]
  output %p
 }
 graph block {
  input %s: f32[4, 2]
  %r = map{expr=\"relu(x0)\"}(%s): f32[4, 2]
  output %r
 }
 output %y";

/// Attention of one query over keys in tiles: the largest score so far, the sum of exponentials and of values.
const ONLINE: &str = "input %q: f32[8, 16]\n input %k: f32[16, 32]\n input %v: f32[32, 8]
 %o = region tiled{grid=\"[2, 1, 1]\", loops=4, ins=\"[0 - -, - - - loop 1, - - - loop 0]\", outs=\"[0 - -]\",
   accumulate=\"[max, rescaled 3, rescaled 3]\", running=\"[0]\", reads=\"[]\"}(%q, %k, %v): f32[8, 8]
 graph body {
  input %q: f32[4, 16]
  input %k: f32[16, 8]
  input %v: f32[8, 8]
  input %m: f32[4, 1]
  %s = contract(%q, %k): f32[4, 8]
  %t = reduce{kind=max, axes=\"[1]\", keep=true}(%s): f32[4, 1]
  %n = map{expr=\"max(x0, x1)\"}(%m, %t): f32[4, 1]
  %f = map{expr=\"exp(sub(x0, x1))\"}(%m, %n): f32[4, 1]
  %e = map{expr=\"exp(sub(x0, x1))\"}(%s, %n): f32[4, 8]
  %l = reduce{kind=sum, axes=\"[1]\", keep=true}(%e): f32[4, 1]
  %p = contract(%e, %v): f32[4, 8]
  output %t, %l, %p, %f
 }
 graph block {
  input %m: f32[4, 1]
  input %l: f32[4, 1]
  input %p: f32[4, 8]
  %o = map{expr=\"div(x0, x1)\"}(%p, %l): f32[4, 8]
  output %o
 }
 output %o";

#[test]
fn a_continued_product_is_the_product() {
    let plain = parse(
        "input %x: f32[4, 12]\n input %w: f32[12, 6]\n %p = contract(%x, %w): f32[4, 6]
         %y = map{expr=\"relu(x0)\"}(%p): f32[4, 6]\n output %y",
    );
    let tiled = parse(MATMUL);
    assert_eq!(run(&tiled), run(&plain));
    assert!(the_region(&tiled).1.keeps_order());
}

#[test]
fn online_softmax_is_softmax() {
    let plain = parse(
        "input %q: f32[8, 16]\n input %k: f32[16, 32]\n input %v: f32[32, 8]
         %s = contract(%q, %k): f32[8, 32]\n %p = softmax(%s): f32[8, 32]\n %o = contract(%p, %v): f32[8, 8]\n output %o",
    );
    let tiled = parse(ONLINE);
    let (made, wanted) = (run(&tiled), run(&plain));
    assert!(far(&made[0], &wanted[0]) < 1e-6, "{made:?} {wanted:?}");
    assert!(!the_region(&tiled).1.keeps_order());
}

/// Sums, sums of squares with a factor read after the loop, whole numbers that wrap, several outputs and axes.
const NORM: &str = "input %x: f32[4, 256]\n input %w: f32[2, 4]\n input %i: i32[8, 6]
 %y, %z, %n = region tiled{grid=\"[2, 2, 1]\", loops=2, ins=\"[0 - - loop 1, - 0 -, 0 1 - loop 0]\",
   outs=\"[0 1 -, 1 0 -, 0 1 -]\", accumulate=\"[continue, sum, sum]\", running=\"[1]\", reads=\"[1]\"}(%x, %w, %i):
   f32[4, 2], f32[2, 2], i32[2, 2]
 graph body {
  input %x: f32[2, 128]
  input %w: f32[1, 4]
  input %i: i32[2, 3]
  input %before: f32[2, 1]
  %q = reduce{kind=mean_square, axes=\"[1]\", keep=true}(%x): f32[2, 1]
  %s = reduce{kind=sum, axes=\"[1]\", keep=true}(%x): f32[2, 1]
  %t = map{expr=\"add(x0, mul(x1, 0.5))\"}(%s, %before): f32[2, 1]
  %h = map{expr=\"mul(x0, 1000000i)\"}(%i): i32[2, 3]
  %j = reduce{kind=sum, axes=\"[0, 1]\", keep=true}(%h): i32[1, 1]
  output %q, %t, %j
 }
 graph block {
  input %q: f32[2, 1]
  input %s: f32[2, 1]
  input %j: i32[1, 1]
  input %w: f32[1, 4]
  %k = reduce{kind=max, axes=\"[1]\", keep=true}(%w): f32[1, 1]
  %a = map{expr=\"add(sqrt(x0), x1)\"}(%q, %s): f32[2, 1]
  output %a, %k, %j
 }
 output %y, %n";

#[test]
fn a_region_is_what_it_is_without_tiles() {
    for text in [MATMUL, ONLINE, NORM] {
        let tiled = parse(text);
        let NodeKind::Region(region) = &tiled.nodes[0].kind else { panic!("no region") };
        let ins: Vec<_> = tiled.nodes[0].ins.iter().map(|&i| tiled.ty(i).clone()).collect();
        let mut plain = unrolled(region, &ins).unwrap();
        verify(&plain).unwrap();
        for (&outer, inner) in tiled.nodes[0].ins.iter().zip(plain.inputs.clone()) {
            plain.values[inner.index()].name = tiled.value(outer).name.clone();
        }
        if text == NORM {
            plain.outputs.remove(1);
        }
        for (a, b) in run(&tiled).iter().zip(&run(&plain)) {
            assert!(far(a, b) < 1e-6, "{a:?} {b:?}");
        }
    }
}

#[test]
fn texts_round_trip() {
    for text in [MATMUL, ONLINE, NORM] {
        let graph = parse(text);
        let printed = text::print(&graph);
        assert_eq!(text::parse(&printed).unwrap(), graph);
        assert_eq!(printed.contains("an order of its own"), text != MATMUL);
    }
}

/// A product of which a block keeps all sums, which a map changes; a further product goes through what it reads too.
const KEPT: &str = "input %x: f32[8, 16] input %k: f32[16, 1024] input %v: f32[1024, 4]
     %y = region tiled{grid=\"[2, 1, 1]\", loops=1, ins=\"[0 - -, - - -, - - -]\", outs=\"[0 - -]\",
     accumulate=\"[]\", running=\"[]\", reads=\"[0, 1, 2]\"}(%x, %k, %v): f32[8, 4]
     graph body { input %x: f32[4, 16] input %k: f32[16, 1024] input %v: f32[1024, 4] }
     graph block { input %x: f32[4, 16] input %k: f32[16, 1024] input %v: f32[1024, 4]
     %s = contract(%x, %k): f32[4, 1024] %m = reduce{kind=max, axes=\"[1]\", keep=true}(%s): f32[4, 1]
     %e = map{expr=\"exp(sub(x0, x1))\"}(%s, %m): f32[4, 1024] %y = contract(%e, %v): f32[4, 4] output %y } output %y";

#[test]
fn products_go_through_tiles_and_maps_write_in_place() {
    let graph = parse(KEPT);
    let (body, tiled) = the_region(&graph);
    // x, pieces of k and v, and the sums; what the map makes lies in their place when k is read no more.
    assert_eq!(block_bytes(body, tiled, Some(4096)), Some(4 * (64 + 4096 + 4096 + 4096)));
    let sums = tiled.block.find("s");
    assert_eq!(in_place(&tiled.block, 2), sums);
    // What another node reads later stays.
    let graph = parse(&KEPT.replace(
        "%y = contract(%e, %v)",
        "%z = map{expr=\"add(x0, x1)\"}(%e, %s): f32[4, 1024] %y = contract(%z, %v)",
    ));
    let (_, tiled) = the_region(&graph);
    assert_eq!(in_place(&tiled.block, 2), None);
    assert!(in_place(&tiled.block, 3).is_some());
}

#[test]
fn memory_of_a_block_is_its_tiles_and_accumulators() {
    let graph = parse(MATMUL);
    let (body, tiled) = the_region(&graph);
    // The loop: a 4x3, b 3x2 and their product 4x2, beside the sums.
    assert_eq!(block_bytes(body, tiled, Some(4096)), Some(4 * (12 + 6 + 8 + 8)));
    let graph = parse(NORM);
    let (body, tiled) = the_region(&graph);
    // A continued reduction has 64 partial results an element.
    let accumulators = 4 * (64 * 2 + 2 + 1);
    // All tiles, the running sum, and the mean of squares; what follows needs no more, since the tile of x ends.
    let most = 4 * (256 + 4 + 6 + 2 + 2);
    assert_eq!(block_bytes(body, tiled, Some(4096)), Some(accumulators + most));
}

/// Every refusal, as a change of a text that is taken.
#[test]
fn what_is_no_tiled_region_is_told() {
    for (text, from, to, why) in [
        (MATMUL, "[3, 1, 1]", "[0, 1, 1]", "from 1 on"),
        (MATMUL, "[3, 1, 1]", "[4294967295, 4294967295, 4294967295]", "a number"),
        (MATMUL, "[3, 1, 1]", "[3, 1]", "attribute `grid` cannot be"),
        (MATMUL, "[3, 1, 1]", "[4, 1, 1]", "grid axis 0 cuts 6 elements of dimension 1 into 4 parts"),
        (MATMUL, "[3, 1, 1]", "[3, 3, 1]", "the 3 blocks of grid axis 1 write the same elements"),
        (MATMUL, "loops=4", "loops=0", "from 1 on"),
        (MATMUL, "loops=4", "loops=5", "the loop cuts 12 elements of dimension 1 into 5 parts"),
        (MATMUL, "loops=4", "loops=-4", "attribute `loops` cannot be"),
        (MATMUL, "loops=4, ", "", "attribute `loops` is missing"),
        (MATMUL, "loops=4", "loops=4, more=1", "no attribute `more`"),
        (MATMUL, "- - - loop 1, 1 - - loop 0", "- - -, 1 - -", "the loop cuts no input"),
        (MATMUL, "- - - loop 1, 1 - - loop 0", "- - - loop 1", "1 inputs are cut, the node has 2"),
        (MATMUL, "- - - loop 1, 1", "- - - loop 2, 1", "no dimension 2 for the loop"),
        (MATMUL, "- - - loop 1, 1", "7 - - loop 1, 1", "no dimension 7 for grid axis 0"),
        (MATMUL, "- - - loop 1, 1", "1 1 - loop 1, 1", "two axes of the grid cut dimension 1"),
        (MATMUL, "- - - loop 1, 1", "- - loop 1, 1", "attribute `ins` cannot be"),
        (MATMUL, "outs=\"[1 - -]\"", "outs=\"[1 1 -]\"", "two axes of the grid cut dimension 1"),
        (MATMUL, "outs=\"[1 - -]\"", "outs=\"[2 - -]\"", "laid 3 times along dimension 2 are no size"),
        (MATMUL, "outs=\"[1 - -]\"", "outs=\"[- - -]\"", "write the same elements"),
        (MATMUL, "outs=\"[1 - -]\"", "outs=\"[1 - -, 1 - -]\"", "2 outputs are laid out, its block makes 1"),
        (MATMUL, "\"[continue]\"", "\"[go_on]\"", "attribute `accumulate` cannot be"),
        (MATMUL, "\"[continue]\"", "\"[]\"", "of which nothing is accumulated"),
        (MATMUL, "\"[continue]\"", "\"[continue, sum]\"", "2 accumulators of 1 outputs"),
        (MATMUL, "\"[continue]\"", "\"[rescaled 0]\"", "outputs from 1 on are factors"),
        (MATMUL, "running=\"[]\"", "running=\"[1]\"", "reads accumulator 1 of 1"),
        (MATMUL, "running=\"[]\"", "running=\"[0]\"", "whole when the loop has ended"),
        (MATMUL, "reads=\"[]\"", "reads=\"[0]\"", "which each iteration cuts anew"),
        (MATMUL, "reads=\"[]\"", "reads=\"[2]\"", "reads input 2 of 2"),
        (MATMUL, "output %p", "output %p, %p", "gives it twice"),
        (MATMUL, "output %p\n", "output %a\n", "it is a tile"),
        (
            MATMUL,
            "%p = contract(%a, %b): f32[4, 2]",
            "%k = contract(%a, %b): f32[4, 2]\n %p = map{expr=\"x0\"}(%k): f32[4, 2]",
            "`map` makes it",
        ),
        (
            MATMUL,
            "%p = contract(%a, %b): f32[4, 2]",
            "%p = contract(%a, %b): f32[4, 2]\n %k = map{expr=\"x0\"}(%p): f32[4, 2]",
            "reads it as well",
        ),
        (MATMUL, "input %a: f32[4, 3]", "input %a: f32[2, 3]", "is declared"),
        (MATMUL, "input %b: f32[3, 2]", "input %b: f32[3, 2]\n input %c: f32[3, 2]", "the inputs of its body are"),
        (MATMUL, "input %a: f32[4, 3]", "weight %a: f32[4, 3]", "tiles are step inputs"),
        (MATMUL, "input %b: f32[3, 2]", "input %b: f32[3, 2]/[2, 1]", "no strides are wanted"),
        (MATMUL, "input %s: f32[4, 2]", "input %s: f16[4, 2]\n input %r2: f32[4, 2]", "the inputs of its block are"),
        (MATMUL, "map{expr=\"relu(x0)\"}(%s)", "softmax(%s)", "`softmax` in its block"),
        (MATMUL, "input %x: f32[4, 12]", "input %x: f32[Tokens, 12]", "a fixed shape are wanted"),
        (ONLINE, "rescaled 3, rescaled 3", "sum, sum", "output 3 of the body is accumulated nowhere"),
        (ONLINE, "rescaled 3, rescaled 3", "rescaled 4, rescaled 3", "outputs from 3 on are factors"),
        (ONLINE, "output %t, %l, %p, %f", "output %t, %l, %p, %e", "floats that broadcast to it"),
        (NORM, "loops=2, ins=\"[0 - - loop 1", "loops=4, ins=\"[0 - - loop 1", "the inputs of its body are"),
    ] {
        let spoilt = format!("graph g {{\n{}\n}}\n", text.replacen(from, to, 1));
        assert!(text.contains(from), "{from}");
        let error = match text::parse(&spoilt) {
            Err(error) => error.to_string(),
            Ok(graph) => panic!("{from} -> {to}: {}", text::print(&graph)),
        };
        assert!(error.contains(why), "{from} -> {to}: {error}");
    }
}

#[test]
fn a_continued_reduction_takes_whole_partial_results() {
    let text = |tile: u32| {
        format!(
            "graph g {{ input %x: f32[2, {}] %y = region tiled{{grid=\"[1, 1, 1]\", loops=2, ins=\"[- - - loop 1]\",
             outs=\"[- - -]\", accumulate=\"[continue]\", running=\"[]\", reads=\"[]\"}}(%x): f32[2]
             graph body {{ input %x: f32[2, {tile}]
             %s = reduce{{kind=sum, axes=\"[1]\", keep=false}}(%x): f32[2] output %s }}
             graph block {{ input %s: f32[2] output %s }} output %y }}",
            2 * tile
        )
    };
    text::parse(&text(64)).unwrap();
    text::parse(&text(192)).unwrap();
    let error = text::parse(&text(96)).unwrap_err().to_string();
    assert!(error.contains("96 elements a tile, a multiple of 64 is wanted"), "{error}");
}

fn the_region(graph: &Graph) -> (&Graph, &Tiled) {
    let NodeKind::Region(region) = &graph.nodes[0].kind else { panic!("no region") };
    (&region.graph, region.tiled.as_ref().unwrap())
}
