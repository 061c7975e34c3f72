//! A table of one function of all angles, described: its values are computed where they are read, so that its size is
//! known before it takes any memory.

use super::Frequencies;
use std::ops::Range;

/// A function of angles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wave {
    /// The cosine.
    Cosine,
    /// The sine.
    Sine,
}

/// Cosines or sines of the positions from 0 on, `[positions, pairs]`.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Of these frequencies.
    pub frequencies: Frequencies,
    /// Which function.
    pub wave: Wave,
    /// How many positions.
    pub positions: u32,
}

impl Table {
    /// Number of values.
    pub fn elements(&self) -> usize {
        (self.positions as usize).saturating_mul(self.frequencies.per_position.len())
    }

    /// The values of these positions, as [`Frequencies::tables`] computes them.
    pub fn values(&self, positions: Range<u32>) -> impl Iterator<Item = f32> {
        let Frequencies { per_position, factor } = &self.frequencies;
        let wave = match self.wave {
            Wave::Cosine => f64::cos,
            Wave::Sine => f64::sin,
        };
        positions.flat_map(move |p| per_position.iter().map(move |f| (wave(f64::from(p) * f) * factor) as f32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_tables_computed_at_once() {
        let frequencies = Frequencies { per_position: vec![1.0, 0.1, 1e-3], factor: 1.25 };
        let (cosines, sines) = frequencies.tables(0..50);
        let table = |wave| Table { frequencies: frequencies.clone(), wave, positions: 50 };
        assert_eq!(table(Wave::Cosine).values(0..50).collect::<Vec<_>>(), cosines);
        assert_eq!(table(Wave::Sine).values(7..9).collect::<Vec<_>>(), sines[21..27]);
        assert_eq!(table(Wave::Sine).elements(), 150);
    }
}
