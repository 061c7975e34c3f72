//! Means, deviations and percentiles.

/// What many numbers are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Ascending.
    sorted: Vec<f64>,
}

impl Statistics {
    /// Of these numbers; those that are not finite are none.
    pub fn new(mut numbers: Vec<f64>) -> Statistics {
        numbers.retain(|x| x.is_finite());
        numbers.sort_by(f64::total_cmp);
        Statistics { sorted: numbers }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The mean; none of no numbers.
    pub fn mean(&self) -> Option<f64> {
        (!self.sorted.is_empty()).then(|| self.sorted.iter().sum::<f64>() / self.sorted.len() as f64)
    }

    /// The median; none of no numbers.
    pub fn median(&self) -> Option<f64> {
        percentile(&self.sorted, 50.0)
    }

    /// The standard deviation of these numbers, not of what they were drawn from; none of no numbers.
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self.sorted.iter().map(|x| (x - mean) * (x - mean)).sum();
        Some((squares / self.sorted.len() as f64).sqrt())
    }

    /// The percentile `p` of 0 to 100; none of no numbers.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        percentile(&self.sorted, p)
    }
}

/// The percentile `p`, 0 to 100, of ascending numbers: between its two neighbours in proportion, which is the seventh
/// definition of Hyndman and Fan ("Sample quantiles in statistical packages", 1996) and NumPy's default. None of no numbers,
/// and for other `p`.
pub fn percentile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1).filter(|_| (0.0..=100.0).contains(&p))?;
    let at = p / 100.0 * last as f64;
    let below = at.floor();
    let low = *sorted.get(below as usize)?;
    let high = *sorted.get(at.ceil() as usize)?;
    Some(low + (high - low) * (at - below))
}

#[cfg(test)]
mod tests {
    use super::*;

    // numpy.percentile([15, 20, 35, 40, 50], [0, 5, 30, 40, 50, 75, 99, 100]) and numpy.std of the same, NumPy 2.4.
    #[test]
    fn percentiles_are_those_of_numpy() {
        let of = Statistics::new(vec![35.0, 15.0, 50.0, 40.0, 20.0]);
        let wanted = [(0.0, 15.0), (5.0, 16.0), (30.0, 23.0), (40.0, 29.0), (50.0, 35.0), (75.0, 40.0), (99.0, 49.6)];
        for (p, value) in wanted {
            assert!((of.percentile(p).unwrap() - value).abs() < 1e-12, "{p}");
        }
        assert_eq!((of.percentile(100.0), of.median(), of.mean()), (Some(50.0), Some(35.0), Some(32.0)));
        assert!((of.deviation().unwrap() - 12.884_098_726_725_126).abs() < 1e-12);
    }

    /// By its meaning: a percentile that falls on a place of the sorted numbers is the number there, and as many lie below.
    #[test]
    fn a_percentile_has_its_share_below_it() {
        let numbers: Vec<f64> = (0..=1000).map(|i| f64::from(i * 7919 % 1001)).collect();
        let of = Statistics::new(numbers.clone());
        for p in [0.0, 0.1, 1.0, 12.5, 37.3, 50.0, 90.0, 99.9, 100.0] {
            let value = of.percentile(p).unwrap();
            let below = numbers.iter().filter(|x| **x < value - 1e-9).count() as f64;
            assert!((below - p * 10.0).abs() < 1.0, "{p}: {below}");
        }
    }

    #[test]
    fn of_nothing_there_is_nothing() {
        let of = Statistics::new(vec![f64::NAN]);
        assert_eq!((of.count(), of.mean(), of.deviation(), of.percentile(50.0)), (0, None, None, None));
        assert_eq!(percentile(&[1.0], 101.0), None);
    }
}
