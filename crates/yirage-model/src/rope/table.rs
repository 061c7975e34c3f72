//! Tables of cosines and sines, described: their values are computed where they are read, so that their size is known
//! before they take any memory.

use super::Frequencies;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// A function of angles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wave {
    Cosine,
    Sine,
}

/// Cosines or sines of the positions from 0 on, `[positions, pairs]`.
#[derive(Clone, Debug)]
pub struct RopeTable {
    of: Arc<Angles>,
    wave: Wave,
}

/// What both tables of a rotation are made of.
#[derive(Debug)]
struct Angles {
    frequencies: Frequencies,
    positions: u32,
    /// Cosine and sine of an angle cost hardly more than one of them: what reading one table computed of the other waits
    /// here for its reader.
    spare: Mutex<Option<Spare>>,
}

#[derive(Debug)]
struct Spare {
    wave: Wave,
    positions: Range<u32>,
    values: Vec<f32>,
}

impl PartialEq for RopeTable {
    fn eq(&self, other: &RopeTable) -> bool {
        let same = self.of.frequencies == other.of.frequencies && self.of.positions == other.of.positions;
        same && self.wave == other.wave
    }
}

impl RopeTable {
    /// The cosines and the sines of a rotation.
    pub fn both(frequencies: Frequencies, positions: u32) -> [RopeTable; 2] {
        let of = Arc::new(Angles { frequencies, positions, spare: Mutex::new(None) });
        [Wave::Cosine, Wave::Sine].map(|wave| RopeTable { of: Arc::clone(&of), wave })
    }

    /// Number of values.
    pub fn elements(&self) -> usize {
        (self.of.positions as usize).saturating_mul(self.of.frequencies.per_position.len())
    }

    /// The values of these positions, as [`Frequencies::tables`] computes them.
    pub fn values(&self, positions: Range<u32>) -> Vec<f32> {
        // A spare is put there whole or not at all.
        let mut spare = self.of.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ours) = spare.take_if(|spare| spare.wave == self.wave && spare.positions == positions) {
            return ours.values;
        }
        let (cosines, sines) = self.of.frequencies.tables(positions.clone());
        let (ours, wave, values) = match self.wave {
            Wave::Cosine => (cosines, Wave::Sine, sines),
            Wave::Sine => (sines, Wave::Cosine, cosines),
        };
        *spare = Some(Spare { wave, positions, values });
        ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_tables_computed_at_once_in_whatever_order() {
        let frequencies = Frequencies { per_position: vec![1.0, 0.1, 1e-3], factor: 1.25, growth: None };
        let (cosines, sines) = frequencies.tables(0..50);
        let [cosine, sine] = RopeTable::both(frequencies, 50);
        for _ in 0..2 {
            assert_eq!(cosine.values(0..50), cosines);
            assert_eq!(sine.values(7..9), sines[21..27]);
            assert_eq!(cosine.values(7..9), cosines[21..27]);
            assert_eq!(sine.values(0..50), sines);
            assert_eq!(sine.values(0..50), sines);
        }
        assert_eq!(sine.elements(), 150);
        assert!(cosine == cosine.clone() && cosine != sine);
    }
}
