//! What ranks give in the tests, and what is made of it by the definition.

use half::{bf16, f16};
use yirage_comm::{CommElement, ReduceOp};

/// Numbers from a seed.
#[derive(Clone)]
pub(crate) struct ScheduleRandom(u64);

impl ScheduleRandom {
    pub(crate) fn new(seed: u64) -> ScheduleRandom {
        ScheduleRandom(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A type of elements that has values from numbers, and results by the definition.
pub(crate) trait ComparedElement: CommElement + PartialEq + Default + std::fmt::Debug {
    fn of(random: u64) -> Self;
    fn reduced(op: ReduceOp, ranks: &[Self]) -> Self;
    fn bits(self) -> u32;
}

fn float(op: ReduceOp, ranks: impl Iterator<Item = f64> + Clone) -> f32 {
    let count = ranks.clone().count() as f64;
    let made = match op {
        ReduceOp::Sum => ranks.fold(0.0, |a, b| a + b),
        ReduceOp::Avg => ranks.fold(0.0, |a, b| a + b) / count,
        ReduceOp::Prod => ranks.fold(1.0, |a, b| a * b),
        ReduceOp::Max => ranks.fold(f64::NEG_INFINITY, f64::max),
        ReduceOp::Min => ranks.fold(f64::INFINITY, f64::min),
    };
    made as f32
}

fn integer(op: ReduceOp, ranks: impl Iterator<Item = i128> + Clone) -> i128 {
    let count = ranks.clone().count() as i128;
    match op {
        ReduceOp::Sum => ranks.sum(),
        ReduceOp::Avg => ranks.sum::<i128>() / count,
        ReduceOp::Prod => ranks.fold(1i128, i128::wrapping_mul),
        ReduceOp::Max => ranks.max().unwrap(),
        ReduceOp::Min => ranks.min().unwrap(),
    }
}

/// A float between -8 and 8 that is not 0: in `f32`, sums of such are not the same in every order.
fn small(random: u64) -> f32 {
    let x = ((random % 2_000_003) as f32 / 2_000_003.0 - 0.5) * 16.0;
    if x == 0.0 { 1.0 } else { x }
}

macro_rules! value {
    ($ty:ty, $of:expr, |$op:ident, $ranks:ident| $reduced:expr, $bits:expr) => {
        impl ComparedElement for $ty {
            fn of(random: u64) -> $ty {
                $of(random)
            }

            fn reduced($op: ReduceOp, $ranks: &[$ty]) -> $ty {
                $reduced
            }

            fn bits(self) -> u32 {
                $bits(self)
            }
        }
    };
}

value!(f32, small, |op, ranks| float(op, ranks.iter().map(|x| f64::from(*x))), f32::to_bits);
value!(
    f16,
    |random| f16::from_f32(small(random)),
    |op, ranks| f16::from_f32(float(op, ranks.iter().map(|x| x.to_f64()))),
    |x: f16| u32::from(x.to_bits())
);
value!(
    bf16,
    |random| bf16::from_f32(small(random)),
    |op, ranks| bf16::from_f32(float(op, ranks.iter().map(|x| x.to_f64()))),
    |x: bf16| u32::from(x.to_bits())
);
value!(i32, |random| random as i32, |op, ranks| integer(op, ranks.iter().map(|x| i128::from(*x))) as i32, |x: i32| x
    as u32);
value!(u8, |random| random as u8, |op, ranks| integer(op, ranks.iter().map(|x| i128::from(*x))) as u8, u32::from);

/// What each of the ranks gives in a step of a schedule.
pub(crate) fn given<T: ComparedElement>(seed: u64, ranks: usize, count: usize) -> Vec<Vec<T>> {
    let of = |rank: usize| {
        let mut random = ScheduleRandom::new(seed.wrapping_mul(1009).wrapping_add(rank as u64));
        (0..count).map(|_| T::of(random.next())).collect()
    };
    (0..ranks).map(of).collect()
}
