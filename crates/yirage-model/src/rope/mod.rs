//! Tables of the rotary embedding (Su et al., arXiv 2104.09864) for every scaling: a scaling is nothing but the
//! frequencies and a factor. Computed in f64, rounded once.
//!
//! This module knows no file and no graph.

mod dynamic;
mod llama3;
mod table;
mod yarn;

pub use dynamic::{Dynamic, LongerSequences};
pub use table::RopeTable;
pub use yarn::score_factor;

use crate::config::{QueryGrowth, RopeConfig, RopeScaling};

/// The frequencies of a rotation and the factor of its cosines and sines.
#[derive(Clone, PartialEq, Debug)]
pub struct Frequencies {
    /// Radians a position, one for each rotating pair.
    pub per_position: Vec<f64>,
    /// Factor of cosines and sines.
    pub factor: f64,
    /// A factor that grows with the position, beside the constant one.
    pub growth: Option<QueryGrowth>,
}

impl Frequencies {
    /// The frequencies of `rotary` rotating elements. `divisors` holds those of [`RopeScaling::Factors`], or one of both
    /// lists of [`RopeScaling::LongRope`]; where absent, none divides. Those of the dynamic scaling are of sequences within
    /// the original context; of longer ones see [`Dynamic`].
    pub fn new(config: &RopeConfig, rotary: u32, divisors: Option<&[f64]>) -> Frequencies {
        let plain = base_frequencies(config.theta, rotary);
        let factor = match config.scaling {
            RopeScaling::Yarn { .. } => yarn::factor(&config.scaling),
            RopeScaling::LongRope { attention_factor, .. } => attention_factor,
            _ => 1.0,
        };
        let per_position = match &config.scaling {
            RopeScaling::Default | RopeScaling::Dynamic { .. } => plain,
            RopeScaling::Linear { factor } => plain.into_iter().map(|f| f / factor).collect(),
            &RopeScaling::Proportional { factor } => {
                // The small addend undoes the rounding of a quotient of integers.
                let pairs = (config.partial_rotary_factor * f64::from(rotary) / 2.0 + 1e-6) as usize;
                plain.into_iter().enumerate().map(|(at, f)| if at < pairs { f / factor } else { 0.0 }).collect()
            }
            RopeScaling::Llama3 { .. } => llama3::scale(plain, &config.scaling),
            RopeScaling::Yarn { .. } => yarn::blend(plain, config.theta, rotary, &config.scaling),
            RopeScaling::Factors { .. } | RopeScaling::LongRope { .. } => match divisors {
                Some(divisors) => plain.into_iter().zip(divisors).map(|(f, d)| f / d).collect(),
                None => plain,
            },
        };
        Frequencies { per_position, factor, growth: None }
    }

    /// Cosines and sines, `[positions, pairs]` each.
    pub fn tables(&self, positions: std::ops::Range<u32>) -> (Vec<f32>, Vec<f32>) {
        let of_position = |p: u32| {
            let factor = self.factor * self.growth.map_or(1.0, |growth| growth_at(growth, p));
            self.per_position.iter().map(move |f| (f64::from(p) * f, factor))
        };
        let one = |(a, factor): (f64, f64)| ((a.cos() * factor) as f32, (a.sin() * factor) as f32);
        positions.flat_map(of_position).map(one).unzip()
    }
}

/// `theta^(-2i/rotary)`.
fn base_frequencies(theta: f64, rotary: u32) -> Vec<f64> {
    (0..rotary / 2).map(|i| theta.powf(-2.0 * f64::from(i) / f64::from(rotary))).collect()
}

/// The factor of a position.
fn growth_at(growth: QueryGrowth, position: u32) -> f64 {
    1.0 + growth.rate * f64::from(1 + position / growth.every.max(1)).ln()
}
