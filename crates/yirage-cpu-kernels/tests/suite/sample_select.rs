//! The likeliest tokens of a row: what is selected is the beginning of the sorted row.

use crate::linear_support::isas;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::sample::select::{TokenLogit, gather, nucleus, sort_by_likelihood, top_k};

fn row(length: usize, kinds: u32) -> Vec<f32> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) % kinds).map(|kind| kind as f32).collect()
}

#[test]
fn top_k_is_the_beginning_of_the_sorted_row() {
    let levels = isas();
    for (length, kinds) in [(1, 1), (50, 5), (3000, 7), (9000, 100_000)] {
        let row = row(length, kinds);
        let mut sorted = Vec::new();
        gather(Isa::detect(), &row, f64::NEG_INFINITY, &mut sorted);
        sort_by_likelihood(&mut sorted);
        for k in [1, 2, 40, 600, length] {
            for &isa in &levels {
                let mut best = Vec::new();
                top_k(isa, &row, k, &mut best);
                sort_by_likelihood(&mut best);
                assert_eq!(best, sorted[..k.min(length)], "{length} of {kinds} kinds, k {k}, {isa}");
            }
        }
    }
}

#[test]
fn masked_tokens_are_never_among_the_best() {
    let mut row = vec![f32::NEG_INFINITY; 3000];
    row[2000] = -5.0;
    let mut best = Vec::new();
    top_k(Isa::detect(), &row, 10, &mut best);
    assert_eq!(best, [TokenLogit { token: 2000, logit: -5.0 }]);
}

#[test]
fn the_nucleus_is_the_shortest_beginning_of_the_sorted_row_that_reaches_the_target() {
    for (length, kinds) in [(1, 1), (2, 2), (7, 3), (1000, 4), (5000, 100_000)] {
        let row = row(length, kinds);
        let mut sorted = Vec::new();
        gather(Isa::detect(), &row, f64::NEG_INFINITY, &mut sorted);
        let unsorted = sorted.clone();
        sort_by_likelihood(&mut sorted);
        let mass = |candidate: &TokenLogit| candidate.logit as u64 + 1;
        let total: u64 = sorted.iter().map(mass).sum();
        for target in [0, 1, 2, total / 3, total / 2, total - 1, total, total + 1] {
            let mut reached = 0;
            let enough = sorted.iter().position(|candidate| {
                reached += mass(candidate);
                reached >= target
            });
            let expected = &sorted[..enough.map_or(length, |at| at + 1)];
            let mut kept = unsorted.clone();
            nucleus(&mut kept, mass, target);
            sort_by_likelihood(&mut kept);
            assert_eq!(kept, expected, "{length} of {kinds} kinds, {target} of {total}");
        }
    }
    let mut none = Vec::new();
    nucleus(&mut none, |_| 1, 5);
    assert_eq!(none, []);
}
