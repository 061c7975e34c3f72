//! Times of steps, and the loop that takes them. Knows nothing of what a step is.

use std::time::{Duration, Instant};

/// Seconds of some steps, of which there is one at least.
#[derive(Clone, PartialEq, Debug)]
pub struct Timing {
    /// In ascending order.
    sorted: Vec<f64>,
}

/// What can be run again and again.
pub trait TimedStep {
    /// Why it cannot.
    type Error;
    /// Runs it to its end.
    fn step(&mut self) -> Result<(), Self::Error>;
}

/// When a loop ends.
#[derive(Clone, Copy)]
enum TimingLoopEnd {
    /// After so many steps.
    Steps(usize),
    /// With the step that reaches this time.
    Time(Duration),
}

impl Timing {
    /// Of so many steps, one at least, after one that does not count.
    ///
    /// # Errors
    /// The step's.
    pub fn of_steps<S: TimedStep>(steps: usize, of: &mut S) -> Result<Timing, S::Error> {
        repeat(TimingLoopEnd::Steps(steps), Instant::now, |from, to| to - from, of)
    }

    /// Of steps for so long, the one that does not count among them.
    ///
    /// # Errors
    /// The step's.
    pub fn for_time<S: TimedStep>(time: Duration, of: &mut S) -> Result<Timing, S::Error> {
        repeat(TimingLoopEnd::Time(time), Instant::now, |from, to| to - from, of)
    }

    /// How many steps.
    pub fn steps(&self) -> usize {
        self.sorted.len()
    }

    /// Seconds of the one in the middle; the upper of two.
    pub fn median(&self) -> f64 {
        self.sorted[self.sorted.len() / 2]
    }

    /// Seconds of the shortest.
    pub fn lowest(&self) -> f64 {
        self.sorted[0]
    }

    /// Seconds of the longest.
    pub fn highest(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }
}

/// The loop, with any clock.
fn repeat<S: TimedStep, T: Copy>(
    end: TimingLoopEnd,
    now: impl Fn() -> T,
    between: impl Fn(T, T) -> Duration,
    of: &mut S,
) -> Result<Timing, S::Error> {
    let begun = now();
    // The first step meets cold code and memory that nobody has touched.
    of.step()?;
    let mut sorted = Vec::new();
    loop {
        let before = now();
        of.step()?;
        let after = now();
        sorted.push(between(before, after).as_secs_f64());
        let over = match end {
            TimingLoopEnd::Steps(steps) => sorted.len() >= steps,
            TimingLoopEnd::Time(time) => between(begun, after) >= time,
        };
        if over {
            break;
        }
    }
    sorted.sort_by(f64::total_cmp);
    Ok(Timing { sorted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Steps that move a clock.
    struct Clocked<'a>(&'a Cell<u64>, Vec<u64>);

    impl TimedStep for Clocked<'_> {
        type Error = &'static str;
        fn step(&mut self) -> Result<(), &'static str> {
            let seconds = self.1.pop().ok_or("no more")?;
            self.0.set(self.0.get() + seconds);
            Ok(())
        }
    }

    /// Steps that take so many seconds each, the last one first.
    fn timed(end: TimingLoopEnd, seconds: &[u64]) -> Result<Timing, &'static str> {
        let clock = Cell::new(0);
        let steps = &mut Clocked(&clock, seconds.to_vec());
        repeat(end, || clock.get(), |from, to| Duration::from_secs(to - from), steps)
    }

    #[test]
    fn the_first_step_does_not_count_but_for_the_time() {
        let timing = timed(TimingLoopEnd::Steps(3), &[9, 2, 4, 3, 100]).unwrap();
        assert_eq!((timing.steps(), timing.lowest(), timing.median(), timing.highest()), (3, 2.0, 3.0, 4.0));
        let timing = timed(TimingLoopEnd::Time(Duration::from_secs(10)), &[9, 2, 4, 3, 5]).unwrap();
        assert_eq!((timing.steps(), timing.highest()), (2, 4.0), "5, 3 and 4 seconds reach ten");
    }

    #[test]
    fn one_step_counts_at_least_and_errors_end_the_loop() {
        assert_eq!(timed(TimingLoopEnd::Time(Duration::ZERO), &[7, 8]).unwrap().median(), 7.0);
        assert_eq!(timed(TimingLoopEnd::Steps(0), &[7, 8]).unwrap().steps(), 1);
        assert_eq!(timed(TimingLoopEnd::Steps(2), &[7, 8]), Err("no more"));
    }
}
