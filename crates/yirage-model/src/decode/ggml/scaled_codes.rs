//! What most formats are underneath: whole codes times whole scales of sixteen times a float of eleven bits. The product
//! of the three is an f32, whatever they are.

use half::f16;
use yirage_ir::Format;

/// The scale of a whole block: `d / 2^shift`.
#[derive(Clone, Copy)]
pub(super) struct BlockScale {
    /// As it is stored.
    pub(super) d: f16,
    /// How often that is halved.
    pub(super) shift: u8,
}

impl BlockScale {
    /// Its number, exact.
    fn value(self) -> f32 {
        self.d.to_f32() / f32::from(1u16 << self.shift)
    }

    /// Whether its number is an f16 as well.
    pub(super) fn is_half(self) -> bool {
        f16::from_f32(self.value()).to_f32() == self.value()
    }
}

/// A block: weight i is the block's scale times `scales[i / 16] * codes[i]`.
pub(super) struct ScaledCodes {
    /// The block's scale.
    pub(super) scale: BlockScale,
    /// A scale for each 16 weights.
    pub(super) scales: [i8; 16],
    /// The codes.
    pub(super) codes: [i8; 256],
}

impl Default for ScaledCodes {
    fn default() -> ScaledCodes {
        ScaledCodes { scale: BlockScale { d: f16::ZERO, shift: 0 }, scales: [1; 16], codes: [0; 256] }
    }
}

impl ScaledCodes {
    /// Sets the codes from `at` on.
    pub(super) fn set<const N: usize>(&mut self, at: usize, codes: [i8; N]) {
        self.codes[at..at + N].copy_from_slice(&codes);
    }

    /// Sets the scales of the 32 weights of `group`.
    pub(super) fn scale_32(&mut self, group: usize, scale: i8) {
        self.scales[2 * group..2 * group + 2].fill(scale);
    }

    /// Appends the first `width` weights in a format of this module's table.
    pub(super) fn put(&self, width: usize, format: Format, out: &mut Vec<u8>) {
        match format {
            Format::Q6_K => self.put_q6_k(out),
            Format::Q4_0 => self.put_q4_0(width, out),
            _ => self.put_f32(width, out),
        }
    }

    fn put_f32(&self, width: usize, out: &mut Vec<u8>) {
        let block = self.scale.value();
        for (codes, &scale) in self.codes[..width].chunks_exact(16).zip(&self.scales) {
            let scale = block * f32::from(scale);
            out.extend(codes.iter().flat_map(|&code| (scale * f32::from(code)).to_le_bytes()));
        }
    }

    /// Codes from -8 to 7, scales of 1.
    fn put_q4_0(&self, width: usize, out: &mut Vec<u8>) {
        for codes in self.codes[..width].chunks_exact(32) {
            out.extend_from_slice(&self.scale.d.to_le_bytes());
            out.extend((0..16).map(|i| (codes[i] + 8) as u8 | ((codes[i + 16] + 8) as u8) << 4));
        }
    }

    /// Codes from -32 to 31.
    fn put_q6_k(&self, out: &mut Vec<u8>) {
        let code = |i: usize| (self.codes[i] + 32) as u8;
        for half in [0, 128] {
            out.extend((0..64).map(|l| code(half + l) & 15 | (code(half + l + 64) & 15) << 4));
        }
        for half in [0, 128] {
            let high = |l: usize| (0..4).fold(0, |bits, part| bits | code(half + l + 32 * part) >> 4 << (2 * part));
            out.extend((0..32).map(high));
        }
        out.extend(self.scales.iter().map(|&scale| scale as u8));
        out.extend_from_slice(&f16::from_f32(self.scale.value()).to_le_bytes());
    }
}

/// The f16 at byte `at`, halved `shift` times.
pub(super) fn scale_at(block: &[u8], at: usize, shift: u8) -> BlockScale {
    BlockScale { d: f16::from_bits(u16_at(block, at)), shift }
}

/// The u16 at byte `at`.
pub(super) fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

/// The u32 at byte `at`.
pub(super) fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}
