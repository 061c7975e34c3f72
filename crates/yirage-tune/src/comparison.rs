//! One look at a candidate: what the times of both graphs, taken in turns, tell, and whether the candidate won.
//!
//! This is the one place that decides. A candidate wins a look where the median over the pairs is below [`FASTER`], it was the
//! faster one in [`WINS`] pairs, and its shortest step is shorter than the input's: what else runs on the machine moves
//! medians and not the shortest steps. It is taken where it has won two looks.

use crate::limits::{CALM, DISTURBED, FASTER, WINS};
use std::fmt;

/// Seconds a step of one graph in one half of a pair.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PairHalf {
    median: f64,
    mean: f64,
    lowest: f64,
}

impl PairHalf {
    /// That of some steps, of which there is one at least.
    pub(crate) fn of(mut steps: Vec<f64>) -> PairHalf {
        let mean = steps.iter().sum::<f64>() / steps.len() as f64;
        steps.sort_by(f64::total_cmp);
        PairHalf { median: steps[steps.len() / 2], mean, lowest: steps[0] }
    }
}

/// Both graphs, one right after the other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TimingPair {
    pub(crate) input: PairHalf,
    pub(crate) candidate: PairHalf,
}

/// Times of one graph in a look, in nanoseconds a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Times {
    /// The median over the pairs.
    pub median_ns: f64,
    /// The shortest step of all.
    pub lowest_ns: f64,
}

/// What a look at a candidate beside the input has told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PairedComparison {
    /// Pairs that were timed.
    pub pairs: u32,
    /// Pairs in which the candidate was the faster one.
    pub wins: u32,
    /// Halves of pairs in which something else was at work, of twice as many halves as pairs.
    pub disturbed: u32,
    /// The median over the pairs of the candidate's time divided by the input's.
    pub ratio: f64,
    /// Times of the input.
    pub input: Times,
    /// Times of the candidate.
    pub candidate: Times,
}

impl PairedComparison {
    /// What pairs have told, of which there is one at least.
    pub(crate) fn of(pairs: &[TimingPair]) -> PairedComparison {
        let ratios: Vec<f64> = pairs.iter().map(|pair| pair.candidate.median / pair.input.median).collect();
        let inputs: Vec<PairHalf> = pairs.iter().map(|pair| pair.input).collect();
        let candidates: Vec<PairHalf> = pairs.iter().map(|pair| pair.candidate).collect();
        PairedComparison {
            pairs: pairs.len() as u32,
            wins: ratios.iter().filter(|ratio| **ratio < 1.0).count() as u32,
            disturbed: disturbed(&inputs) + disturbed(&candidates),
            ratio: median(ratios),
            input: times(&inputs),
            candidate: times(&candidates),
        }
    }

    /// Why the candidate has not won; none where it has.
    pub fn lost(&self) -> Option<String> {
        // What is not a number is not below.
        let below = |a: f64, b: f64| a < b;
        if !below(self.ratio, FASTER) {
            return Some(format!(
                "the median of its time by the input's is {:.3}, below {FASTER} is wanted",
                self.ratio
            ));
        }
        if self.wins < WINS {
            return Some(format!("it was the faster one in {} of {} pairs, {WINS} are wanted", self.wins, self.pairs));
        }
        let (own, input) = (self.candidate.lowest_ns, self.input.lowest_ns);
        (!below(own, input)).then(|| format!("its shortest step took {own:.0} ns, the input's {input:.0} ns"))
    }

    /// Whether so much was disturbed that another process may see other times.
    pub fn is_disturbed(&self) -> bool {
        f64::from(self.disturbed) > DISTURBED * f64::from(2 * self.pairs)
    }
}

impl fmt::Display for PairedComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PairedComparison { pairs, wins, disturbed, ratio, input, candidate } = self;
        let (own, its) = (candidate.median_ns, input.median_ns);
        let (shortest, its_shortest) = (candidate.lowest_ns, input.lowest_ns);
        write!(f, "{own:.0} ns, the input {its:.0} ns, ratio {ratio:.3}, the faster one in {wins} of {pairs} pairs, ")?;
        write!(f, "shortest steps {shortest:.0} and {its_shortest:.0} ns")?;
        if self.is_disturbed() {
            write!(f, ", disturbed in {disturbed} of {} halves", 2 * pairs)?;
        }
        Ok(())
    }
}

