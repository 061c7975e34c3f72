//! How products are cut: each panel meets each token once, whatever the sizes.

use yirage_cpu_kernels::activation::TOKEN_TILE;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::work_items::{Panels, cut, even, parts, passes, total};
use yirage_cpu_kernels::linear::{MatmulSchedule, MatmulVariant};

/// Each panel is in one piece, and even parts join without a gap, whatever the sizes.
#[test]
fn every_panel_is_in_one_piece_and_one_even_part() {
    let sizes = [(1, 100_000), (3, 7), (17, 50_000), (0, 9), (40, 64), (2374, 13_056)];
    let matrices = sizes.map(|(count, bytes)| Panels { count, bytes });
    for (share, tokens) in [(MatmulSchedule::Dynamic, 1), (MatmulSchedule::Static, 1), (MatmulSchedule::Static, 33)] {
        let variant = MatmulVariant { share, ..MatmulVariant::of_level(Isa::Scalar) };
        for (workers, some) in (1..=9).flat_map(|w| (0..=matrices.len()).map(move |n| (w, n))) {
            let cut = cut(matrices[..some].iter().copied(), &variant, tokens, workers);
            let all = total(cut.clone());
            let mut seen: Vec<Vec<bool>> = matrices[..some].iter().map(|m| vec![false; m.count]).collect();
            let mut next = 0;
            for worker in 0..workers {
                let pieces = even(cut.clone(), worker, workers);
                assert_eq!(pieces.start, next, "worker {worker} of {workers}");
                next = pieces.end;
                for part in pieces.flat_map(|piece| parts(cut.clone(), piece..piece + 1)) {
                    part.panels.for_each(|p| assert!(!std::mem::replace(&mut seen[part.matrix][p], true)));
                }
            }
            assert_eq!(next, all);
            assert!(seen.iter().flatten().all(|s| *s), "{share:?} {tokens} {workers} {some}");
        }
    }
}
/// However the pieces of many tokens are taken, each panel meets each token once, and a part takes whole tiles.
#[test]
fn every_panel_meets_every_token_once() {
    let sizes = [(3, 7), (17, 50_000), (0, 9), (24, 56_000), (5, 1 << 20)];
    let matrices = sizes.map(|(count, bytes)| Panels { count, bytes });
    let variant = MatmulVariant::of_level(Isa::Scalar);
    for (tokens, step) in [17, 64, 127, 128, 200, 512].into_iter().flat_map(|t| [1, 3, 7, 10, 1000].map(|s| (t, s))) {
        let cut = cut(matrices.iter().copied(), &variant, tokens, 2);
        let mut seen: Vec<Vec<usize>> = matrices.iter().map(|m| vec![0; m.count * tokens]).collect();
        for from in (0..total(cut.clone())).step_by(step) {
            for part in parts(cut.clone(), from..(from + step).min(total(cut.clone()))) {
                assert!(part.tokens.start.is_multiple_of(TOKEN_TILE), "{part:?}");
                assert!(part.tokens.end == tokens || part.tokens.end.is_multiple_of(TOKEN_TILE), "{part:?}");
                for panel in part.panels {
                    part.tokens.clone().for_each(|t| seen[part.matrix][panel * tokens + t] += 1);
                }
            }
        }
        assert!(seen.iter().flatten().all(|times| *times == 1), "{tokens} tokens, {step} at once");
    }
}

#[test]
fn every_token_of_a_tile_is_in_one_pass() {
    let counts = |from, step, tokens| -> Vec<usize> {
        let mut next = 0;
        let counts = passes(tokens, from, step).map(|part| {
            assert_eq!(part.start, next);
            next = part.end;
            part.len()
        });
        counts.collect()
    };
    for tokens in 0..=16 {
        for (from, step) in [(1, 1), (5, 1), (8, 1), (4, 4), (8, 8)] {
            assert_eq!(counts(from, step, tokens).iter().sum::<usize>(), tokens);
        }
    }
    assert_eq!((counts(5, 1, 7), counts(5, 1, 3)), (vec![7], vec![2, 1]));
    assert_eq!((counts(8, 1, 7), counts(8, 1, 13)), (vec![4, 2, 1], vec![13]));
    assert_eq!((counts(4, 4, 15), counts(8, 8, 15)), (vec![12, 2, 1], vec![8, 4, 2, 1]));
}
