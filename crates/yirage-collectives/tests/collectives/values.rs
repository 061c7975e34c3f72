//! What ranks give, and what each collective makes of it by its definition.

use crate::ranks::GroupRank;
use half::{bf16, f16};
use yirage_collectives::{CollectiveError, is_in_order};
use yirage_comm::{CollectiveKind, CommElement, ReduceOp};

/// A type of elements of the tests.
trait CheckedElement: CommElement + Default + PartialEq + std::fmt::Debug {
    fn of(number: i32) -> Self;
    /// In f64, rank 0 first, rounded once to f32 and from there; integers exactly.
    fn reduced(op: ReduceOp, all: &[Self]) -> Self;
    fn is_near(self, other: Self) -> bool;
}

fn float(op: ReduceOp, all: impl Iterator<Item = f64> + Clone) -> f32 {
    let ranks = all.clone().count() as f64;
    let value = match op {
        ReduceOp::Sum => all.fold(0.0, |a, b| a + b),
        ReduceOp::Avg => all.fold(0.0, |a, b| a + b) / ranks,
        ReduceOp::Prod => all.fold(1.0, |a, b| a * b),
        ReduceOp::Max => all.fold(f64::NEG_INFINITY, f64::max),
        ReduceOp::Min => all.fold(f64::INFINITY, f64::min),
    };
    value as f32
}

fn integer(op: ReduceOp, all: impl Iterator<Item = i64> + Clone) -> i64 {
    let ranks = all.clone().count() as i64;
    match op {
        ReduceOp::Sum => all.sum(),
        ReduceOp::Avg => all.sum::<i64>() / ranks,
        ReduceOp::Prod => all.product(),
        ReduceOp::Max => all.max().unwrap(),
        ReduceOp::Min => all.min().unwrap(),
    }
}

fn small(number: i32) -> f32 {
    ((number.wrapping_mul(7919) % 2003) as f32 + 0.5) / 97.0
}

macro_rules! float_value {
    ($ty:ty, $of:expr, $wide:expr, $narrow:expr) => {
        impl CheckedElement for $ty {
            fn of(number: i32) -> $ty {
                $of(number)
            }

            fn reduced(op: ReduceOp, all: &[$ty]) -> $ty {
                $narrow(float(op, all.iter().map(|x| f64::from($wide(*x)))))
            }

            fn is_near(self, other: $ty) -> bool {
                let (a, b): (f32, f32) = ($wide(self), $wide(other));
                (a - b).abs() <= 0.03 * a.abs().max(1.0)
            }
        }
    };
}

float_value!(f32, small, |x: f32| x, |x: f32| x);
float_value!(f16, |n| f16::from_f32(small(n)), f16::to_f32, f16::from_f32);
float_value!(bf16, |n| bf16::from_f32(small(n)), bf16::to_f32, bf16::from_f32);

impl CheckedElement for i32 {
    fn of(number: i32) -> i32 {
        number.wrapping_mul(7919) % 1000
    }

    fn reduced(op: ReduceOp, all: &[i32]) -> i32 {
        integer(op, all.iter().map(|&x| i64::from(x))) as i32
    }

    fn is_near(self, other: i32) -> bool {
        self == other
    }
}

impl CheckedElement for u8 {
    fn of(number: i32) -> u8 {
        (number.wrapping_mul(31) % 6) as u8 + 1
    }

    fn reduced(op: ReduceOp, all: &[u8]) -> u8 {
        integer(op, all.iter().map(|&x| i64::from(x))) as u8
    }

    fn is_near(self, other: u8) -> bool {
        self == other
    }
}

/// What a rank gives.
fn given<T: CheckedElement>(rank: usize, count: usize) -> Vec<T> {
    (0..count).map(|at| T::of((rank * 1000 + at) as i32 % 7001)).collect()
}

fn all<T: CheckedElement>(ranks: usize, count: usize) -> Vec<Vec<T>> {
    (0..ranks).map(|rank| given(rank, count)).collect()
}

fn reduced<T: CheckedElement>(op: ReduceOp, all: &[Vec<T>]) -> Vec<T> {
    (0..all[0].len()).map(|at| T::reduced(op, &all.iter().map(|values| values[at]).collect::<Vec<T>>())).collect()
}

pub(crate) fn every_collective(rank: &GroupRank) {
    of_type::<f32>(rank, 1023);
    of_type::<f16>(rank, 257);
    of_type::<bf16>(rank, 1);
    of_type::<i32>(rank, 64);
    of_type::<u8>(rank, 5);
}

