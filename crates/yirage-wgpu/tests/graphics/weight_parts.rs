//! A weight larger than what a kernel is bound to, on the first Vulkan device of this machine: a table of 16-bit floats that
//! is read by rows and multiplied with.

use crate::support::device;
use std::collections::HashMap;
use yirage_conformance::GraphSetup;
use yirage_hal::Record;
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Format, Tensor, text};
use yirage_plan::Precision;

/// More than the 128 MiB that WebGPU promises of a binding.
const ROWS: usize = 70_000;
const WIDTH: usize = 1024;

#[test]
#[ignore = "needs a Vulkan device"]
fn a_table_larger_than_a_binding_is_read_in_parts() {
    let body = format!(
        "graph g {{ input %ids: i32[Tokens] weight %w: f16[{ROWS}, {WIDTH}]
         %x = embed{{scale=1.0}}(%w, %ids): f32[Tokens, {WIDTH}]
         %y = linear{{groups=1}}(%x, %w): f32[Tokens, {ROWS}] output %x, %y }}"
    );
    let graph = text::parse(&body).unwrap();
    // Small multiples of 1/64: their products and sums are exact, in any order.
    let bits = |at: usize| [0x2400u16, 0x2800, 0xa400, 0, 0x2c00, 0xa800, 0][at * 7919 % 10_007 % 7].to_le_bytes();
    let table = Tensor::stored(Format::F16, [ROWS, WIDTH], (0..ROWS * WIDTH).flat_map(bits).collect());
    let ids = [0, 65_535, 65_536, ROWS as i32 - 1, ROWS as i32, -1];
    let setup = GraphSetup {
        graph,
        weights: HashMap::from([("w".to_string(), table)]),
        step_inputs: HashMap::from([("ids".to_string(), Record::of(&ids))]),
        kv_caches: Vec::new(),
        dims: Dims { tokens: ids.len() as u32, seqs: 1, blocks: 1, rows: 1 },
        precision: Precision::Exact,
    };
    let wanted = setup.reference().unwrap();
    let got = setup.run(&*device()).unwrap();
    for (name, (got, want)) in ["x", "y"].iter().zip(got.iter().zip(&wanted)) {
        let (Data::F32(got), Data::F32(want)) = (got, &want.data) else { panic!("floats") };
        let same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
        let wrong = got.iter().zip(want).position(|pair| !same(pair));
        assert_eq!((got.len(), wrong), (want.len(), None), "`{name}`");
    }
}
