//! Which executor runs a plan: the one asked for, or the one that measurement chooses.
//!
//! Every executor gives the same bytes, so the first steps of real work are the measurement: two executors take turns,
//! pairs of neighbouring steps of equal size are compared, and the median of the ratios decides. Of three the faster of the
//! first two meets the third. A pure value: it has no clock and is told what steps took.

use std::fmt;
use std::time::Duration;
use yirage_ir::Dims;
use yirage_plan::ExecutorKind;

/// Pairs of steps that are compared.
const PAIRS: usize = 15;
/// Steps of the same sizes before the first that counts: caches and branch predictors are cold.
const WARM_UP: usize = 2;

/// How a plan's executor came to be the one it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SelectionReason {
    /// The device has only this one.
    Only,
    /// It is the first that the device names, and nothing is measured: there is one worker, and no clock of the device.
    Preferred,
    /// It was asked for.
    Forced,
    /// Two take turns: this many of the pairs wanted are measured.
    Measuring {
        /// Pairs so far.
        pairs: usize,
        /// Pairs that decide.
        of: usize,
    },
    /// Measured: the median of its time over the other's.
    Measured {
        /// Below 1: it is faster.
        ratio: f64,
        /// Pairs of steps.
        pairs: usize,
    },
}

impl SelectionReason {
    /// Before any step ran, for a plan with so many executors and workers, on a device with a clock of its own or without.
    pub fn at_first(executors: usize, workers: usize, device_times: bool) -> SelectionReason {
        match executors {
            0 | 1 => SelectionReason::Only,
            _ if workers < 2 && !device_times => SelectionReason::Preferred,
            _ => SelectionReason::Measuring { pairs: 0, of: PAIRS * (executors - 1) },
        }
    }
}

impl fmt::Display for SelectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectionReason::Only => f.write_str("the device has no other"),
            SelectionReason::Preferred => f.write_str(
                "the device names it first, and nothing is measured: one worker, and no clock of the device",
            ),
            SelectionReason::Forced => f.write_str("it was asked for"),
            SelectionReason::Measuring { pairs, of } => {
                write!(f, "undecided: two take turns, {pairs} of {of} pairs of steps are measured")
            }
            SelectionReason::Measured { ratio, pairs } => {
                write!(f, "measured: {ratio:.3} of the next one's time, the median of {pairs} pairs of steps")
            }
        }
    }
}

/// Chooses between a plan's executors.
pub(crate) struct ExecutorSelector {
    kinds: Vec<ExecutorKind>,
    why: SelectionReason,
    /// The one to use, or the one of this turn.
    current: ExecutorKind,
    /// The fastest so far.
    fastest: ExecutorKind,
    /// Which of the kinds it is compared with.
    other: usize,
    /// Its time over that of the fastest of those that it has met.
    lead: f64,
    /// The last step of the fastest: its sizes and time.
    first: Option<(Dims, Duration)>,
    warm: usize,
    ratios: Vec<f64>,
}

impl ExecutorSelector {
    /// Between the executors of the device that the plan was made for. The first is preferred where there is no difference.
    pub(crate) fn new(kinds: Vec<ExecutorKind>, workers: usize, device_times: bool) -> ExecutorSelector {
        let now = kinds.first().copied().unwrap_or(ExecutorKind::Steps);
        let why = SelectionReason::at_first(kinds.len(), workers, device_times);
        let (first, warm, ratios) = (None, WARM_UP, Vec::new());
        ExecutorSelector { kinds, why, current: now, fastest: now, other: 1, lead: 0.0, first, warm, ratios }
    }

    /// Goes on without an executor that cannot run this plan. False where there is no other, or it was asked for.
    pub(crate) fn leave_out(&mut self, kind: ExecutorKind) -> bool {
        let at = self.kinds.iter().position(|&known| known == kind);
        let Some(at) = at.filter(|_| self.kinds.len() > 1 && self.why != SelectionReason::Forced) else { return false };
        self.kinds.remove(at);
        if at < self.other {
            // What was compared was compared with it.
            (self.fastest, self.other, self.lead) = (self.kinds[0], 1, 0.0);
        }
        self.begin_comparison();
        true
    }