fn of_type<T: CheckedElement>(rank: &GroupRank, count: usize) {
    let (own, ranks) = (rank.rank(), rank.ranks());
    let (all, wide) = (all::<T>(ranks, count), all::<T>(ranks, count * ranks));
    for op in ReduceOp::ALL {
        let (kind, mut got) = (CollectiveKind::AllReduce(op), vec![T::default(); count]);
        match rank.submit(kind, 1, &all[own], &mut got) {
            Err(CollectiveError::Argument(why)) => {
                assert!(op == ReduceOp::Avg && why.contains("has no average"), "{why}");
                continue;
            }
            done => assert!(done.is_ok() && rank.is_done_within(60_000), "{done:?}"),
        }
        same(kind, ranks, &got, &reduced(op, &all));
        let (kind, mut part) = (CollectiveKind::ReduceScatter(op), vec![T::default(); count]);
        rank.done(kind, 1, &wide[own], &mut part);
        same(kind, ranks, &part, &reduced(op, &wide)[own * count..][..count]);
    }
    let mut got = vec![T::default(); count * ranks];
    rank.done(CollectiveKind::AllGather, 1, &all[own], &mut got);
    assert_eq!(got, all.concat());
    for root in 0..ranks {
        let mut values = if own == root { all[own].clone() } else { vec![T::default(); count] };
        rank.done(CollectiveKind::Broadcast { root: root as u32 }, 1, &[], &mut values);
        assert_eq!(values, all[root], "from rank {root}");
    }
    if ranks > 1 && own < 2 {
        let (kind, mut got) = match own {
            0 => (CollectiveKind::Send { to: 1 }, Vec::new()),
            _ => (CollectiveKind::Recv { from: 0 }, vec![T::default(); count]),
        };
        rank.done(kind, 1, if own == 0 { &all[0] } else { &[] }, &mut got);
        assert!(own == 0 || got == all[0]);
    }
}

/// To the bit where the order of additions cannot matter.
fn same<T: CheckedElement>(kind: CollectiveKind, ranks: usize, got: &[T], wanted: &[T]) {
    for (at, (&got, &wanted)) in got.iter().zip(wanted).enumerate() {
        let is_right = if is_in_order(kind, ranks) { got == wanted } else { got.is_near(wanted) };
        assert!(is_right, "{kind} of {ranks} ranks at {at}: {got:?}, expected {wanted:?}");
    }
}

/// Of matrices: each row is gathered, and divided, by itself.
pub(crate) fn rows(rank: &GroupRank, rows: usize) {
    let (own, ranks, width) = (rank.rank(), rank.ranks(), 6);
    let all = all::<f32>(ranks, rows * width);
    let mut got = vec![0.0; rows * width * ranks];
    rank.done(CollectiveKind::AllGather, rows, &all[own], &mut got);
    for row in 0..rows {
        let wanted: Vec<f32> = all.iter().flat_map(|values| values[row * width..][..width].to_vec()).collect();
        assert_eq!(got[row * width * ranks..][..width * ranks], wanted[..], "row {row}");
    }
    let mut part = vec![0.0; rows * width / ranks];
    rank.done(CollectiveKind::ReduceScatter(ReduceOp::Sum), rows, &all[own], &mut part);
    let (sums, share) = (reduced(ReduceOp::Sum, &all), width / ranks);
    for row in 0..rows {
        assert_eq!(part[row * share..][..share], sums[row * width + own * share..][..share], "row {row}");
    }
}

/// A sum, the sum of what that gave, and that of all: nobody waits between.
pub(crate) fn one_behind_the_other(rank: &GroupRank) {
    let (own, ranks) = (rank.rank(), rank.ranks());
    let kind = CollectiveKind::AllReduce(ReduceOp::Sum);
    let (first, mut second, mut third) = (vec![own as i32 + 1; 3000], vec![0; 3000], vec![0; 3000]);
    let mut last = vec![0; 3000 * ranks];
    assert_eq!(rank.submit(kind, 1, &first, &mut second).unwrap().sequence, 0);
    assert_eq!(rank.submit(kind, 1, &second, &mut third).unwrap().sequence, 1);
    assert_eq!(rank.submit(CollectiveKind::AllGather, 1, &third, &mut last).unwrap().sequence, 2);
    assert!(rank.is_done_within(60_000));
    let once = (ranks * (ranks + 1) / 2) as i32;
    assert!(last.iter().all(|&x| x == once * ranks as i32), "{:?}", last.iter().find(|&&x| x != once));
}

pub(crate) fn shifts(rank: &GroupRank) {
    let (own, ranks) = (rank.rank(), rank.ranks());
    for by in 1..ranks {
        let (give, mut got) = (given::<f32>(own, 300), vec![0.0; 300]);
        rank.done(CollectiveKind::Shift { by: by as u32 }, 1, &give, &mut got);
        assert_eq!(got, given::<f32>((own + ranks - by) % ranks, 300), "by {by}");
    }
    let none = rank.submit(CollectiveKind::Shift { by: 0 }, 1, &[1.0f32], &mut [0.0]);
    assert!(matches!(none, Err(CollectiveError::Argument(_))), "{none:?}");
}

/// Numbers whose sum is another one in every order.
fn uneven(rank: usize) -> Vec<f32> {
    (0..999).map(|at| small((rank * 31 + at) as i32 % 997) * [1.0, 1e4, 1e-4, 3e7][(rank + at) % 4]).collect()
}

pub(crate) fn in_order(rank: &GroupRank) {
    let (ranks, kind) = (rank.ranks(), CollectiveKind::AllReduce(ReduceOp::Sum));
    let mut got = vec![0.0; 999];
    rank.done(kind, 1, &uneven(rank.rank()), &mut got);
    let all: Vec<Vec<f32>> = (0..ranks).map(uneven).collect();
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    assert_eq!(bits(&got) == bits(&reduced(ReduceOp::Sum, &all)), is_in_order(kind, ranks));
}

/// In the order of this project, and in that of the fake.
pub(crate) fn sums_of_three() -> [Vec<f32>; 2] {
    let all = [0, 1, 2].map(uneven);
    let backwards = |at: usize| all[2][at] + all[1][at] + all[0][at];
    [reduced(ReduceOp::Sum, &all), (0..999).map(backwards).collect()]
}
