//! What a device's hardware can do at most, measured: the ceilings that every figure of speed is compared with.
//!
//! A device measures itself, on the threads its kernels run on. Knows nothing of kernels, plans or models.

use crate::error::HalError;
use std::fmt;

/// A ceiling.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Limit {
    /// Reading memory that no cache holds, in bytes a second.
    MemoryRead,
    /// f32 multiplications with additions, in operations a second (a multiplication and an addition are two).
    F32,
    /// Products of bf16 numbers summed in f32, in operations a second.
    Bf16,
    /// Products of 8-bit activations with codes of at most `bits` bits, summed in 32 bits, in operations a second. Where
    /// the instruction set has a dot product of bytes, `bits` makes no difference.
    Int8 {
        /// Bits of a weight's code: 4, 5, 6 or 8.
        bits: u8,
    },
}

impl Limit {
    /// All ceilings.
    pub const ALL: [Limit; 7] = [
        Limit::MemoryRead,
        Limit::F32,
        Limit::Bf16,
        Limit::Int8 { bits: 4 },
        Limit::Int8 { bits: 5 },
        Limit::Int8 { bits: 6 },
        Limit::Int8 { bits: 8 },
    ];

    /// The ceiling for products with codes of `bits` bits.
    pub fn int8(bits: u32) -> Limit {
        Limit::Int8 {
            bits: match bits {
                0..=4 => 4,
                5 => 5,
                6 => 6,
                _ => 8,
            },
        }
    }

    /// The unit of its readings, divided by 10^9.
    pub fn unit(self) -> &'static str {
        match self {
            Limit::MemoryRead => "GB/s",
            Limit::F32 | Limit::Bf16 => "GFLOP/s",
            Limit::Int8 { .. } => "GOP/s",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::MemoryRead => f.write_str("memory read"),
            Limit::F32 => f.write_str("f32"),
            Limit::Bf16 => f.write_str("bf16"),
            Limit::Int8 { bits } => write!(f, "int8 x {bits}-bit codes"),
        }
    }
}

/// A measurement that is ready to be repeated: what it needs has been set up.
pub trait LimitProbe: Send {
    /// What one reading does and counts, in one line.
    fn method(&self) -> &str;
    /// One reading, some milliseconds long: bytes or operations a second.
    ///
    /// # Errors
    /// [`HalError::Device`].
    fn read(&mut self) -> Result<f64, HalError>;
}

/// Readings of one ceiling, in ascending order.
#[derive(Clone, PartialEq, Debug)]
pub struct Readings {
    sorted: Vec<f64>,
}

impl Readings {
    /// Takes `count` readings, at least one, after one that is thrown away.
    ///
    /// # Errors
    /// Those of [`LimitProbe::read`].
    pub fn take(probe: &mut dyn LimitProbe, count: usize) -> Result<Readings, HalError> {
        probe.read()?;
        let mut sorted = (0..count.max(1)).map(|_| probe.read()).collect::<Result<Vec<f64>, _>>()?;
        sorted.sort_by(f64::total_cmp);
        Ok(Readings { sorted })
    }

    /// The one in the middle; the upper of two.
    pub fn median(&self) -> f64 {
        self.sorted[self.sorted.len() / 2]
    }

    /// The lowest.
    pub fn lowest(&self) -> f64 {
        self.sorted[0]
    }

    /// The highest.
    pub fn highest(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FixedProbe(Vec<f64>);

    impl LimitProbe for FixedProbe {
        fn method(&self) -> &str {
            "given"
        }
        fn read(&mut self) -> Result<f64, HalError> {
            self.0.pop().ok_or_else(|| HalError::Device("no more".into()))
        }
    }

    #[test]
    fn the_first_reading_does_not_count() {
        let readings = Readings::take(&mut FixedProbe(vec![2.0, 9.0, 4.0, 1000.0]), 3).unwrap();
        assert_eq!((readings.lowest(), readings.median(), readings.highest()), (2.0, 4.0, 9.0));
        assert!(Readings::take(&mut FixedProbe(vec![1.0]), 0).is_err());
    }

    #[test]
    fn every_width_of_codes_has_a_ceiling() {
        for bits in 0..=9 {
            assert!(Limit::ALL.contains(&Limit::int8(bits)));
        }
        assert_eq!(Limit::int8(2), Limit::Int8 { bits: 4 });
    }
}
