//! The controller against synthetic machines and texts: it never loses, and wins most of what there is to win.

use super::acceptance::{Acceptance, DraftSource};
use super::controller::{DecodeStepMeasurement, DraftLengthController, DraftProposal};
use std::collections::BTreeSet;
use yirage_ir::rng::Rng;

/// A machine and a text.
struct World<'a> {
    /// Seconds of a step by its rows and how many tokens there are already.
    step: &'a dyn Fn(u32, usize) -> f64,
    /// Seconds of a draft model's token; none is a lookup.
    draft: Option<f64>,
    /// The chance that a guessed token is right, by how many tokens there are already.
    right: &'a dyn Fn(usize) -> f64,
    /// Relative disturbance of times.
    noise: f64,
}

const MOST: usize = 15;

/// Seconds more that the first step of each plan takes, of which there is one for each power of two.
const COLD: f64 = 1.0;

/// Drafts of each sequence, where there is one way to guess.
fn decided(controller: &DraftLengthController, seqs: u32, wishes: &[DraftProposal]) -> Vec<usize> {
    controller.decide(seqs, &[wishes.to_vec()]).map_or(vec![0; wishes.len()], |(_, lengths)| lengths)
}

/// Seconds for `tokens` tokens of each of `seqs` sequences with drafts of `length`, or of the controller's choice.
fn seconds(world: &World<'_>, seqs: usize, tokens: usize, length: Option<usize>, seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let (mut controller, mut warm) =
        (DraftLengthController::new(world.draft.unwrap_or(0.0)), BTreeSet::from([seqs.next_power_of_two()]));
    let (mut all, mut own) = (Acceptance::default(), vec![Acceptance::default(); seqs]);
    let mut done = vec![0; seqs];
    let mut clock = 0.0;
    while done.iter().sum::<usize>() < seqs * tokens {
        let now = done.iter().sum::<usize>() / seqs;
        let kind = if world.draft.is_some() { DraftSource::MODEL } else { DraftSource::copied(5) };
        let wish = |own: &Acceptance| {
            let chances = vec![own.rate(&all, kind); MOST];
            DraftProposal { chances, model: world.draft.is_some(), backlog: 0.0 }
        };
        let wishes: Vec<DraftProposal> = own.iter().map(wish).collect();
        let lengths = length.map_or_else(|| decided(&controller, seqs as u32, &wishes), |length| vec![length; seqs]);
        let (mut rows, mut given) = (seqs, 0);
        for (s, &length) in lengths.iter().enumerate() {
            let chance = |at: usize| (world.right)(done[s] + at);
            let run = (0..length).take_while(|&at| rng.unit_f64() < chance(at)).count();
            // Of a lookup's guess the first wrong token is seen too, and without drafts its first.
            let seen = if world.draft.is_some() { length } else { length + 1 };
            for at in 0..seen.min(run + 1) {
                let right = if at < length { at < run } else { rng.unit_f64() < chance(at) };
                own[s].observe(&mut all, kind, right);
            }
            rows += length;
            given += 1 + run;
            done[s] += 1 + run;
        }
        let disturbed = 1.0 + world.noise * (rng.unit_f64() + if rng.unit_f64() < 0.01 { 8.0 } else { 0.0 });
        let cold = if warm.insert(rows.next_power_of_two()) { COLD } else { 0.0 };
        let took = (world.step)(rows as u32, now) * disturbed + cold;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let model_seconds = world.draft.unwrap_or(0.0) * longest as f64;
        let model_drafts = if world.draft.is_some() { longest as u32 } else { 0 };
        clock += took + model_seconds;
        let (seqs, rows, tokens) = (seqs as u32, rows as u32, given as u32);
        controller.ran(DecodeStepMeasurement { seqs, rows, tokens, seconds: took, model_drafts, model_seconds });
    }
    clock
}

/// Speed against plain steps, and the best of all fixed lengths.
fn gains(world: &World<'_>, seqs: usize, tokens: usize) -> (f64, f64) {
    let mean = |length| (0..5).map(|seed| seconds(world, seqs, tokens, length, seed)).sum::<f64>() / 5.0;
    let plain = mean(Some(0));
    let fixed = (0..=MOST).map(|length| plain / mean(Some(length)));
    (plain / mean(None), fixed.fold(0.0, f64::max))
}

fn bound_by_memory(rows: u32, _: usize) -> f64 {
    1.0 + 0.03 * f64::from(rows - 1)
}

fn bound_by_arithmetic(rows: u32, _: usize) -> f64 {
    f64::from(rows)
}

/// Tiles of 1, 2, 4, 8 and 16 tokens.
fn staircase(rows: u32, _: usize) -> f64 {
    let tile = |tokens: u32| 0.75 + 0.2 * f64::from(tokens);
    let mut left = rows;
    let mut seconds = 0.05;
    while left > 0 {
        let tokens = 1 << left.ilog2().min(4);
        seconds += tile(tokens) - if left == rows { 0.0 } else { 0.4 };
        left -= tokens;
    }
    seconds
}

