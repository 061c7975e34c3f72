//! The GGUF formats that are decoded: one file and one line of [`DECODERS`] each.

mod codebooks;
mod iq1_m;
mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4_xs;
mod nvfp4;
mod q1_0;
mod scaled_codes;
mod scaled_values;
mod tq1_0;
mod tq2_0;

use super::TensorDecoder;
use crate::gguf::GgmlType;
use scaled_codes::{BlockScale, ScaledCodes};
pub(crate) use scaled_values::ScaledValues;
use std::ops::Range;
use yirage_ir::Format;

/// How a block of a format is read.
enum GgmlDecode {
    /// As codes times scales, which are f32 and nothing smaller.
    Codes(fn(&[u8], &mut ScaledCodes)),
    /// As codes times scales, which are always a block of this format.
    Blocks(fn(&[u8], &mut ScaledCodes), Format),
    /// As codes times scales, which are a block of this format where the block's scale is an f16.
    Halved(fn(&[u8], &mut ScaledCodes), Format, fn(&[u8]) -> BlockScale),
    /// As values that are bf16.
    Values(fn(&[u8], &mut [f32])),
}

/// Every format that is decoded, by its number in GGUF files: the only list.
const DECODERS: &[(u32, GgmlDecode)] = &[
    (16, GgmlDecode::Codes(iq2_xxs::unpack)),
    (17, GgmlDecode::Codes(iq2_xs::unpack)),
    (18, GgmlDecode::Halved(iq3_xxs::unpack, Format::Q6_K, iq3_xxs::scale)),
    (19, GgmlDecode::Halved(iq1_s::unpack, Format::Q6_K, iq1_s::scale)),
    (21, GgmlDecode::Blocks(iq3_s::unpack, Format::Q6_K)),
    (22, GgmlDecode::Codes(iq2_s::unpack)),
    (23, GgmlDecode::Codes(iq4_xs::unpack)),
    (29, GgmlDecode::Halved(iq1_m::unpack, Format::Q6_K, iq1_m::scale)),
    (34, GgmlDecode::Blocks(tq1_0::unpack, Format::Q4_0)),
    (35, GgmlDecode::Blocks(tq2_0::unpack, Format::Q4_0)),
    (40, GgmlDecode::Values(nvfp4::decode)),
    (41, GgmlDecode::Blocks(q1_0::unpack, Format::Q4_0)),
];

/// A tensor of a format of [`DECODERS`].
pub(crate) struct GgmlDecoder {
    decode: &'static GgmlDecode,
    /// Elements and bytes of a block.
    block: (usize, usize),
}

impl std::fmt::Debug for GgmlDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GgmlDecoder({:?})", self.block)
    }
}

impl GgmlDecoder {
    /// The decoder of a format, where there is one.
    pub(crate) fn of(ty: GgmlType) -> Option<GgmlDecoder> {
        let (_, decode) = DECODERS.iter().find(|d| d.0 == ty.0)?;
        let (elements, bytes) = ty.block()?;
        Some(GgmlDecoder { decode, block: (elements as usize, bytes as usize) })
    }
}

impl TensorDecoder for GgmlDecoder {
    fn format(&self, parts: &[&[u8]]) -> Format {
        match self.decode {
            GgmlDecode::Values(_) => Format::BF16,
            GgmlDecode::Codes(_) => Format::F32,
            GgmlDecode::Blocks(_, format) => *format,
            GgmlDecode::Halved(_, format, scale) => {
                let halves = parts[0].chunks_exact(self.block.1).all(|block| scale(block).is_half());
                if halves { *format } else { Format::F32 }
            }
        }
    }

    fn decode(&self, parts: &[&[u8]], elements: Range<usize>, format: Format, out: &mut Vec<u8>) {
        let (width, bytes) = self.block;
        let mut codes = ScaledCodes::default();
        let (mut values, mut whole) = ([0f32; 256], Vec::new());
        let mut at = elements.start;
        while at < elements.end {
            let block = at / width;
            let (first, end) = (at - block * width, (elements.end - block * width).min(width));
            let stored = &parts[0][block * bytes..][..bytes];
            whole.clear();
            match self.decode {
                GgmlDecode::Values(decode) => {
                    decode(stored, &mut values[..width]);
                    // Every value is a bf16: its lower half is zero.
                    let skipped = if format == Format::BF16 { 2 } else { 0 };
                    let bytes = values[..width].iter().flat_map(|v| v.to_le_bytes().into_iter().skip(skipped));
                    whole.extend(bytes);
                }
                GgmlDecode::Codes(unpack) | GgmlDecode::Blocks(unpack, _) | GgmlDecode::Halved(unpack, ..) => {
                    unpack(stored, &mut codes);
                    codes.put(width, format, &mut whole);
                }
            }
            out.extend_from_slice(&whole[format.info().row_bytes(first)..format.info().row_bytes(end)]);
            at = block * width + end;
        }
    }
}