    /// Compares the fastest with the next; where there is none, it is chosen.
    fn begin_comparison(&mut self) {
        (self.first, self.warm, self.current) = (None, WARM_UP, self.fastest);
        self.ratios.clear();
        if let SelectionReason::Measuring { .. } = self.why {
            self.why = match self.kinds.len() {
                1 => SelectionReason::Only,
                all if self.other == all => SelectionReason::Measured { ratio: self.lead, pairs: PAIRS },
                all => SelectionReason::Measuring { pairs: PAIRS * (self.other - 1), of: PAIRS * (all - 1) },
            };
        }
    }

    /// Always this one. False if the plan has no program for it.
    pub(crate) fn force(&mut self, kind: ExecutorKind) -> bool {
        let there = self.kinds.contains(&kind);
        if there {
            (self.current, self.why) = (kind, SelectionReason::Forced);
        }
        there
    }

    /// The executors there are.
    pub(crate) fn kinds(&self) -> &[ExecutorKind] {
        &self.kinds
    }

    /// The executor of the next step.
    pub(crate) fn current(&self) -> ExecutorKind {
        self.current
    }

    /// Why it is that one.
    pub(crate) fn why(&self) -> SelectionReason {
        self.why
    }

    /// A step that this executor ran had these sizes and took this long. Where several steps are in flight, the times of an
    /// executor may follow each other: the last one before the other's is compared.
    pub(crate) fn record_time(&mut self, kind: ExecutorKind, dims: &Dims, time: Duration) {
        let (SelectionReason::Measuring { pairs, of }, Some(&other)) = (self.why, self.kinds.get(self.other)) else {
            return;
        };
        if kind == self.fastest {
            (self.first, self.current) = (Some((*dims, time)), other);
            return;
        }
        if kind != other {
            return;
        }
        self.current = self.fastest;
        // The cache grows from step to step; what products and row-wise ops do must be the same.
        let alike = |d: &Dims| (d.tokens, d.seqs, d.rows) == (dims.tokens, dims.seqs, dims.rows);
        let Some((_, before)) = self.first.take().filter(|(d, _)| alike(d)) else { return };
        if self.warm > 0 {
            self.warm -= 1;
            return;
        }
        self.ratios.push(time.as_secs_f64() / before.as_secs_f64().max(1e-9));
        self.why = SelectionReason::Measuring { pairs: pairs + 1, of };
        if self.ratios.len() == PAIRS {
            self.ratios.sort_by(f64::total_cmp);
            let ratio = self.ratios[PAIRS / 2];
            if ratio < 1.0 {
                (self.fastest, self.lead) = (other, ratio);
            } else {
                self.lead = self.lead.max(1.0 / ratio);
            }
            self.other += 1;
            self.begin_comparison();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [ExecutorKind; 2] = [ExecutorKind::Steps, ExecutorKind::Persistent];

    fn dims(tokens: u32) -> Dims {
        Dims { tokens, seqs: 1, blocks: 1, rows: 1 }
    }

    /// Steps until a decision, when the executors take this long.
    fn decide(steps: u64, persistent: u64) -> (ExecutorSelector, usize) {
        let mut choice = ExecutorSelector::new(BOTH.to_vec(), 2, false);
        let mut n = 0;
        while matches!(choice.why(), SelectionReason::Measuring { .. }) {
            let us = if choice.current() == ExecutorKind::Steps { steps } else { persistent };
            choice.record_time(choice.current(), &dims(1), Duration::from_micros(us));
            n += 1;
        }
        (choice, n)
    }

    #[test]
    fn the_faster_one_is_chosen() {
        let (choice, n) = decide(100, 80);
        assert_eq!(choice.current(), ExecutorKind::Persistent);
        assert_eq!(choice.why(), SelectionReason::Measured { ratio: 0.8, pairs: PAIRS });
        assert_eq!(n, 2 * (PAIRS + WARM_UP));
        assert_eq!(decide(80, 100).0.current(), ExecutorKind::Steps);
        assert_eq!(decide(100, 100).0.current(), ExecutorKind::Steps);
    }

    #[test]
    fn steps_of_different_sizes_are_not_compared() {
        let mut choice = ExecutorSelector::new(BOTH.to_vec(), 2, false);
        for i in 0..100 {
            choice.record_time(choice.current(), &dims(1 + i % 2), Duration::from_micros(10));
        }
        assert_eq!(choice.why(), SelectionReason::Measuring { pairs: 0, of: PAIRS });
    }

    #[test]
    fn nothing_is_measured_where_there_is_no_choice() {
        let mut one = ExecutorSelector::new(BOTH.to_vec(), 1, false);
        assert_eq!(one.why(), SelectionReason::Preferred);
        assert_eq!(ExecutorSelector::new(BOTH[..1].to_vec(), 8, true).why(), SelectionReason::Only);
        assert!(one.force(ExecutorKind::Persistent));
        assert_eq!((one.current(), one.why()), (ExecutorKind::Persistent, SelectionReason::Forced));
        assert!(!one.force(ExecutorKind::Replay));
        one.record_time(ExecutorKind::Persistent, &dims(1), Duration::from_micros(1));
        assert_eq!(one.current(), ExecutorKind::Persistent);
    }

    #[test]
    fn steps_in_flight_are_compared_by_the_devices_clock() {
        let kinds = vec![ExecutorKind::Replay, ExecutorKind::Steps];
        let mut choice = ExecutorSelector::new(kinds.clone(), 1, true);
        let mut flights = Vec::new();
        for _ in 0..200 {
            flights.push(choice.current());
            if flights.len() < 3 {
                continue;
            }
            let ended = flights.remove(0);
            choice.record_time(ended, &dims(1), Duration::from_micros(if ended == kinds[0] { 50 } else { 100 }));
        }
        assert_eq!(
            (choice.current(), choice.why()),
            (kinds[0], SelectionReason::Measured { ratio: 0.5, pairs: PAIRS })
        );
    }

    /// Of three executors that take so long, the one that is chosen, and why.
    fn of_three(times: [u64; 3]) -> (ExecutorKind, SelectionReason) {
        let kinds = [ExecutorKind::Replay, ExecutorKind::Steps, ExecutorKind::Persistent];
        let mut choice = ExecutorSelector::new(kinds.to_vec(), 1, true);
        for _ in 0..4 * (PAIRS + WARM_UP) {
            let at = kinds.iter().position(|&kind| kind == choice.current()).unwrap();
            choice.record_time(kinds[at], &dims(1), Duration::from_micros(times[at]));
        }
        (choice.current(), choice.why())
    }

    #[test]
    fn the_fastest_of_three_is_chosen() {
        let measured = |ratio| SelectionReason::Measured { ratio, pairs: PAIRS };
        assert_eq!(of_three([50, 100, 40]), (ExecutorKind::Persistent, measured(0.8)));
        assert_eq!(of_three([50, 100, 200]), (ExecutorKind::Replay, measured(0.5)));
        assert_eq!(of_three([100, 50, 80]), (ExecutorKind::Steps, measured(0.625)));
    }

    #[test]
    fn one_that_cannot_run_a_plan_is_left_out() {
        let kinds = vec![ExecutorKind::Replay, ExecutorKind::Steps, ExecutorKind::Persistent];
        let mut choice = ExecutorSelector::new(kinds.clone(), 1, true);
        while choice.current() != ExecutorKind::Persistent {
            let us = if choice.current() == ExecutorKind::Replay { 50 } else { 100 };
            choice.record_time(choice.current(), &dims(1), Duration::from_micros(us));
        }
        assert!(choice.leave_out(ExecutorKind::Persistent) && !choice.leave_out(ExecutorKind::Persistent));
        let decided = (ExecutorKind::Replay, SelectionReason::Measured { ratio: 0.5, pairs: PAIRS });
        assert_eq!((choice.current(), choice.why()), decided);
        let mut forced = ExecutorSelector::new(kinds, 1, true);
        assert!(forced.force(ExecutorKind::Persistent) && !forced.leave_out(ExecutorKind::Persistent));
        let mut two = ExecutorSelector::new(BOTH.to_vec(), 2, false);
        assert!(two.leave_out(ExecutorKind::Steps));
        assert_eq!((two.current(), two.why()), (ExecutorKind::Persistent, SelectionReason::Only));
    }
}