/// Becomes three times dearer per row when a neighbour comes.
fn neighbour(rows: u32, now: usize) -> f64 {
    1.0 + f64::from(rows - 1) * if now > 300 { 0.6 } else { 0.05 }
}

const MACHINES: [fn(u32, usize) -> f64; 4] = [bound_by_memory, bound_by_arithmetic, staircase, neighbour];

#[test]
fn guessing_never_loses_more_than_three_percent() {
    let mut worst = (f64::MAX, String::new());
    for (machine, step) in MACHINES.iter().enumerate() {
        for draft in [None, Some(0.05), Some(0.4)] {
            for chance in [0.0, 0.2, 0.6, 0.9, 1.0] {
                for (noise, seqs) in [(0.1, 1), (0.1, 4)] {
                    let world = World { step, draft, right: &|_| chance, noise };
                    for tokens in [128, 600] {
                        let plain: f64 = (0..8).map(|seed| seconds(&world, seqs, tokens, Some(0), seed)).sum();
                        let ours: f64 = (0..8).map(|seed| seconds(&world, seqs, tokens, None, seed)).sum();
                        let how = format!(
                            "machine {machine}, draft {draft:?}, chance {chance}, noise {noise}, {seqs} sequences, {tokens} tokens"
                        );
                        worst = if plain / ours < worst.0 { (plain / ours, how) } else { worst };
                    }
                }
            }
        }
    }
    eprintln!("worst: {worst:?}");
    assert!(worst.0 >= 0.97, "{worst:?}");
}

#[test]
fn most_of_what_can_be_won_is_won() {
    for (step, draft, chance, share) in [
        (bound_by_memory as fn(u32, usize) -> f64, None, 0.9, 0.85),
        (bound_by_memory, None, 0.6, 0.85),
        (bound_by_memory, Some(0.1), 0.8, 0.85),
        (bound_by_memory, Some(0.4), 0.9, 0.85),
        (staircase, None, 0.95, 0.85),
        (bound_by_arithmetic, None, 0.95, 0.97),
    ] {
        for seqs in [1, 3] {
            let (gain, best) = gains(&World { step: &step, draft, right: &|_| chance, noise: 0.05 }, seqs, 500);
            eprintln!("chance {chance}, draft {draft:?}, {seqs} sequences: {gain:.2} of {best:.2}");
            assert!(gain >= share * best, "chance {chance}, draft {draft:?}: {gain:.2} of {best:.2}");
        }
    }
}

/// Copies and new text take turns.
#[test]
fn it_follows_a_text_that_changes() {
    let right = |now: usize| if (now / 150).is_multiple_of(2) { 0.97 } else { 0.02 };
    let world = World { step: &bound_by_memory, draft: None, right: &right, noise: 0.05 };
    let (gain, best) = gains(&world, 1, 900);
    eprintln!("{gain:.2}, best fixed length {best:.2}");
    assert!(gain > 1.5 && gain > 0.9 * best, "{gain:.2} of {best:.2}");
    let losing = World { step: &bound_by_arithmetic, ..world };
    assert!(gains(&losing, 1, 900).0 >= 0.97);
}

#[test]
fn without_measurements_or_guesses_there_are_no_drafts() {
    let mut controller = DraftLengthController::new(0.25);
    let wish = DraftProposal { chances: vec![1.0; 8], model: false, backlog: 0.0 };
    assert_eq!(decided(&controller, 1, std::slice::from_ref(&wish)), [0]);
    assert_eq!(decided(&controller, 1, &[]), [0; 0]);
    let plain =
        DecodeStepMeasurement { seqs: 1, rows: 1, tokens: 1, seconds: 1.0, model_drafts: 0, model_seconds: 0.0 };
    controller.ran(plain);
    assert_eq!(decided(&controller, 1, std::slice::from_ref(&wish)), [0], "one measurement may be any");
    controller.ran(plain);
    assert_eq!(decided(&controller, 1, std::slice::from_ref(&wish)), [1], "sizes are tried in doublings");
    controller.ran(DecodeStepMeasurement { rows: 2, tokens: 2, seconds: 9.0, ..plain });
    assert_eq!(decided(&controller, 1, std::slice::from_ref(&wish)), [1], "the first of a size says nothing of it");
    controller.ran(DecodeStepMeasurement { rows: 2, tokens: 2, seconds: 1.05, ..plain });
    assert_eq!(decided(&controller, 1, std::slice::from_ref(&wish)), [3]);
    let none = DraftProposal { chances: Vec::new(), ..wish.clone() };
    assert_eq!(decided(&controller, 1, &[none]), [0]);
    let useless = DraftProposal { chances: vec![0.01; 8], ..wish };
    assert_eq!(decided(&controller, 1, &[useless]), [0]);
}

