//! The work of a step: against sums done by hand, and the same whatever was fused.

use yirage_ir::{Dims, Format, Graph, ValueSource, text};
use yirage_plan::work::{Costs, ResidentSizes, SequenceSpan, Work};

const FLAT: &str = include_str!("../work/layer.txt");
const FUSED: &str = include_str!("../work/layer_fused.txt");
const EXPERTS: &str = include_str!("../work/experts.txt");

/// Weights as they are in the file; 100 bytes a position of any state.
struct AsStored<'a>(&'a Graph);

impl ResidentSizes for AsStored<'_> {
    fn weight(&self, name: &str) -> u64 {
        let id = self.0.inputs_of(ValueSource::Weight).find(|&id| self.0.value(id).name == name).unwrap();
        self.0.ty(id).bytes(&Dims::default()) as u64
    }
    fn position(&self, name: &str) -> f64 {
        assert_eq!(name, "kv");
        100.0
    }
}

fn work(graph: &str, spans: &[SequenceSpan]) -> Work {
    let graph = text::parse(graph).unwrap();
    Costs::new(&graph, &AsStored(&graph)).step(spans)
}

fn span(start: u32, tokens: u32, rows: u32) -> SequenceSpan {
    SequenceSpan { start, tokens, rows }
}

fn ops(work: &Work, format: Format) -> f64 {
    work.matmul_ops.iter().find(|(f, _)| *f == format).map_or(0.0, |(_, ops)| *ops)
}

const EMBED_ROW: f64 = 68.0; // 64 weights of q8_0
const HEAD: f64 = 96.0 * EMBED_ROW;
const LAYER: f64 = 64.0 * 4.0 + 2.0 * 64.0 * 36.0 + 32.0 * 44.0 + 32.0 * 68.0; // norm, wq and wo, wk, wv

#[test]
fn a_token_reads_weights_once_and_its_row_of_the_table() {
    let one = work(FLAT, &[span(9, 1, 1)]);
    assert_eq!(one.weight_bytes, EMBED_ROW + LAYER + HEAD);
    assert_eq!(one.cache_bytes, 10.0 * 100.0);
    // the layer's products are in f32 here, the format's own ceiling or not
    assert_eq!(one.f32_ops, 2.0 * 10.0 * 4.0 * 32.0 + 2.0 * 64.0 * (64.0 + 32.0 + 32.0 + 64.0 + 96.0));
    assert_eq!(one.ops(), one.f32_ops);
}

#[test]
fn without_rows_the_head_is_not_read() {
    let (with, without) = (work(FLAT, &[span(0, 8, 1)]), work(FLAT, &[span(0, 8, 0)]));
    assert_eq!(with.weight_bytes - without.weight_bytes, HEAD);
    assert_eq!(with.ops() - without.ops(), 2.0 * 64.0 * 96.0);
    assert_eq!(without.weight_bytes, 8.0 * EMBED_ROW + LAYER);
}

#[test]
fn fusing_changes_nothing() {
    for spans in [vec![span(0, 1, 1)], vec![span(40, 7, 3), span(0, 5, 0)], vec![]] {
        assert_eq!(work(FLAT, &spans), work(FUSED, &spans));
    }
}

#[test]
fn a_prompt_sees_half_of_its_square() {
    let work = work(FLAT, &[span(4, 3, 0)]);
    let products = 3.0 * 2.0 * 64.0 * (64.0 + 32.0 + 32.0 + 64.0);
    assert_eq!(work.f32_ops - products, 2.0 * (5.0 + 6.0 + 7.0) * 4.0 * 32.0);
    assert_eq!(work.cache_bytes, 7.0 * 100.0);
}

#[test]
fn a_window_reads_its_window() {
    let windowed = FLAT.replace("window=0", "window=6");
    assert_eq!(work(&windowed, &[span(2, 1, 0)]).cache_bytes, 300.0);
    assert_eq!(work(&windowed, &[span(1000, 1, 0)]).cache_bytes, 600.0);
    // four tokens see the last six positions each: nine between them
    assert_eq!(work(&windowed, &[span(1000, 4, 0)]).cache_bytes, 900.0);
    let none = work(&windowed, &[span(1000, 0, 0)]);
    assert_eq!((none.cache_bytes, none.f32_ops, none.weight_bytes), (0.0, 0.0, 0.0));
    let far = work(&windowed, &[span(1000, 1, 0)]).f32_ops - work(&windowed, &[span(0, 1, 0)]).f32_ops;
    assert_eq!(far, 2.0 * 5.0 * 4.0 * 32.0);
}

#[test]
fn sequences_share_weights_and_not_caches() {
    let (one, two) = (work(FLAT, &[span(9, 1, 1)]), work(FLAT, &[span(9, 1, 1), span(9, 1, 1)]));
    assert_eq!(two.weight_bytes, one.weight_bytes + EMBED_ROW);
    assert_eq!((two.cache_bytes, two.ops()), (2.0 * one.cache_bytes, 2.0 * one.ops()));
}

#[test]
fn of_experts_only_the_chosen_are_read() {
    let one = work(EXPERTS, &[span(0, 1, 0)]);
    let (gate, up, down) = (96.0 * 36.0, 96.0 * 34.0, 64.0 * 102.0);
    let dense = 4.0 * 64.0 * 4.0 + 96.0 * 36.0;
    assert_eq!(one.weight_bytes, 64.0 * 4.0 + dense + 2.0 * (gate + up + down));
    assert_eq!(ops(&one, Format::MXFP4), 2.0 * 2.0 * 96.0 * 64.0);
    assert_eq!(ops(&one, Format::Q4_0), 2.0 * 96.0 * 64.0 + 2.0 * 2.0 * 96.0 * 64.0);
    assert_eq!(ops(&one, Format::F32), 2.0 * 4.0 * 64.0);
    // two tokens that choose evenly meet 4 * (1 - 1/4) = 3 of four experts; very many meet all
    let two = work(EXPERTS, &[span(0, 2, 0)]);
    assert_eq!(two.weight_bytes, 2.0 * 64.0 * 4.0 + dense + 3.0 * (gate + up + down));
    let all = work(EXPERTS, &[span(0, 1000, 0)]).weight_bytes - 1000.0 * 64.0 * 4.0 - dense;
    assert!((all - 4.0 * (gate + up + down)).abs() < 1e-6);
}

#[test]
fn work_adds_up() {
    let (a, b) = (work(EXPERTS, &[span(0, 1, 0)]), work(FLAT, &[span(3, 1, 1)]));
    let mut sum = Work::default();
    sum += &a;
    sum += &b;
    assert_eq!((sum.bytes(), sum.ops()), (a.bytes() + b.bytes(), a.ops() + b.ops()));
}
