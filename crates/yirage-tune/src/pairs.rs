//! Two graphs timed in turns, so that what disturbs the machine disturbs both.

use crate::comparison::{PairHalf, PairedComparison, TimingPair};
use crate::error::TuneError;
use crate::limits::{HALF, PAIRS};
use crate::stopwatch::{Stopwatch, TimedGraphId};
use crate::timing::TimedStep;
use std::time::Duration;

/// How long each half of a pair is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairLengths {
    /// Steps of each graph that do not count.
    pub(crate) warmup: u32,
    /// Most steps of each graph in all pairs together; one a pair at least.
    pub(crate) steps: u32,
}

type DynTimedStep<'a> = &'a mut dyn TimedStep<Error = TuneError>;

/// Times both graphs, which of the two is first changing from pair to pair.
pub(crate) fn compare(
    watch: &dyn Stopwatch,
    lengths: PairLengths,
    input: DynTimedStep<'_>,
    (number, candidate): (usize, DynTimedStep<'_>),
) -> Result<PairedComparison, TuneError> {
    for _ in 0..lengths.warmup {
        input.step()?;
        candidate.step()?;
    }
    let steps = (lengths.steps as usize / PAIRS).max(1);
    let mut pairs = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        let (of_input, of_candidate);
        if pair % 2 == 0 {
            of_input = half(watch, TimedGraphId::Input, steps, input)?;
            of_candidate = half(watch, TimedGraphId::Candidate(number), steps, candidate)?;
        } else {
            of_candidate = half(watch, TimedGraphId::Candidate(number), steps, candidate)?;
            of_input = half(watch, TimedGraphId::Input, steps, input)?;
        }
        pairs.push(TimingPair { input: of_input, candidate: of_candidate });
    }
    Ok(PairedComparison::of(&pairs))
}

/// One graph's steps of a pair.
fn half(
    watch: &dyn Stopwatch,
    which: TimedGraphId,
    most: usize,
    graph: DynTimedStep<'_>,
) -> Result<PairHalf, TuneError> {
    let (mut took, mut steps) = (Duration::ZERO, Vec::new());
    while steps.len() < most && (steps.is_empty() || took < HALF) {
        let step = watch.time(which, &mut || graph.step())?;
        took += step;
        steps.push(step.as_secs_f64());
    }
    Ok(PairHalf::of(steps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    struct Nothing;
    impl TimedStep for Nothing {
        type Error = TuneError;
        fn step(&mut self) -> Result<(), TuneError> {
            Ok(())
        }
    }

    /// Says who ran; candidates take as long as the script says, inputs a second.
    struct Script(RefCell<Vec<TimedGraphId>>, f64);
    impl Stopwatch for Script {
        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
        fn time(
            &self,
            graph: TimedGraphId,
            run: &mut dyn FnMut() -> Result<(), TuneError>,
        ) -> Result<Duration, TuneError> {
            run()?;
            self.0.borrow_mut().push(graph);
            let outlier = self.0.borrow().len() == 2;
            Ok(Duration::from_secs_f64(match graph {
                TimedGraphId::Input => 1.0,
                // One disturbed step does not move the median.
                TimedGraphId::Candidate(_) if outlier => 50.0,
                TimedGraphId::Candidate(_) => self.1,
            }))
        }
    }

    #[test]
    fn graphs_take_turns_and_the_median_decides() {
        let script = Script(RefCell::default(), 0.5);
        let lengths = PairLengths { warmup: 0, steps: 1 };
        let look = compare(&script, lengths, &mut Nothing, (3, &mut Nothing)).unwrap();
        assert_eq!((look.ratio, look.input.median_ns, look.candidate.median_ns), (0.5, 1e9, 5e8));
        let ran = script.0.into_inner();
        assert_eq!(ran.len(), 2 * PAIRS);
        let (input, candidate) = (TimedGraphId::Input, TimedGraphId::Candidate(3));
        assert_eq!(ran[..6], [input, candidate, candidate, input, input, candidate]);
    }

    #[test]
    fn a_half_ends_with_its_time_or_its_steps() {
        let slow = Script(RefCell::default(), 1.0);
        compare(&slow, PairLengths { warmup: 0, steps: 1000 }, &mut Nothing, (0, &mut Nothing)).unwrap();
        assert_eq!(slow.0.borrow().len(), 2 * PAIRS, "a second is more than a half may take");
        let fast = Script(RefCell::default(), 1e-6);
        compare(&fast, PairLengths { warmup: 0, steps: 45 }, &mut Nothing, (0, &mut Nothing)).unwrap();
        let candidates = fast.0.borrow().iter().filter(|t| **t != TimedGraphId::Input).count();
        assert!(candidates > PAIRS && candidates <= 45, "{candidates}");
    }
}
