//! Shared by the tests of packed weights and matrix kernels.

use half::bf16;
use yirage_cpu_kernels::activation::{ActivationBufferLayout, TOKEN_TILE};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::{Dispatch, Linear, MatmulVariant, linear};
use yirage_cpu_kernels::pack::PackedMatrix;
use yirage_ir::Format;
use yirage_plan::Precision;
pub(crate) use yirage_testkit::rng::Rng;
pub(crate) use yirage_testkit::skipped;

/// Roughly normal.
pub(crate) fn normal(rng: &mut Rng) -> f32 {
    (0..6).map(|_| rng.signed_f32()).sum::<f32>() / std::f32::consts::SQRT_2
}

/// `n` numbers, each roughly normal.
pub(crate) fn floats(rng: &mut Rng, n: usize) -> Vec<f32> {
    (0..n).map(|_| normal(rng)).collect()
}

/// Numbers of the usual size (kind 0), numbers of any exponent (1), small ones and subnormal ones (2).
pub(crate) fn bf16_numbers(rng: &mut Rng, kind: usize, n: usize) -> Vec<bf16> {
    (0..n)
        .map(|_| match kind {
            0 => bf16::from_f32(normal(rng)),
            1 => {
                let v = bf16::from_bits(rng.next_u64() as u16);
                if v.is_finite() { v } else { bf16::ONE }
            }
            _ => {
                let small = bf16::from_bits(rng.below(0x200) as u16 | (rng.next_u64() as u16 & 0x8000));
                if rng.next_u64().is_multiple_of(3) { bf16::from_f32(normal(rng)) } else { small }
            }
        })
        .collect()
}

pub(crate) fn isas() -> Vec<Isa> {
    let (have, lack): (Vec<Isa>, Vec<Isa>) = Isa::ALL.iter().partition(|isa| isa.available());
    for isa in lack {
        skipped::note(&format!("kernels for {isa}"), "this processor lacks them");
    }
    have
}

/// The binary16 fields of a block that must be finite.
fn halves(format: Format) -> &'static [usize] {
    match format {
        Format::Q4_0 | Format::Q5_0 | Format::Q8_0 | Format::IQ4_NL => &[0],
        Format::Q4_1 | Format::Q5_1 | Format::Q4_K | Format::Q5_K => &[0, 2],
        Format::Q6_K => &[208],
        Format::Q2_K => &[80, 82],
        Format::Q3_K => &[108],
        Format::MXFP4 | Format::F32 | Format::F16 | Format::BF16 => &[],
    }
}

/// Rows of random blocks with finite scales of both signs.
pub(crate) fn weights(rng: &mut Rng, format: Format, rows: usize, k: usize) -> Vec<u8> {
    let info = format.info();
    let mut out = Vec::with_capacity(info.row_bytes(k) * rows);
    for _ in 0..rows * k / info.block {
        match format {
            Format::F32 => out.extend(normal(rng).to_le_bytes()),
            Format::F16 => out.extend(half::f16::from_f32(normal(rng)).to_le_bytes()),
            Format::BF16 => out.extend(half::bf16::from_f32(normal(rng)).to_le_bytes()),
            _ => {
                let start = out.len();
                out.extend((0..info.bytes).map(|_| rng.next_u64() as u8));
                for at in halves(format) {
                    let scale = half::f16::from_f32(rng.signed_f32() * 0.01);
                    out[start + at..start + at + 2].copy_from_slice(&scale.to_le_bytes());
                }
                if format == Format::MXFP4 {
                    out[start] = 120 + rng.below(10) as u8;
                }
            }
        }
    }
    out
}

pub(crate) fn packed(format: Format, rows: usize, k: usize, bytes: &[u8]) -> PackedMatrix {
    packed_at(Isa::detect(), format, rows, k, bytes)
}

pub(crate) fn packed_at(isa: Isa, format: Format, rows: usize, k: usize, bytes: &[u8]) -> PackedMatrix {
    let m = PackedMatrix::new(format, rows, k).unwrap();
    unsafe { m.pack_rows(isa, 0, 0, bytes).unwrap() };
    m
}

/// The rows as the format's definition decodes them.
pub(crate) fn decoded(format: Format, rows: usize, k: usize, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![0f32; rows * k];
    (format.info().decode)(bytes, &mut out);
    out
}

pub(crate) fn stored(isa: Isa, layout: ActivationBufferLayout, x: &[f32]) -> Vec<u8> {
    let mut out = vec![0xa5u8; layout.bytes()];
    unsafe { layout.store(isa, x.as_ptr(), layout.k(), 0..layout.tokens(), out.as_mut_ptr()) };
    out
}

/// The whole product, with the panels in `parts` calls.
pub(crate) fn product(
    isa: Isa,
    precision: Precision,
    m: &PackedMatrix,
    x: &[f32],
    tokens: usize,
    parts: usize,
) -> Vec<f32> {
    product_so((isa, MatmulVariant::of_level(isa)), precision, m, x, tokens, parts)
}

/// [`product`] by a variant of the kernels.
pub(crate) fn product_so(
    (isa, variant): (Isa, MatmulVariant),
    precision: Precision,
    m: &PackedMatrix,
    x: &[f32],
    tokens: usize,
    parts: usize,
) -> Vec<f32> {
    let kernel = Dispatch::new(isa, variant, precision, m.format()).unwrap();
    let layout = kernel.layout(tokens, m.k());
    let activations = stored(isa, layout, x);
    let mut out = vec![f32::NAN; tokens * m.rows()];
    let job = Linear {
        kernel: &kernel,
        weights: m,
        matrix: 0,
        layout,
        activations: activations.as_ptr(),
        out: out.as_mut_ptr(),
        ldo: m.rows(),
        rows: None,
    };
    for part in 0..parts {
        let panels = m.panels() * part / parts..m.panels() * (part + 1) / parts;
        for slice in 0..parts {
            let edge =
                |slice: usize| if slice == parts { tokens } else { tokens * slice / parts / TOKEN_TILE * TOKEN_TILE };
            unsafe { linear(&job, panels.clone(), edge(slice)..edge(slice + 1)) };
        }
    }
    out
}

pub(crate) fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|v| v.to_bits()).collect()
}

/// A k the format can have.
pub(crate) fn ks(format: Format) -> &'static [usize] {
    match format.info().block {
        1 => &[1, 5, 33, 100, 256],
        32 => &[32, 96, 256],
        _ => &[256, 768],
    }
}
