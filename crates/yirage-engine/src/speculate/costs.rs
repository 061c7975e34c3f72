//! What steps cost, as measured: a median for each number of rows, and a cautious guess where nothing is known.
//!
//! This module deliberately knows no clock (it is told seconds) and no reason why a step costs what it costs: kernels
//! that take tokens in tiles make the curve a staircase, so it is a table and not a formula.

use std::collections::BTreeMap;

/// Measurements of one size that are kept; the median is of these.
const COST_WINDOW: usize = 9;

/// What one more row is taken to cost, as a share of a whole plain step, until it is measured. More than a machine that
/// is bound by memory takes, less than one that is bound by arithmetic.
const ROW_SHARE: f64 = 0.35;

/// The newest measurements of one size.
#[derive(Clone, Debug, Default)]
struct Recent {
    seconds: Vec<f64>,
    next: usize,
    /// The first was not believed; the second takes its place.
    doubted: bool,
}

impl Recent {
    fn push(&mut self, seconds: f64) {
        if std::mem::take(&mut self.doubted) {
            self.seconds.clear();
        }
        if self.seconds.len() < COST_WINDOW {
            self.seconds.push(seconds);
        } else {
            self.seconds[self.next % COST_WINDOW] = seconds;
        }
        self.next += 1;
    }

    fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        // Of an even number the lower one: disturbances only ever add time.
        sorted.get((sorted.len().max(1) - 1) / 2).copied().unwrap_or(0.0)
    }
}

/// The cost of steps by their number of rows, for one number of sequences.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    rows: BTreeMap<u32, Recent>,
}

impl Curve {
    /// Takes a measurement, and says for how much it counts. Times that are no times (a clock that stood still) count for
    /// nothing, and the first of a size at most for what was expected, until a second confirms it: memory that is touched
    /// for the first time is slow once, and twice as slow was measured.
    pub fn measured(&mut self, rows: u32, seconds: f64) -> f64 {
        if !(seconds.is_finite() && seconds > 0.0) {
            return 0.0;
        }
        let most = self.seconds(rows).filter(|_| self.count(rows) == 0).unwrap_or(f64::INFINITY);
        let recent = self.rows.entry(rows).or_default();
        recent.push(seconds.min(most));
        recent.doubted = seconds > most;
        seconds.min(most)
    }

    /// Measurements there are of a size.
    pub fn count(&self, rows: u32) -> usize {
        self.rows.get(&rows).map_or(0, |recent| recent.next)
    }

    /// Sizes with their measurements and medians, ascending.
    pub fn sizes(&self) -> impl Iterator<Item = (u32, usize, f64)> {
        self.rows.iter().map(|(&rows, recent)| (rows, recent.next, recent.median()))
    }

    /// The largest size measured `times` times or more.
    pub fn largest(&self, times: usize) -> Option<u32> {
        self.rows.iter().rev().find(|(_, recent)| recent.next >= times).map(|(&rows, _)| rows)
    }

    /// Seconds of a step of `rows`: the median where it was measured, the straight line between neighbours, and beyond
    /// the largest the steeper of the curve's slope so far and, while only one size is known, `ROW_SHARE`. None
    /// before the first measurement.
    pub fn seconds(&self, rows: u32) -> Option<f64> {
        let below = self.rows.range(..=rows).next_back().map(|(&n, recent)| (f64::from(n), recent.median()));
        let above = self.rows.range(rows..).next().map(|(&n, recent)| (f64::from(n), recent.median()));
        let (first, least) = self.rows.first_key_value().map(|(&n, recent)| (f64::from(n), recent.median()))?;
        let at = f64::from(rows);
        Some(match (below, above) {
            (Some((a, x)), Some((b, y))) if b > a => x + (y - x) * (at - a) / (b - a),
            (Some((a, x)), None) if a > first => x + ((x - least) / (a - first)).max(0.0) * (at - a),
            (Some((a, x)), None) => x * (1.0 + ROW_SHARE * (at - a)),
            (Some((_, x)), Some(_)) | (None, Some((_, x))) => x,
            (None, None) => least,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_forgets_outliers_and_old_times() {
        let mut curve = Curve::default();
        assert_eq!(curve.seconds(1), None);
        for seconds in [1.0, 1.1, 90.0, 0.9, 1.0] {
            curve.measured(1, seconds);
        }
        assert_eq!(curve.seconds(1), Some(1.0));
        curve.measured(1, f64::NAN);
        curve.measured(1, 0.0);
        assert_eq!((curve.count(1), curve.seconds(1)), (5, Some(1.0)));
        for _ in 0..COST_WINDOW {
            curve.measured(1, 3.0);
        }
        assert_eq!(curve.seconds(1), Some(3.0));
    }

    #[test]
    fn one_slow_beginning_does_not_spoil_a_size() {
        let mut curve = Curve::default();
        curve.measured(1, 1.0);
        curve.measured(2, 70.0);
        assert_eq!(curve.seconds(2), Some(1.0 + ROW_SHARE));
        curve.measured(2, 1.1);
        assert_eq!(curve.seconds(2), Some(1.1));
        curve.measured(4, 70.0);
        curve.measured(4, 70.0);
        assert_eq!(curve.seconds(4), Some(70.0), "said twice it is believed");
    }

    #[test]
    fn between_and_beyond_what_was_measured() {
        let mut curve = Curve::default();
        curve.measured(1, 1.0);
        assert_eq!((curve.seconds(1), curve.seconds(5)), (Some(1.0), Some(1.0 + 4.0 * ROW_SHARE)));
        curve.measured(4, 1.3);
        assert_eq!((curve.seconds(2), curve.seconds(4)), (Some(1.1), Some(1.3)));
        assert!((curve.seconds(8).unwrap() - 1.7).abs() < 1e-12);
        assert_eq!((curve.largest(1), curve.count(4), curve.count(3)), (Some(4), 1, 0));
        curve.measured(6, 0.7);
        assert_eq!(curve.seconds(9), Some(0.7), "a curve that falls is taken to stay");
    }
}
