//! Between which variants of the kernels measurement decides at a level, as data. Knows nothing of measuring.

use super::MatmulVariant;
use crate::activation::TOKEN_TILE;
use crate::isa::Isa;

/// Variants of which one is to be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VariantChoice {
    /// Tokens of the products that tell them apart in a short measurement.
    pub tokens: usize,
    /// Tokens of the steps that the answer is for, and of a full measurement.
    pub step: usize,
    /// The answers, each a text of [`MatmulVariant::with`] about the same names.
    pub answers: &'static [&'static str],
}

impl MatmulVariant {
    /// What is asked of a level: how far ahead weights are asked for only where kernels do that, and nothing of the portable
    /// ones, whose products take longer than a measurement may. Even shares are no answer: where others take a core later, all
    /// workers wait for the one that has it, and no measurement of now tells.
    pub fn choices(isa: Isa) -> Vec<VariantChoice> {
        let of = |(tokens, step), answers| VariantChoice { tokens, step, answers };
        let (one, few, tile, many) = ((1, 1), (8, 8), (TOKEN_TILE, TOKEN_TILE), (64, 512));
        let share = of(one, &["piece=64K,share=drained", "piece=256K,share=drained"]);
        let panels = of(one, &["panels=1", "panels=2"]);
        let group = of(many, &["group=128K", "group=256K", "group=512K"]);
        let lone: &'static [&'static str] = match isa {
            Isa::Amx => &["lone=pairs", "lone=single", "lone=matrix"],
            _ => &["lone=pairs", "lone=single"],
        };
        let full: &'static [&'static str] = match isa {
            Isa::Amx => &["many=matrix,together=4", "many=matrix,together=1", "many=pairs,together=4"],
            _ => &[
                "many=pairs,together=4",
                "many=winograd,together=4",
                "many=winograd,together=1",
                "many=pairs,together=1",
                "many=single,together=1",
                "many=single,together=4",
            ],
        };
        match isa.vectors() {
            Isa::Avx512 => vec![
                of(one, &["fetch=0", "fetch=2K", "fetch=4K", "fetch=8K"]),
                panels,
                share,
                of(few, &["few=4,few8=7", "few=4,few8=8", "few=7,few8=7", "few=15,few8=15"]),
                of(tile, lone),
                of(many, full),
                of(many, &["stream=0", "stream=2K", "stream=8K"]),
                group,
            ],
            Isa::Avx2 => vec![of(one, &["fetch=0", "fetch=1K", "fetch=2K", "fetch=4K"]), share, group],
            Isa::Neon => vec![share, group],
            _ => Vec::new(),
        }
    }
}