#[test]
fn the_worthiest_drafts_of_all_sequences_are_taken() {
    let mut controller = DraftLengthController::new(0.25);
    for rows in [2, 2, 3, 3, 4, 4, 6, 6, 8, 8, 16, 16] {
        let seconds = if rows <= 6 { 1.0 } else { 9.0 };
        controller.ran(DecodeStepMeasurement {
            seqs: 2,
            rows,
            tokens: 8 * rows,
            seconds,
            model_drafts: 0,
            model_seconds: 0.0,
        });
    }
    let wish = |chance| DraftProposal { chances: vec![chance; 8], model: false, backlog: 0.0 };
    assert_eq!(decided(&controller, 2, &[wish(0.7), wish(0.9)]), [1, 3]);
    assert_eq!(controller.decide_beside_prompts(&[wish(0.5), wish(0.9), wish(1.0)]), [0, 6, 8]);
}

/// A copy with edits: long guesses look good, are wrong, and overdraw the account. Short ones go on while they are
/// likely right, and only then.
#[test]
fn long_guesses_that_were_wrong_do_not_end_short_ones() {
    let mut controller = DraftLengthController::new(0.0);
    let plain =
        DecodeStepMeasurement { seqs: 1, rows: 1, tokens: 1, seconds: 1.0, model_drafts: 0, model_seconds: 0.0 };
    for (rows, seconds) in [(1, 1.0), (2, 1.2), (4, 1.7), (8, 2.7), (16, 5.2)] {
        controller.ran(DecodeStepMeasurement { rows, tokens: rows, seconds, ..plain });
        controller.ran(DecodeStepMeasurement { rows, tokens: rows, seconds, ..plain });
    }
    let wish = |chance| DraftProposal { chances: vec![chance; 15], model: false, backlog: 0.0 };
    assert_eq!(decided(&controller, 1, &[wish(1.0)]), [15]);
    for _ in 0..4 {
        controller.ran(DecodeStepMeasurement { rows: 16, tokens: 1, seconds: 5.2, ..plain });
    }
    let [short] = decided(&controller, 1, &[wish(0.9)])[..] else { panic!("one sequence") };
    assert!((1..8).contains(&short), "{short}");
    assert_eq!(decided(&controller, 1, &[wish(0.4)]), [0], "half of 0.4 is less than the 0.2 that a row costs");
}

/// Three rows cost as much as two and one, where kernels take tokens in tiles: more are tried nevertheless while guessing
/// wins, if the account can pay.
#[test]
fn a_flat_behind_a_rise_is_looked_for() {
    let mut controller = DraftLengthController::new(0.0);
    let plain =
        DecodeStepMeasurement { seqs: 1, rows: 1, tokens: 1, seconds: 1.0, model_drafts: 0, model_seconds: 0.0 };
    for (rows, seconds) in [(1, 1.0), (2, 1.3), (3, 2.2)] {
        controller.ran(DecodeStepMeasurement { rows, tokens: rows, seconds, ..plain });
        controller.ran(DecodeStepMeasurement { rows, tokens: rows, seconds, ..plain });
    }
    let sure = DraftProposal { chances: vec![0.98; 15], model: false, backlog: 0.0 };
    assert_eq!(decided(&controller, 1, std::slice::from_ref(&sure)), [5]);
    controller.ran(DecodeStepMeasurement { rows: 2, tokens: 1, seconds: 3.0, ..plain });
    assert_eq!(decided(&controller, 1, &[sure]), [1], "the account can no longer pay for a trial");
}

/// A draft model costs time, a lookup none: where both are likely right the lookup is taken, and what the draft model lost
/// does not keep it from that.
#[test]
fn the_cheaper_of_two_ways_is_taken() {
    let mut controller = DraftLengthController::new(0.4);
    let plain =
        DecodeStepMeasurement { seqs: 1, rows: 1, tokens: 1, seconds: 1.0, model_drafts: 0, model_seconds: 0.0 };
    for ran in [plain, DecodeStepMeasurement { rows: 2, seconds: 1.1, ..plain }] {
        controller.ran(ran);
        controller.ran(ran);
    }
    let ways = [false, true]
        .map(|model| vec![DraftProposal { chances: vec![if model { 0.95 } else { 0.9 }; 2], model, backlog: 0.0 }]);
    assert_eq!(controller.decide(1, &ways), Some((0, vec![2])));
    let unsure = vec![DraftProposal { chances: vec![0.1; 2], ..ways[0][0].clone() }];
    let (way, _) = controller.decide(1, &[unsure, ways[1].clone()]).expect("the draft model is likely right");
    assert_eq!(way, 1);
    for _ in 0..4 {
        controller.ran(DecodeStepMeasurement { rows: 2, seconds: 1.1, model_drafts: 1, model_seconds: 3.0, ..plain });
    }
    assert_eq!(controller.decide(1, &ways), Some((0, vec![2])));
    assert_eq!(controller.decide(1, &ways[1..]), None);
}
