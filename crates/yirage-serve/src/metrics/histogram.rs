//! A histogram as Prometheus reads it.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of durations below bounds. What is added by one thread while another reads may be seen in part.
pub(crate) struct Histogram {
    /// Seconds, ascending.
    bounds: &'static [f64],
    /// One a bound, and one for what exceeds all.
    counts: Vec<AtomicU64>,
    microseconds: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, microseconds: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let at = self.bounds.iter().position(|bound| seconds <= *bound).unwrap_or(self.bounds.len());
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.microseconds.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// All of them together.
    pub(crate) fn sum(&self) -> Duration {
        Duration::from_micros(self.microseconds.load(Ordering::Relaxed))
    }

    /// Their mean, where there are any.
    pub(crate) fn mean(&self) -> Option<Duration> {
        let count: u64 = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        self.microseconds.load(Ordering::Relaxed).checked_div(count).map(Duration::from_micros)
    }

    /// Writes it in Prometheus' text form.
    pub(crate) fn write(&self, name: &str, labels: &str, out: &mut String) {
        let mut sum = 0;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            sum += count.load(Ordering::Relaxed);
            // Writing into a string cannot fail.
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
        }
        sum += self.counts.last().map_or(0, |count| count.load(Ordering::Relaxed));
        let seconds = self.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {sum}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {seconds}");
        let _ = writeln!(out, "{name}_count{{{labels}}} {sum}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let histogram = Histogram::new(&[0.1, 1.0]);
        assert_eq!(histogram.mean(), None);
        for millis in [50, 100, 500, 2000] {
            histogram.add(Duration::from_millis(millis));
        }
        let mut text = String::new();
        histogram.write("t", "m=\"x\"", &mut text);
        let wanted = "t_bucket{m=\"x\",le=\"0.1\"} 2\nt_bucket{m=\"x\",le=\"1\"} 3\nt_bucket{m=\"x\",le=\"+Inf\"} 4\n\
                      t_sum{m=\"x\"} 2.65\nt_count{m=\"x\"} 4\n";
        assert_eq!(text, wanted);
        assert_eq!(histogram.mean(), Some(Duration::from_micros(662_500)));
    }
}
