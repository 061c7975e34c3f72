//! What elements of parts are, and the floats among them as f32.

use half::{bf16, f16};

/// The element type of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartType {
    F32,
    F16,
    BF16,
    /// Eight bits: four of exponent, three of mantissa, no infinities.
    E4M3,
    /// Eight bits: five of exponent, two of mantissa.
    E5M2,
    /// A power of two.
    E8M0,
    U8,
    I8,
    I32,
    I64,
    Other,
}

/// What scales may be.
pub(super) const SCALES: &[PartType] = &[PartType::F32, PartType::F16, PartType::BF16];

impl PartType {
    /// The type of that name in safetensors files, in letters of either case.
    pub(crate) fn of(name: &str) -> PartType {
        const NAMED: &[PartType] = &[
            PartType::F32,
            PartType::F16,
            PartType::BF16,
            PartType::E4M3,
            PartType::E5M2,
            PartType::E8M0,
            PartType::U8,
            PartType::I8,
            PartType::I32,
            PartType::I64,
        ];
        NAMED.iter().copied().find(|ty| ty.name().eq_ignore_ascii_case(name)).unwrap_or(PartType::Other)
    }

    /// Its name in safetensors files.
    pub(super) fn name(self) -> &'static str {
        match self {
            PartType::F32 => "F32",
            PartType::F16 => "F16",
            PartType::BF16 => "BF16",
            PartType::E4M3 => "F8_E4M3",
            PartType::E5M2 => "F8_E5M2",
            PartType::E8M0 => "F8_E8M0",
            PartType::U8 => "U8",
            PartType::I8 => "I8",
            PartType::I32 => "I32",
            PartType::I64 => "I64",
            PartType::Other => "another type",
        }
    }

    fn bytes(self) -> usize {
        match self {
            PartType::F32 | PartType::I32 => 4,
            PartType::F16 | PartType::BF16 => 2,
            PartType::I64 => 8,
            _ => 1,
        }
    }

    /// Float `at` of a part; bytes are exponents of powers of two, as E8M0 is stored where a file has no type for it.
    pub(super) fn float(self, part: &[u8], at: usize) -> f32 {
        let b = &part[at * self.bytes()..][..self.bytes()];
        match self {
            PartType::F32 => f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            PartType::F16 => f16::from_le_bytes([b[0], b[1]]).to_f32(),
            PartType::BF16 => bf16::from_le_bytes([b[0], b[1]]).to_f32(),
            PartType::E4M3 => e4m3(b[0]),
            PartType::E5M2 => f16::from_bits(u16::from(b[0]) << 8).to_f32(),
            _ => e8m0(b[0]),
        }
    }

    /// All floats of a part.
    pub(super) fn floats(self, part: &[u8]) -> impl Iterator<Item = f32> {
        (0..part.len() / self.bytes()).map(move |at| self.float(part, at))
    }
}

/// An E4M3 number.
pub(super) fn e4m3(code: u8) -> f32 {
    let (exponent, mantissa) = (u32::from(code >> 3 & 15), u32::from(code & 7));
    let magnitude = match (exponent, mantissa) {
        (15, 7) => f32::NAN,
        // Steps of 2^-9.
        (0, _) => mantissa as f32 * f32::from_bits(118 << 23),
        _ => f32::from_bits((exponent + 120) << 23 | mantissa << 20),
    };
    if code >> 7 == 1 { -magnitude } else { magnitude }
}

/// 2^(code - 127).
fn e8m0(code: u8) -> f32 {
    match code {
        0 => f32::from_bits(1 << 22),
        255 => f32::NAN,
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

/// Whether the products of this scale and any number of eight bits or fewer are all bf16: a scale of four bits, far from
/// the smallest and the largest numbers.
pub(super) fn keeps_bf16(scale: f32) -> bool {
    let bits = scale.to_bits();
    bits & 0x000f_ffff == 0 && (27..=227).contains(&(bits >> 23 & 255))
}
