//! Choices of experts.

use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::rows::*;
use yirage_ir::op::Scoring;
use yirage_testkit::rng::Rng;

/// Multiples of 1/8 from -`size` to `size`, so that there are ties.
fn coarse(rng: &mut Rng, n: usize, size: u64) -> Vec<f32> {
    (0..n).map(|_| rng.below(16 * size) as f32 / 8.0 - size as f32).collect()
}

/// Any numbers from -`size` to `size`.
fn fine(rng: &mut Rng, n: usize, size: f32) -> Vec<f32> {
    (0..n).map(|_| rng.signed_f32() * size).collect()
}

fn levels() -> impl Iterator<Item = Isa> {
    Isa::ALL.iter().copied().filter(|i| i.available())
}

fn order(values: &[f64]) -> Vec<usize> {
    let mut all: Vec<usize> = (0..values.len()).collect();
    all.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    all
}

/// The definition, with everything sorted, in f64.
fn route_reference(r: &RouteParams<'_>, logits: &[f32]) -> (Vec<usize>, Vec<f64>) {
    let x: Vec<f64> = logits.iter().map(|&x| x.into()).collect();
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
    let score = |x: &f64| match r.scoring {
        Scoring::Softmax => (x - max).exp() / sum,
        Scoring::SoftmaxTopK => *x,
        Scoring::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    };
    let scores: Vec<f64> = x.iter().map(score).collect();
    let mut choice: Vec<f64> =
        scores.iter().enumerate().map(|(i, s)| s + r.bias.map_or(0.0, |b| f64::from(b[i]))).collect();
    if r.groups > 1 {
        let size = r.experts / r.groups;
        let two = |g: &[f64]| order(g).iter().take(2).map(|&i| g[i]).sum::<f64>();
        let values: Vec<f64> = choice.chunks(size).map(two).collect();
        for g in &order(&values)[r.top_groups..] {
            choice[g * size..][..size].fill(f64::NEG_INFINITY);
        }
    }
    let chosen = order(&choice)[..r.top_k].to_vec();
    let mut weights: Vec<f64> = chosen.iter().map(|&e| scores[e]).collect();
    if r.scoring == Scoring::SoftmaxTopK {
        weights.iter_mut().for_each(|w| *w = (*w - max).exp());
    }
    if r.normalize || r.scoring == Scoring::SoftmaxTopK {
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
    }
    weights.iter_mut().for_each(|w| *w *= f64::from(r.scale));
    (chosen, weights)
}

#[test]
fn routes_follow_the_definition() {
    let mut rng = Rng::new(1);
    for round in 0..300 {
        let (experts, groups) = [(4, 1), (8, 2), (60, 1), (128, 8), (256, 8), (33, 3), (1, 1), (6, 6)][rng.index(8)];
        let top_groups = 1 + rng.index(groups);
        let top_k = 1 + rng.index((experts / groups * top_groups).min(8));
        let scoring = [Scoring::Softmax, Scoring::SoftmaxTopK, Scoring::Sigmoid][rng.index(3)];
        // Ties only where equal logits give equal scores in both precisions.
        let logits =
            if rng.index(2) == 0 { coarse(&mut rng, 2 * experts, 3) } else { fine(&mut rng, 2 * experts, 3.0) };
        let bias = coarse(&mut rng, experts, 1);
        let bias = (rng.index(2) == 0 && groups == 1 && scoring == Scoring::SoftmaxTopK).then_some(&bias[..]);
        let scale = [1.0, 2.5][rng.index(2)];
        let normalize = rng.index(2) == 0;
        let r = RouteParams { experts, top_k, scoring, normalize, scale, bias, groups, top_groups };
        let mut first = None;
        for isa in levels() {
            let (mut weights, mut chosen) = (vec![0f32; 2 * top_k], vec![0i32; 2 * top_k]);
            let src = Src::new(logits.as_ptr(), experts);
            // SAFETY: two rows of logits.
            unsafe { route(isa, 0..2, r, src, &mut weights, &mut chosen) };
            for t in 0..2 {
                let (ids, ws) = route_reference(&r, &logits[t * experts..][..experts]);
                let got: Vec<usize> = chosen[t * top_k..][..top_k].iter().map(|&e| e as usize).collect();
                // Sums of two scores may round to a tie where exact ones differ: compare those without groups exactly.
                if groups == 1 {
                    assert_eq!(got, ids, "round {round} {isa} {r:?}");
                    for (a, b) in weights[t * top_k..][..top_k].iter().zip(ws) {
                        assert!((f64::from(*a) - b).abs() < 1e-6 * b.abs() + 1e-9, "{r:?}");
                    }
                }
                let mut distinct = got.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), top_k);
                let mut used: Vec<usize> = got.iter().map(|e| e / (experts / groups)).collect();
                used.sort_unstable();
                used.dedup();
                assert!(used.len() <= top_groups);
            }
            let all = (weights, chosen);
            assert_eq!(&all, first.get_or_insert(all.clone()), "{isa}");
        }
    }
}

#[test]
fn groups_by_their_two_best_and_bias_only_for_the_choice() {
    // Group sums of the two best: 0.5+0.5, 0.9+0.0, 0.6+0.55 with these sigmoid scores.
    let logit = |p: f64| (p / (1.0 - p)).ln() as f32;
    let logits = [0.5, 0.5, 0.9, 1e-6, 0.6, 0.55].map(logit);
    let mut r = RouteParams {
        experts: 6,
        top_k: 2,
        scoring: Scoring::Sigmoid,
        normalize: false,
        scale: 1.0,
        bias: None,
        groups: 3,
        top_groups: 1,
    };
    let run = |r: RouteParams<'_>| {
        let (mut w, mut e) = ([0f32; 2], [0i32; 2]);
        // SAFETY: one row.
        unsafe { route(Isa::detect(), 0..1, r, Src::new(logits.as_ptr(), 6), &mut w, &mut e) };
        (w, e)
    };
    assert_eq!(run(r).1, [4, 5]);
    r.top_groups = 3;
    assert_eq!(run(r).1, [2, 4]);
    let bias = [0.0, 5.0, 0.0, 0.0, 0.0, 0.0];
    r.bias = Some(&bias);
    let (w, e) = run(r);
    assert_eq!(e, [1, 2]);
    assert!((w[0] - 0.5).abs() < 1e-6, "the bias must not be in the weight: {w:?}");
}

#[test]
fn experts_of_nan_logits_are_still_distinct() {
    let logits = [f32::NAN; 5];
    let r = RouteParams {
        experts: 5,
        top_k: 3,
        scoring: Scoring::SoftmaxTopK,
        normalize: true,
        scale: 1.0,
        bias: None,
        groups: 1,
        top_groups: 1,
    };
    let (mut w, mut e) = ([0f32; 3], [0i32; 3]);
    // SAFETY: one row.
    unsafe { route(Isa::detect(), 0..1, r, Src::new(logits.as_ptr(), 5), &mut w, &mut e) };
    assert_eq!(e, [0, 1, 2]);
}