fn times(halves: &[PairHalf]) -> Times {
    let lowest = halves.iter().map(|half| half.lowest).fold(f64::INFINITY, f64::min);
    Times { median_ns: median(halves.iter().map(|half| half.median).collect()) * 1e9, lowest_ns: lowest * 1e9 }
}

/// Halves of one graph that were held up: some of their steps much longer than most, or all of them much longer than those
/// of its fastest half.
fn disturbed(halves: &[PairHalf]) -> u32 {
    let fastest = halves.iter().map(|half| half.median).fold(f64::INFINITY, f64::min);
    let held_up = |half: &&PairHalf| half.mean > CALM * half.median || half.median > CALM * fastest;
    halves.iter().filter(held_up).count() as u32
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PAIRS;

    /// A half of steps that all took as long.
    fn steady(seconds: f64) -> PairHalf {
        PairHalf::of(vec![seconds; 10])
    }

    /// A look with the times of each pair's input and candidate.
    fn look(pair: impl Fn(usize) -> (PairHalf, PairHalf)) -> PairedComparison {
        let pairs: Vec<TimingPair> =
            (0..PAIRS).map(pair).map(|(input, candidate)| TimingPair { input, candidate }).collect();
        PairedComparison::of(&pairs)
    }

    #[test]
    fn what_is_faster_by_all_three_measures_wins() {
        let look = look(|_| (steady(10e-6), steady(8e-6)));
        assert_eq!((look.lost(), look.is_disturbed()), (None, false));
        assert_eq!((look.pairs, look.wins, look.disturbed), (PAIRS as u32, PAIRS as u32, 0));
        assert!((look.ratio - 0.8).abs() < 1e-9 && (look.candidate.median_ns - 8000.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_faster_by_less_than_noise_loses() {
        for seconds in [9.8e-6, 10e-6, 12e-6, f64::INFINITY, f64::NAN] {
            let lost = look(|_| (steady(10e-6), steady(seconds))).lost();
            assert!(lost.as_ref().is_some_and(|why| why.contains("median")), "{seconds}: {lost:?}");
        }
    }

    #[test]
    fn a_median_alone_does_not_win() {
        // 9 of 15 pairs, in which the input was held up.
        let look = look(|at| (steady(if at < 9 { 20e-6 } else { 10e-6 }), steady(11e-6)));
        assert!(look.ratio < 0.6);
        assert!(look.lost().is_some_and(|why| why.contains("9 of 15 pairs")), "{look:?}");
        assert!(look.is_disturbed());
    }

    #[test]
    fn a_shortest_step_that_is_longer_than_the_inputs_loses_whatever_the_medians_are() {
        // The input was held up in each pair, and ran freely for one step in one of them.
        let held_up = |at| PairHalf::of(if at == 3 { vec![20e-6, 20e-6, 10e-6] } else { vec![20e-6; 3] });
        let look = look(|at| (held_up(at), steady(11e-6)));
        assert_eq!(look.wins, PAIRS as u32);
        assert!(look.lost().is_some_and(|why| why.contains("shortest step took 11000 ns, the input's 10000 ns")));
    }

    #[test]
    fn halves_that_were_held_up_are_counted() {
        // Some steps wait for their turn on the processor; the others take what they always take.
        let waits = PairHalf::of([vec![10e-6; 9], vec![4e-3]].concat());
        assert!(look(|_| (waits, steady(8e-6))).is_disturbed());
        let once = look(|at| (if at == 0 { waits } else { steady(10e-6) }, steady(8e-6)));
        assert_eq!((once.disturbed, once.is_disturbed(), once.lost()), (1, false, None));
        // Whole halves are slower than others.
        let wavering = look(|at| (steady(10e-6), steady(if at % 2 == 0 { 4e-6 } else { 8e-6 })));
        assert!(wavering.is_disturbed() && wavering.to_string().contains("disturbed in 7 of 30 halves"), "{wavering}");
    }
}
