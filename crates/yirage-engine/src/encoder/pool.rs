//! From vectors of tokens to one of their text.

use yirage_model::config::Pooling;

/// What becomes of the vectors of an input's tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Embedding {
    /// Which of them count.
    pub pooling: Pooling,
    /// Whether the result gets the length 1.
    pub normalise: bool,
}

/// A vector shorter than this stays short, as in PyTorch.
const LEAST: f64 = 1e-12;

impl Embedding {
    /// The vector of an input whose tokens have these rows of `width` numbers; none where there is no whole row. Sums are in
    /// f64, in the order of tokens.
    pub fn of(self, rows: &[f32], width: usize) -> Option<Vec<f32>> {
        let tokens = rows.len().checked_div(width).filter(|tokens| *tokens > 0)?;
        let mut out: Vec<f64> = match self.pooling {
            Pooling::Cls => wide(&rows[..width]),
            Pooling::Last => wide(&rows[(tokens - 1) * width..tokens * width]),
            Pooling::Mean => mean(rows, width, tokens),
        };
        if self.normalise {
            let length = out.iter().map(|x| x * x).sum::<f64>().sqrt().max(LEAST);
            out.iter_mut().for_each(|x| *x /= length);
        }
        Some(out.into_iter().map(|x| x as f32).collect())
    }
}

fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).collect()
}

fn mean(rows: &[f32], width: usize, tokens: usize) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    sums.iter_mut().for_each(|sum| *sum /= tokens as f64);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pooling_takes_its_rows() {
        let rows = [3.0, 4.0, 1.0, 0.0, 2.0, 2.0];
        let of = |pooling, normalise| Embedding { pooling, normalise }.of(&rows, 2).unwrap();
        assert_eq!(of(Pooling::Cls, false), [3.0, 4.0]);
        assert_eq!(of(Pooling::Last, false), [2.0, 2.0]);
        assert_eq!(of(Pooling::Mean, false), [2.0, 2.0]);
        assert_eq!(of(Pooling::Cls, true), [0.6, 0.8]);
    }

    #[test]
    fn a_vector_of_zeros_stays_one() {
        assert_eq!(Embedding { pooling: Pooling::Mean, normalise: true }.of(&[0.0; 4], 2).unwrap(), [0.0, 0.0]);
    }

    #[test]
    fn without_a_row_there_is_no_vector() {
        let how = Embedding { pooling: Pooling::Mean, normalise: true };
        assert_eq!((how.of(&[], 2), how.of(&[1.0], 2), how.of(&[1.0], 0)), (None, None, None));
    }
}
