//! Rows of numbers as blocks of few bits, byte by byte as llama.cpp writes them: of each format what is done without
//! importances, and with them.

#[cfg(test)]
mod golden;

mod fit;
mod k2;
mod k3;
mod k45;
mod k6;
mod nonlinear;
mod simple;

use yirage_ir::Format;
use yirage_model::gguf::GgmlType;

/// Encodes a row of whole blocks; where there are importances, there is one for each number.
pub(crate) type EncodeRow = fn(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]);

/// How rows of a format are written; `None` for formats that nothing here writes.
pub(crate) fn encoder(ty: GgmlType) -> Option<EncodeRow> {
    Some(match ty.name()? {
        "F32" => simple::f32,
        "F16" => simple::f16,
        "BF16" => simple::bf16,
        "Q4_0" => simple::q4_0,
        "Q4_1" => simple::q4_1,
        "Q5_0" => simple::q5_0,
        "Q5_1" => simple::q5_1,
        "Q8_0" => simple::q8_0,
        "MXFP4" => simple::mxfp4,
        "Q2_K" => k2::encode,
        "Q3_K" => k3::encode,
        "Q4_K" => k45::four_bits,
        "Q5_K" => k45::five_bits,
        "Q6_K" => k6::encode,
        "IQ4_NL" => nonlinear::iq4_nl,
        "IQ4_XS" => nonlinear::iq4_xs,
        _ => return None,
    })
}

/// The published number of a format by its name there.
pub(crate) fn named(name: &str) -> Option<GgmlType> {
    (0..64).map(GgmlType).find(|ty| ty.name() == Some(name))
}

/// Writes as the format's own encoder does, which knows of no importances.
fn plain(format: Format, row: &[f32], out: &mut [u8]) {
    let encode = format.info().encode.expect("each of the simple formats has an encoder");
    encode(row, out);
}

/// Writes `x` as f16 at byte `at`, and gives what a reader gets.
fn put_half(block: &mut [u8], at: usize, x: f32) -> f32 {
    let half = half::f16::from_f32(x);
    block[at..at + 2].copy_from_slice(&half.to_le_bytes());
    half.to_f32()
}

/// The mean of a row's squares, added from first to last.
fn mean_square(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |sum: f32, v| sum + v * v) / x.len() as f32
}

/// What the numbers of a block count: their importances, and more where they are large.
fn weighted<const N: usize>(x: &[f32], importances: &[f32], variance: f32) -> [f32; N] {
    std::array::from_fn(|i| importances[i] * (variance + x[i] * x[i]).sqrt())
}
